"""The scope of a round, and what it reads in each cluster: events in one cluster are read there, and in no other one.

Source: ADR 15; design#events-are-nudges; design#absent-from-the-list.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.api.clusters import Member, NotRead, Read
from reconciler.api.content import DecryptedValues
from reconciler.api.fleet import Fleet, Template
from reconciler.api.ledger import Ledger
from reconciler.api.problem import Problem
from reconciler.api.refs import GVK, Identity, ResourceRef
from reconciler.controller.cluster_reads.members import Reachable, ReadRequest
from reconciler.controller.tasks import in_thread
from reconciler.incremental import patched
from reconciler.observations import Replicas, others_at_rest
from reconciler.planner import copies_in
from reconciler.scheduler import RUNS_ONCE, Schedule, package_mates, withheld_prerequisites

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
    held: dict[Identity, dict[str, Replicas]] = {identity: {} for identity in narrow}
    for cluster, rows in ledger.items():
        for identity in rows.keys() & narrow:
            held[identity][cluster] = rows[identity].replicas
    narrowed: dict[str, set[Identity]] = {}
    for identity in narrow:
        binding = schedule.bindings.get(identity)
        target = dict(binding.targets) if binding is not None else {}
        if where[identity] <= target.keys() and others_at_rest(where[identity], target, held[identity]):
            for cluster in where[identity]:
                narrowed.setdefault(cluster, set()).add(identity)
        else:
            wide.add(identity)
    return ReadScope(
        identities=frozenset(wide),
        copies={cluster: frozenset(there) for cluster, there in sorted(narrowed.items())},
        clusters=frozenset(clusters),
    )


def joined(*each: Mapping[str, Collection[Identity]]) -> dict[str, frozenset[Identity]]:
    """Return the union, by cluster."""
    union: dict[str, frozenset[Identity]] = {}
    for copies in each:
        for cluster, identities in copies.items():
            union[cluster] = union.get(cluster, _NONE).union(identities)
    return union


def _where(
    schedule: Schedule, ledger: Ledger, copies: Mapping[str, Collection[Identity]], clusters: Iterable[str]
) -> dict[Identity, set[str]]:
    chosen = frozenset(clusters)
    where = copies_in(joined(copies, {cluster: ledger.get(cluster, {}) for cluster in chosen}))
    for identity, binding in schedule.bindings.items() if chosen else ():
        for cluster in chosen.intersection(binding.clusters):
            where.setdefault(identity, set()).add(cluster)
    return where


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


def with_unasked(members: Reachable, read: Mapping[str, Member], scope: ReadScope) -> dict[str, Member]:
    """All members: of those that were not asked anything nothing new is known, but that they answered the last time."""
    every: dict[str, Member] = {}
    for name, member in sorted(members.items()):
        last = read.get(name)
        if last is None:
            last = NotRead(name=name, why=member) if isinstance(member, str) else Read(name=name)
        unasked = scope.unasked_in(name)
        every[name] = replace(last, unasked=unasked) if unasked and isinstance(last, Read) else last
    return every


def _bound(schedule: Schedule, only: frozenset[Identity]) -> frozenset[Identity]:
    bound = only & schedule.bindings.keys()
    return bound | withheld_prerequisites(schedule, bound)


def interest_in(schedule: Schedule, ledger: Ledger, scope: ReadScope | None) -> dict[str, ReadRequest]:
    """Return per cluster the kinds to list and the objects to read. With a scope, idle clusters are left out."""
    interest: dict[str, ReadRequest] = {}
    is_listed = scope is None or bool(scope.clusters)
    kinds = {template.gvk for template in schedule.fleet.templates.values()} if is_listed else set()
    for name, refs in _wanted(schedule, scope).items():
        rows = ledger.get(name, {})
        if scope is None or name in scope.clusters:
            applied = {row.gvk for row in rows.values()}
            named = {ref.identity for ref in refs}
            # A list can lack items without a sign: missing ones are read by name.
            left = {ResourceRef(row.gvk, i.namespace, i.name) for i, row in rows.items() if i not in named}
            interest[name] = ReadRequest(
                kinds=frozenset(kinds | applied),
                wanted=frozenset(refs | left),
                applied=frozenset(applied),
                left=frozenset(applied - kinds),
                is_whole=True,
            )
            continue
        here = scope.asked_in(name)
        left = {ResourceRef(rows[i].gvk, i.namespace, i.name) for i in here if i in rows}
        if refs or left:
            applied = {rows[i].gvk for i in here if i in rows}
            complete = frozenset(i[:2] for i in here)
            interest[name] = ReadRequest(wanted=frozenset(refs | left), complete=complete, applied=frozenset(applied))
    return interest


def _wanted(schedule: Schedule, scope: ReadScope | None) -> dict[str, set[ResourceRef]]:
    templates, bindings = schedule.fleet.templates, schedule.bindings
    wanted: dict[str, set[ResourceRef]] = {name: set() for name in schedule.fleet.clusters}

    def want(identity: Identity, clusters: Iterable[str]) -> None:
        template = templates.get(identity)
        gvk = template.gvk if template else GVK(identity.group, "v1", identity.kind)
        for cluster in clusters:
            if cluster in wanted:
                wanted[cluster].add(ResourceRef(gvk, identity.namespace, identity.name))

    for identity in bindings if scope is None else _bound(schedule, scope.identities):
        want(identity, bindings[identity].clusters)
    for cluster, identities in scope.copies.items() if scope is not None else ():
        for identity in _bound(schedule, identities):
            want(identity, (cluster,) if cluster in bindings[identity].clusters else ())
    return wanted


class Decryption(Protocol):
    """Decrypts values of the store; some of them later, since others have to be asked."""

    closed: Mapping[Identity, object]
    """Objects without a key. It is replaced, and never changed."""

    def open(self, templates: Collection[Template], is_all: bool) -> Mapping[Identity, DecryptedValues | Problem]:
        """Return the values of the encrypted ones among templates. `is_all`: they are all of the fleet."""
        ...

    def listen(self, arrived: Callable[[Collection[Identity]], None]) -> None:
        """Register a callback, from any thread, for objects with a new result."""
        ...

    def again(self) -> None:
        """Try again, when next asked, what could not be opened."""
        ...

    def renewed(self) -> Collection[Identity]:
        """Return, once, the objects that could not be opened and perhaps can: other keys were given."""
        ...


async def opened_for(
    schedule: Schedule, only: frozenset[Identity] | None, keys: Decryption | None
) -> Mapping[Identity, DecryptedValues | Problem]:
    """Return the values of a round's encrypted templates, also of older active revisions, or the problem of each."""
    values = dict(await _decrypted(schedule.fleet, schedule, only, keys, is_newest=True))
    for fleet in schedule.staging.fleets.values() if schedule.staging is not None else ():
        for identity, older in (await _decrypted(fleet, schedule, only, keys, is_newest=False)).items():
            newest = values.get(identity)
            if isinstance(older, DecryptedValues) and isinstance(newest, DecryptedValues):
                values[identity] = DecryptedValues(values={**older.values, **newest.values})
            elif newest is None:
                values[identity] = older
    return values


async def _decrypted(
    fleet: Fleet, schedule: Schedule, only: frozenset[Identity] | None, keys: Decryption | None, *, is_newest: bool
) -> Mapping[Identity, DecryptedValues | Problem]:
    bound = schedule.bindings.keys()
    chosen = [fleet.templates[one] for one in (bound if only is None else bound & only) if one in fleet.templates]
    sealed = [template for template in chosen if template.sealed is not None]
    return await in_thread(keys.open, sealed, is_newest and only is None) if sealed and keys is not None else {}
