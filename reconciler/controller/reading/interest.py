"""The reads of a round in each cluster, and the known state of those that it does not read.

Source: ADR 15; design#absent-from-the-list.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Protocol

from msgspec.structs import replace

from reconciler.api.clusters import Member, NotRead, Read
from reconciler.api.content import Opened
from reconciler.api.fleet import Fleet, Template
from reconciler.api.ledger import Ledger
from reconciler.api.problem import Problem
from reconciler.api.refs import GVK, Identity, ResourceRef
from reconciler.controller.reading.members import Interest, Reachable
from reconciler.controller.reading.scope import ReadScope
from reconciler.controller.tasks import in_thread
from reconciler.scheduler import Schedule, withheld_prerequisites


def with_unasked(members: Reachable, read: Mapping[str, Member], scope: ReadScope) -> dict[str, Member]:
    """All members: of those that were not asked anything nothing new is known, but that they answered the last time."""
    found: dict[str, Member] = {}
    for name, member in sorted(members.items()):
        seen = read.get(name)
        if seen is None:
            seen = NotRead(name=name, why=member) if isinstance(member, str) else Read(name=name)
        unasked = scope.unasked_in(name)
        found[name] = replace(seen, unasked=unasked) if unasked and isinstance(seen, Read) else seen
    return found


def _bound(schedule: Schedule, only: frozenset[Identity]) -> frozenset[Identity]:
    """Return placed objects among these, and the prerequisites they wait for."""
    bound = only & schedule.bindings.keys()
    return bound | withheld_prerequisites(schedule, bound)


def interest_in(schedule: Schedule, ledger: Ledger, scope: ReadScope | None) -> dict[str, Interest]:
    """Return per cluster the kinds to list and the objects to read. With a scope, idle clusters are left out."""
    interest: dict[str, Interest] = {}
    is_listed = scope is None or bool(scope.clusters)
    kinds = {template.gvk for template in schedule.fleet.templates.values()} if is_listed else set()
    for name, refs in _wanted(schedule, scope).items():
        rows = ledger.get(name, {})
        if scope is None or name in scope.clusters:
            applied = {row.gvk for row in rows.values()}
            named = {ref.identity for ref in refs}
            # A list can lack items without a sign: missing ones are read by name.
            left = {ResourceRef(row.gvk, i.namespace, i.name) for i, row in rows.items() if i not in named}
            interest[name] = Interest(
                kinds=frozenset(kinds | applied),
                wanted=frozenset(refs | left),
                applied=frozenset(applied),
                is_whole=True,
            )
            continue
        asked = scope.asked_in(name)
        left = {ResourceRef(rows[i].gvk, i.namespace, i.name) for i in asked if i in rows}
        if refs or left:
            applied = {rows[i].gvk for i in asked if i in rows}
            complete = frozenset(i[:2] for i in asked)
            interest[name] = Interest(wanted=frozenset(refs | left), complete=complete, applied=frozenset(applied))
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


Opener = Callable[[Collection[Template], bool], Mapping[Identity, Opened | Problem]]
"""Decrypts the encrypted ones among templates; True: they are all of the fleet."""


class LaterKeys(Protocol):
    """A decryption with later results, since others have to be asked."""

    def listen(self, told: Callable[[Collection[Identity]], None]) -> None:
        """Register a callback, from any thread, for objects with a new result."""
        ...

    def again(self) -> None:
        """Try anew, when next asked, what could not be opened."""
        ...


def no_keys(templates: Collection[Template], is_all: bool) -> Mapping[Identity, Opened | Problem]:
    """Nothing is decrypted."""
    return {}


async def opened_for(
    schedule: Schedule, only: frozenset[Identity] | None, opener: Opener
) -> Mapping[Identity, Opened | Problem]:
    """Return the values of a round's encrypted templates, or the problem of each. `only`: of these.

    Those of older active revisions are among them: a value depends on its place and ciphertext.
    """
    found = dict(await _decrypted(schedule.fleet, schedule, only, opener, is_newest=True))
    for fleet in schedule.staging.fleets.values() if schedule.staging is not None else ():
        for identity, older in (await _decrypted(fleet, schedule, only, opener, is_newest=False)).items():
            newest = found.get(identity)
            if isinstance(older, Opened) and isinstance(newest, Opened):
                found[identity] = Opened(values={**older.values, **newest.values})
            elif newest is None:
                found[identity] = older
    return found


async def _decrypted(
    fleet: Fleet, schedule: Schedule, only: frozenset[Identity] | None, opener: Opener, *, is_newest: bool
) -> Mapping[Identity, Opened | Problem]:
    bound = schedule.bindings.keys()
    chosen = [fleet.templates[one] for one in (bound if only is None else bound & only) if one in fleet.templates]
    sealed = [template for template in chosen if template.sealed is not None]
    return await in_thread(opener, sealed, is_newest and only is None) if sealed else {}
