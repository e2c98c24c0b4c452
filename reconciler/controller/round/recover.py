"""Requests without an answer (a broken connection, a crash): read each object, and close its intent.

Source: design#intents: an open intent means "look at that object first"; design#promise-4.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from reconciler.api.clusters import LiveObject
from reconciler.api.fleet import Fleet
from reconciler.api.ledger import ARRIVES, AppliedRow, Intent, IntentEnd, IntentOutcome, JournalSnapshot, Ledger
from reconciler.api.plan import Action
from reconciler.api.refs import Identity
from reconciler.containment import try_call
from reconciler.controller import timing
from reconciler.controller.cluster_reads.members import Reachable, log_read_fault
from reconciler.controller.round.owner_record import is_hook_record
from reconciler.errors import KindNotServed, MemberClusterError
from reconciler.journal.sqlite_journal import Journal
from reconciler.kube.client import MemberCluster
from reconciler.ownership import OwnershipRecord, field_manager, fleet_names, holds_field, is_terminating, ownership_of

OnFault = Callable[[Intent, Exception], None]

_LEAVES = (Action.DELETE, Action.RELEASE)


class _IntentObject(Struct, frozen=True, kw_only=True):
    """The object of an intent as it is now; `live` None: it is not there, or, unless `is_seen`, could not be seen."""

    intent_id: int
    intent: Intent
    live: LiveObject | None
    is_seen: bool = True


class _IntentOutcome(NamedTuple):
    """The journal's changes for it."""

    intent: Intent
    outcome: IntentOutcome
    row: AppliedRow | None
    is_gone: bool


def _log_fault(intent: Intent, fault: Exception) -> None:
    log_read_fault(intent.cluster, fault, intent.identity)


async def recover(
    journal: Journal,
    reachable: Reachable,
    fleet: Fleet,
    is_lost: Callable[[Intent], bool] = lambda intent: True,
    on_fault: OnFault = _log_fault,
) -> Mapping[str, frozenset[Identity]]:
    """Close open intents, as far as their clusters answer; return by cluster the objects that they were about.

    `is_lost`: whether nobody waits for the answer any more. `tell`: called for a fault of ours; its intent stays open.
    Their effects are recorded as if the answer had arrived: a created object must be known by its uid, or nobody could
    ever delete it. The next round compares and schedules again.
    """
    due = ((number, intent) for number, intent in journal.open_intents().items() if is_lost(intent))
    judged = _judged(await _read_objects(due, reachable, on_fault), journal.ledger(), fleet, on_fault)
    if judged:
        journal.finish(
            [each.outcome for each in judged],
            applied=[each.row for each in judged if each.row is not None],
            removed=[(each.intent.cluster, each.intent.identity) for each in judged if each.is_gone],
        )
    about: dict[str, set[Identity]] = {}
    for each in judged:
        about.setdefault(each.intent.cluster, set()).add(each.intent.identity)
    return {cluster: frozenset(identities) for cluster, identities in about.items()}


async def answered(known: JournalSnapshot, reachable: Reachable, fleet: Fleet) -> JournalSnapshot:
    """Return the state with the visible effects of unanswered requests; nothing is recorded."""
    seen_now = await _read_objects(enumerate(known.unanswered), reachable, _log_fault)
    judged = _judged(seen_now, known.ledger, fleet, _log_fault)
    ledger = {name: dict(rows) for name, rows in known.ledger.items()}
    for each in judged:
        rows, identity = ledger.setdefault(each.intent.cluster, {}), each.intent.identity
        if each.is_gone or (identity in rows and not rows[identity].uid):
            rows.pop(identity, None)
        if each.row is not None:
            rows[identity] = each.row
    closed = {each.outcome.intent_id for each in judged}
    return replace(
        known,
        ledger={name: dict(sorted(ledger[name].items())) for name in sorted(ledger) if ledger[name]},
        unanswered=tuple(intent for number, intent in enumerate(known.unanswered) if number not in closed),
    )


