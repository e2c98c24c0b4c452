"""The scope of a round: events in one cluster are read there, and in no other one.

Source: ADR 15; design#events-are-nudges.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property

from msgspec import Struct, field

from reconciler.api.clusters import Member, Read
from reconciler.api.ledger import Ledger
from reconciler.api.refs import Identity
from reconciler.incremental import patched
from reconciler.observations import Replicas, is_at_rest_beside
from reconciler.scheduler import RUNS_ONCE, Schedule, package_mates

_NONE: frozenset[Identity] = frozenset()


class ReadScope(Struct, frozen=True, kw_only=True, dict=True):
    """The scope of a round.

    `identities`: in every cluster. `copies`: by cluster, there alone. `clusters`: these are listed; their applied and
    desired objects are among the others.
    """

    identities: frozenset[Identity] = _NONE
    copies: Mapping[str, frozenset[Identity]] = field(default_factory=dict)
    clusters: frozenset[str] = frozenset()

    @cached_property
    def only(self) -> frozenset[Identity]:
        """Everything that is looked at somewhere."""
        return self.identities.union(*self.copies.values())

    @cached_property
    def _in_copies_alone(self) -> frozenset[Identity]:
        return self.only - self.identities

    @property
    def is_empty(self) -> bool:
        """Return whether it is empty."""
        return not self.only and not self.clusters

    @property
    def size(self) -> int:
        """Return the number of copies in scope, but for those of `identities`."""
        return sum(map(len, self.copies.values()))

    def asked_in(self, cluster: str) -> frozenset[Identity]:
        """Return the objects in scope in a cluster."""
        here = self.copies.get(cluster)
        return self.identities | here if here else self.identities

    def unasked_in(self, cluster: str) -> frozenset[Identity]:
        """Return the objects in scope in other clusters alone."""
        here = self.copies.get(cluster)
        return self._in_copies_alone - here if here else self._in_copies_alone


def scope_of(
    schedule: Schedule,
    ledger: Ledger,
    *,
    identities: Collection[Identity],
    copies: Mapping[str, Collection[Identity]],
    clusters: Collection[str],
    unfinished: Collection[Identity] = (),
) -> ReadScope:
    """Return the scope: `identities` in every cluster, and the others everywhere unless at rest elsewhere.

    `copies`: objects with events in these clusters. `clusters`: all objects in them. `unfinished`: waiting objects, in
    any cluster.
    """
    where = _where(schedule, ledger, copies, clusters)
    restless = (frozenset(unfinished) | schedule.frozen) & where.keys()
    wide = {*identities, *restless, *(identity for identity in where if identity[:2] in RUNS_ONCE)}
    wide |= package_mates(schedule.packaged, {*wide, *where})
    narrow = where.keys() - wide
    held = _copies_of(narrow, ledger)
    found: dict[str, set[Identity]] = {}
    for identity in narrow:
        binding = schedule.bindings.get(identity)
        target = dict(binding.targets) if binding is not None else {}
        if where[identity] <= target.keys() and is_at_rest_beside(where[identity], target, held[identity]):
            for cluster in where[identity]:
                found.setdefault(cluster, set()).add(identity)
        else:
            wide.add(identity)
    return ReadScope(
        identities=frozenset(wide),
        copies={cluster: frozenset(there) for cluster, there in sorted(found.items())},
        clusters=frozenset(clusters),
    )


def has_strangers(members: Mapping[str, Member], scope: ReadScope) -> bool:
    """Return whether lists of the scope hold objects with our label that are neither desired nor recorded there."""
    listed = (members[name] for name in scope.clusters)
    return any(isinstance(member, Read) and not member.objects.keys() <= scope.only for member in listed)


def joined(*each: Mapping[str, Collection[Identity]]) -> dict[str, frozenset[Identity]]:
    """Return the union, by cluster."""
    found: dict[str, frozenset[Identity]] = {}
    for copies in each:
        for cluster, identities in copies.items():
            found[cluster] = found.get(cluster, _NONE).union(identities)
    return found


def _where(
    schedule: Schedule, ledger: Ledger, copies: Mapping[str, Collection[Identity]], clusters: Iterable[str]
) -> dict[Identity, set[str]]:
    where: dict[Identity, set[str]] = {}
    for cluster, marked in copies.items():
        for identity in marked:
            where.setdefault(identity, set()).add(cluster)
    chosen = frozenset(clusters)
    for cluster in chosen:
        for identity in ledger.get(cluster, {}):
            where.setdefault(identity, set()).add(cluster)
    for identity, binding in schedule.bindings.items() if chosen else ():
        for cluster in chosen.intersection(binding.clusters):
            where.setdefault(identity, set()).add(cluster)
    return where


def _copies_of(identities: Collection[Identity], ledger: Ledger) -> dict[Identity, dict[str, Replicas]]:
    found: dict[Identity, dict[str, Replicas]] = {identity: {} for identity in identities}
    for cluster, rows in ledger.items():
        for identity in rows.keys() & identities:
            found[identity][cluster] = rows[identity].replicas
    return found


Copies = Mapping[Identity, frozenset[str]]


def copies_since(copies: Copies, before: Ledger, after: Ledger) -> Copies:
    """The copies of `after`, made from those of `before`; clusters whose rows are the same mapping are not searched."""
    changes: dict[Identity, frozenset[str]] = {}
    for cluster, old, new in _differing(before, after):
        for identity in old.keys() ^ new.keys():
            known = changes[identity] if identity in changes else copies.get(identity, frozenset())
            changes[identity] = known | {cluster} if identity in new else known - {cluster}
    return patched(copies, {identity: clusters or None for identity, clusters in changes.items()})


def left_since(before: Ledger, after: Ledger) -> set[Identity]:
    """Return objects that lost a copy."""
    return {identity for _, old, new in _differing(before, after) for identity in old.keys() - new.keys()}


_Rows = Mapping[Identity, object]


def _differing(before: Ledger, after: Ledger) -> Iterator[tuple[str, _Rows, _Rows]]:
    for cluster in sorted({*before, *after}):
        old, new = before.get(cluster, {}), after.get(cluster, {})
        if old is not new:
            yield cluster, old, new
