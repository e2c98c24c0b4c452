"""Steps of a schedule, from nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from reconciler.api.binding import Binding
from reconciler.api.fleet import Fleet
from reconciler.api.policies import PropagationPolicy
from reconciler.api.refs import Identity
from reconciler.incremental import Table
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.scheduler import LinkTables, dependencies, namespaces
from reconciler.scheduler.namespaces import NamespaceTables


def dependencies_of(
    fleet: Fleet,
    policies: Mapping[Identity, PropagationPolicy],
    bindings: Mapping[Identity, Binding],
    held: Mapping[Identity, Collection[str]] | None = None,
) -> LinkTables:
    """Return the links and the bindings of templates with these policies and bindings."""
    old = {identity: frozenset(clusters) for identity, clusters in (held or {}).items()}
    of = Table.of
    return dependencies(fleet, of(fleet.templates), of(policies), of(bindings), of(old), LinkTables(), BUILT_IN_KINDS)


def namespaces_of(fleet: Fleet, bindings: Mapping[Identity, Binding]) -> Mapping[Identity, Binding]:
    """Return the bindings of Namespaces that follow these."""
    return namespaces(fleet, Table.of(fleet.templates), Table.of(bindings), NamespaceTables()).rows
