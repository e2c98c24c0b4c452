"""Objects that templates of the store make: a Secret that an operator writes is in the cluster of its maker.

Kinds that a cluster will serve because their definition goes there in the same round.

Source: design#kind-not-served: a cluster that does not serve a kind is no candidate for it, but a kind whose
CustomResourceDefinition is in the same plan waits for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.api.binding import Binding
from reconciler.api.clusters import Observations
from reconciler.api.demand import Made
from reconciler.api.fleet import Fleet, Template
from reconciler.api.refs import GVK, Identity
from reconciler.api.tree import JsonObject, dig
from reconciler.incremental import Dependents, Table
from reconciler.kinds.registry import Registry
from reconciler.templates import made_of


class Maker(NamedTuple):
    """A template that makes something. `is_whole` False: it only adds to an existing object."""

    identity: Identity
    is_whole: bool


class Makers(Struct, frozen=True):
    """`of`: by made object, its makers, sorted. `made`: by maker, the objects that it makes."""

    of: Mapping[Identity, tuple[Maker, ...]] = field(default_factory=dict)
    made: Mapping[Identity, tuple[Made, ...]] = field(default_factory=dict)


NO_MAKERS: Final = Makers()


def makers_of(fleet: Fleet, interpreters: Registry) -> Makers:
    """All makers of a fleet."""
    tables = MakerTables()
    tables.follow(fleet.templates, fleet.templates, interpreters)
    return tables.makers


class MakerTables:
    """The makers of this round, computed from those of the round before."""

    __slots__ = ("_made", "_makers", "_of")

    def __init__(self) -> None:
        """Start with no template."""
        self._made = Table[Identity, tuple[Made, ...]]()
        self._makers = Dependents[Identity, Identity]()
        """Maker to what it makes."""
        self._of = Table[Identity, tuple[Maker, ...]]()

    @property
    def makers(self) -> Makers:
        """As of the last round."""
        return Makers(self._of.rows, self._made.rows)

    def follow(
        self, templates: Mapping[Identity, Template], dirty: Iterable[Identity], interpreters: Registry
    ) -> set[Identity]:
        """Update changed templates; return the objects whose makers changed."""

        def made_by(identity: Identity) -> tuple[Made, ...] | None:
            template = templates.get(identity)
            return (made_of(template, interpreters) or None) if template is not None else None

        kinds, known = interpreters.kinds_with("makes"), self._made.rows
        self._made.update([one for one in dirty if one[:2] in kinds or one in known], made_by)
        changed, rows = self._made.changed, self._made.rows
        stirred = self._makers.on(changed)
        self._makers.update(changed, lambda maker: [made.identity for made in rows.get(maker, ())])
        stirred |= self._makers.on(changed)
        self._of.update(stirred, self._makers_of)
        return stirred

    def _makers_of(self, identity: Identity) -> tuple[Maker, ...] | None:
        rows = self._made.rows
        found = (
            Maker(maker, made.is_whole)
            for maker in sorted(self._makers.of((identity,)))
            for made in rows[maker]
            if made.identity == identity
        )
        return tuple(found) or None


def with_defined_kinds(fleet: Fleet, definitions: Mapping[Identity, Binding], seen: Observations) -> Observations:
    """The observations with the kinds that the bound definitions bring to each cluster."""
    brought: dict[str, set[GVK]] = {}
    for identity, binding in definitions.items():
        kinds = _served_kinds(fleet.templates[identity].body)
        for cluster in binding.clusters:
            brought.setdefault(cluster, set()).update(kinds)
    clusters = {
        name: replace(cluster, apis=cluster.apis | brought[name])
        if name in brought and cluster.apis is not None
        else cluster
        for name, cluster in seen.clusters.items()
    }
    return replace(seen, clusters=clusters)


def _served_kinds(definition: JsonObject) -> set[GVK]:
    group, kind = dig(definition, "spec", "group"), dig(definition, "spec", "names", "kind")
    versions = dig(definition, "spec", "versions")
    if not isinstance(group, str) or not isinstance(kind, str) or not isinstance(versions, list):
        return set()
    served = (entry for entry in versions if isinstance(entry, Mapping) and entry.get("served") is True)
    return {GVK(group, str(entry.get("name")), kind) for entry in served}
