"""Namespaces follow their objects, so that nothing fails for want of one.

Source: design#namespaces; Karmada: namespaces are copied to every cluster, except `kube-*` and `default`, and those
labelled with its skip label.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec.structs import replace

from reconciler.api.binding import Binding, Reason, TargetCluster
from reconciler.api.content import Content
from reconciler.api.fleet import Fleet, Template
from reconciler.api.problem import NOWHERE
from reconciler.api.refs import GVK, Identity
from reconciler.documents import is_system_namespace
from reconciler.incremental import Table, union

NAMESPACE_FOLLOWS: Final = "namespace-follows"
"""The rule of the reason why a cluster has a Namespace that no policy sent there."""

_IN_EVERY_CLUSTER: Final = frozenset({"default", "kube-system", "kube-public", "kube-node-lease"})
_SKIP: Final = "namespace.karmada.io/skip-auto-propagation"


def namespace_identity(name: str) -> Identity:
    """Return the identity of a Namespace."""
    return Identity("", "Namespace", "", name)


def bare_namespace(name: str) -> Template:
    """Return a Namespace that no file wrote."""
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    gvk, identity = GVK("", "v1", "Namespace"), namespace_identity(name)
    return Template(gvk=gvk, identity=identity, content=Content(tree=body), source=NOWHERE)


Targets = tuple[TargetCluster, ...]


class NamespaceTables:
    """Bound objects of each namespace, and the Namespaces that followed."""

    def __init__(self) -> None:
        self.inhabitants: dict[str, dict[Identity, Targets]] = {}
        """By namespace, what is bound in it with its targets, in order."""
        self.first = Table[str, Mapping[str, Identity]]()
        """By namespace, the first that is bound in it in each cluster."""
        self.followed = Table[Identity, Binding]()


def namespaces(
    fleet: Fleet, templates: Table[Identity, Template], bindings: Table[Identity, Binding], tables: NamespaceTables
) -> Table[Identity, Binding]:
    """Return the bindings of the Namespaces of everything that is bound: to be laid over `bindings`.

    A claimed Namespace keeps its placement and goes where something in it goes, by the rule `NAMESPACE_FOLLOWS`.
    """
    stirred = _move(tables, bindings.rows, bindings.changed)
    first = tables.first.derive(lambda name: _first(tables.inhabitants.get(name, {})), stirred)
    # The fields of a Namespace count for its objects.
    themselves = (one for one in union(bindings.changed, templates.changed) if one[:2] == ("", "Namespace"))
    return tables.followed.derive(
        lambda identity: _followed(fleet, bindings.rows.get(identity), identity.name, first.rows),
        {*map(namespace_identity, first.changed), *themselves},
    )


def _move(tables: NamespaceTables, bindings: Mapping[Identity, Binding], dirty: Iterable[Identity]) -> set[str]:
    """Take changed bindings; return the namespaces in which a cluster may have another first inhabitant."""
    stirred: set[str] = set()
    grown: set[str] = set()
    for identity in dirty:
        if not identity.namespace:
            continue
        inhabitants = tables.inhabitants.setdefault(identity.namespace, {})
        before = inhabitants.get(identity)
        after = bindings[identity].targets if identity in bindings else None
        if after is not None:
            inhabitants[identity] = after
        elif before is not None:
            del inhabitants[identity]
            if not inhabitants:
                del tables.inhabitants[identity.namespace]
        if before is None and after is not None:
            grown.add(identity.namespace)
        if identity.namespace not in stirred:
            # It was the first in a cluster that it left, or comes before the first in one where it is.
            first = tables.first.rows.get(identity.namespace, {})
            there = {cluster for cluster, _ in after or ()}
            if any(first.get(cluster) == identity for cluster, _ in before or () if cluster not in there) or any(
                cluster not in first or identity < first[cluster] for cluster in there
            ):
                stirred.add(identity.namespace)
    for name in grown:
        tables.inhabitants[name] = dict(sorted(tables.inhabitants[name].items()))
    return stirred


def _first(inhabitants: Mapping[Identity, Targets]) -> dict[str, Identity] | None:
    """Return the first inhabitant of each cluster; None without one."""
    first: dict[str, Identity] = {}
    done: set[int] = set()
    for identity, targets in inhabitants.items():
        # Those that were decided alike share their targets.
        if id(targets) not in done:
            done.add(id(targets))
            for cluster, _ in targets:
                if cluster not in first:
                    first[cluster] = identity
    return first or None


def _followed(
    fleet: Fleet, own: Binding | None, name: str, first: Mapping[str, Mapping[str, Identity]]
) -> Binding | None:
    """Return the binding of a Namespace as far as it goes beyond its own; None when it does not."""
    if name not in first or is_created_elsewhere(fleet, name):
        return None
    own = own or Binding(identity=namespace_identity(name), policy=None)
    there = set(own.clusters)
    missing = {cluster: inhabitant for cluster, inhabitant in sorted(first[name].items()) if cluster not in there}
    if not missing:
        return None
    reasons = {
        cluster: Reason(rule=NAMESPACE_FOLLOWS, text=f"{inhabitant} lives in it there", cluster=cluster)
        for cluster, inhabitant in missing.items()
    }
    return replace(
        own,
        targets=tuple(sorted((*own.targets, *map(TargetCluster, missing)))),
        cluster_reasons={**own.cluster_reasons, **reasons},
        reasons=(*own.reasons, Reason(rule=NAMESPACE_FOLLOWS, text="goes where something in it goes")),
    )


def is_created_elsewhere(fleet: Fleet, name: str) -> bool:
    """Return whether we need not create the Namespace."""
    if name in _IN_EVERY_CLUSTER or (is_system_namespace(name) and name not in fleet.settings.allowed_namespaces):
        return True
    template = fleet.templates.get(namespace_identity(name))
    return template is not None and template.labels.get(_SKIP) == "true"