async def _read_objects(
    due: Iterable[tuple[int, Intent]], reachable: Reachable, on_fault: OnFault
) -> list[_IntentObject]:
    looks = [
        _read_object(number, member, intent, on_fault)
        for number, intent in due
        if isinstance(member := reachable.get(intent.cluster), MemberCluster)
    ]
    return [each for each in await asyncio.gather(*looks) if each is not None]


def _judged(objects: list[_IntentObject], ledger: Ledger, fleet: Fleet, on_fault: OnFault) -> list[_IntentOutcome]:
    """Return the outcomes of intents. Of one with a fault of ours nothing is known."""
    outcomes = []
    for each in objects:
        judged = try_call(_outcome, each, ledger, fleet)
        if judged.value is not None:
            outcomes.append(judged.value)
        elif judged.fault is not None:
            on_fault(each.intent, judged.fault)
    return outcomes


def _outcome(each: _IntentObject, ledger: Ledger, fleet: Fleet) -> _IntentOutcome:
    owner, intent, leaves = _owner(each, fleet), each.intent, each.intent.action in _LEAVES
    ends = each.live is not None and is_terminating(each.live)
    if each.is_seen and (leaves if owner is None or ends else intent.action in ARRIVES):
        outcome = IntentOutcome(each.intent_id, IntentEnd.DONE, "its answer was lost; seen to be done")
    else:
        why = "its answer was lost; seen not to be done, and decided again"
        outcome = IntentOutcome(each.intent_id, IntentEnd.SUPERSEDED, why)
    known = ledger.get(intent.cluster, {}).get(intent.identity)
    row, uid = None, each.live.uid if each.live is not None else ""
    # The record of a hook stays; a round removes it if nothing wants the hook any more.
    is_kept = known is not None and is_hook_record(known)
    is_gone = each.is_seen and leaves and owner is None and not is_kept
    is_deleted = ends or (each.is_seen and each.live is None)
    if intent.action in (Action.DELETE, Action.REPLACE) and is_deleted and not is_kept and not is_gone:
        row = replace(known, uid="", established=None) if known is not None else None
    elif owner is not None and intent.action in ARRIVES and (known is None or known.uid != uid):
        # It has arrived, and the journal has no record of it but its marks.
        row = owner.row(intent.cluster, intent.gvk, intent.identity, uid)
        row = replace(row, revision=intent.revision)
    elif known is not None and known.established is not None and not leaves:
        # Of one that was updated it is no longer known how much of it served.
        row = replace(known, established=None)
    return _IntentOutcome(intent, outcome, row, is_gone)


async def _read_object(number: int, member: MemberCluster, intent: Intent, on_fault: OnFault) -> _IntentObject | None:
    try:
        async with asyncio.timeout(timing.PROMPT_S):
            live = await member.find(intent.gvk, intent.identity.namespace, intent.identity.name)
    except KindNotServed:
        if await _is_served(member, intent):
            return None
        return _IntentObject(intent_id=number, intent=intent, live=None, is_seen=False)
    except (MemberClusterError, TimeoutError):
        return None  # Later, when the cluster answers.
    except Exception as error:
        on_fault(intent, error)
        return None
    return _IntentObject(intent_id=number, intent=intent, live=live)


async def _is_served(member: MemberCluster, intent: Intent) -> bool:
    """Return whether the kind may be served all the same: some proxy answered that there is no such page."""
    try:
        async with asyncio.timeout(timing.PROMPT_S):
            return intent.gvk in (await member.discover(refresh=True)).kinds
    except (MemberClusterError, TimeoutError):
        return True


def _owner(each: _IntentObject, fleet: Fleet) -> OwnershipRecord | None:
    """Our mark on the object, if it is ours by more than a label that anybody could have copied."""
    if each.live is None or not holds_field(each.live, (field_manager(fleet.settings.name),)):
        return None
    return ownership_of(each.live, fleet_names(fleet.settings)).owner
