"""Requests whose answers never came, since a connection broke or the process died: what became of their objects.

Each open intent's object is looked at, and the intent closed. Source: design#intents: an open intent means "look at
that object first"; design#promise-4.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.api.clusters import LiveObject
from reconciler.api.fleet import Fleet
from reconciler.api.ledger import ARRIVES, AppliedRow, Intent, IntentEnd, IntentOutcome, JournalSnapshot
from reconciler.api.plan import Action
from reconciler.api.refs import Identity
from reconciler.containment import try_call
from reconciler.controller import timing
from reconciler.controller.reading.members import Reachable, told_fault
from reconciler.controller.reading.read_clusters import is_assumed
from reconciler.controller.round.mark import is_hook_record
from reconciler.errors import KindNotServed, MemberClusterError, ObjectNotFound
from reconciler.journal.sqlite_journal import Journal
from reconciler.kube.client import MemberCluster
from reconciler.ownership import OwnershipRecord, field_manager, holds_field, ownership_of

TellFault = Callable[[Intent, Exception], None]

_LEAVES = (Action.DELETE, Action.RELEASE)


class _IntentObject(Struct, frozen=True, kw_only=True):
    """The object of an intent as it is now; `live` None: it is not there, or, unless `is_seen`, could not be seen."""

    intent_id: int
    intent: Intent
    live: LiveObject | None
    is_seen: bool = True


class _IntentOutcome(Struct, frozen=True, kw_only=True):
    """The journal's changes for it."""

    outcome: IntentOutcome
    rows: tuple[AppliedRow, ...]
    removed: tuple[tuple[str, Identity], ...]


class Recovered(Struct, frozen=True, kw_only=True):
    """By cluster what the intents that were closed were about."""

    about: Mapping[str, frozenset[Identity]] = field(default_factory=dict)


def _is_lost(_: Intent) -> bool:
    return True


def _log_fault(intent: Intent, fault: Exception) -> None:
    told_fault(intent.cluster, fault, intent.identity)


async def recover(
    journal: Journal,
    reachable: Reachable,
    fleet: Fleet,
    is_lost: Callable[[Intent], bool] = _is_lost,
    tell: TellFault = _log_fault,
) -> Recovered:
    """Close open intents, as far as their clusters answer.

    `is_lost`: whether nobody waits for the answer any more. `tell`: called for a fault of ours; its intent stays open.
    Their effects are recorded as if the answer had arrived: a created object must be known by its uid, or nobody could
    ever delete it. The next round compares and schedules anew.
    """
    due = {
        intent_id: (member, intent)
        for intent_id, intent in journal.open_intents().items()
        if is_lost(intent) and isinstance(member := reachable.get(intent.cluster), MemberCluster)
    }
    seen_now = await asyncio.gather(*(_seen(intent_id, *pair, tell) for intent_id, pair in due.items()))
    ledger = journal.ledger()
    judged = [(each, told) for each in seen_now if each is not None and (told := _judged(each, ledger, fleet, tell))]
    if not judged:
        return Recovered()
    journal.finish(
        [told.outcome for _, told in judged],
        applied=[row for _, told in judged for row in told.rows],
        removed=[found for _, told in judged for found in told.removed],
    )
    return Recovered(about=_by_cluster(each.intent for each, _ in judged))


def _by_cluster(intents: Iterable[Intent]) -> dict[str, frozenset[Identity]]:
    found: dict[str, set[Identity]] = {}
    for intent in intents:
        found.setdefault(intent.cluster, set()).add(intent.identity)
    return {cluster: frozenset(identities) for cluster, identities in found.items()}


def _judged(
    each: _IntentObject, ledger: Mapping[str, Mapping[Identity, AppliedRow]], fleet: Fleet, tell: TellFault
) -> _IntentOutcome | None:
    """The boundary of one request without an answer: None: nothing is known of its object, for a fault of ours."""

    def judge() -> _IntentOutcome:
        return _IntentOutcome(
            outcome=_outcome(each, fleet),
            rows=tuple(_rows([each], ledger, fleet)),
            removed=tuple(_removed([each], ledger, fleet)),
        )

    found = try_call(judge)
    if found.fault is not None:
        tell(each.intent, found.fault)
    return found.value


async def answered(known: JournalSnapshot, reachable: Reachable, fleet: Fleet) -> JournalSnapshot:
    """Return the state with the visible effects of unanswered requests; nothing is recorded."""
    due = [
        _seen(number, member, intent, _log_fault)
        for number, intent in enumerate(known.unanswered)
        if isinstance(member := reachable.get(intent.cluster), MemberCluster)
    ]
    seen_now = [each for each in await asyncio.gather(*due) if each is not None]
    judged = [(each, told) for each in seen_now if (told := _judged(each, known.ledger, fleet, _log_fault))]
    ledger = {name: dict(rows) for name, rows in known.ledger.items()}
    for each, _ in judged:
        rows = ledger.get(each.intent.cluster, {})
        if each.intent.identity in rows and is_assumed(rows[each.intent.identity]):
            del rows[each.intent.identity]
    for _, told in judged:
        for cluster, identity in told.removed:
            ledger.get(cluster, {}).pop(identity, None)
        for row in told.rows:
            ledger.setdefault(row.cluster, {})[row.identity] = row
    seen = {each.intent_id for each, _ in judged}
    unanswered = (intent for number, intent in enumerate(known.unanswered) if number not in seen)
    return replace(
        known,
        ledger={name: dict(sorted(ledger[name].items())) for name in sorted(ledger) if ledger[name]},
        unanswered=tuple(unanswered),
    )


async def _seen(intent_id: int, member: MemberCluster, intent: Intent, tell: TellFault) -> _IntentObject | None:
    try:
        async with asyncio.timeout(timing.PROMPT_S):
            live = await member.get(intent.gvk, intent.identity.namespace, intent.identity.name)
    except ObjectNotFound:
        live = None
    except KindNotServed:
        return (
            None
            if await _is_served(member, intent)
            else _IntentObject(intent_id=intent_id, intent=intent, live=None, is_seen=False)
        )
    except (MemberClusterError, TimeoutError):
        return None  # Later, when the cluster answers.
    except Exception as error:
        tell(intent, error)
        return None
    return _IntentObject(intent_id=intent_id, intent=intent, live=live)


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
    return ownership_of(each.live, fleet.settings.name, fleet.settings.previous_names).owner


def _outcome(each: _IntentObject, fleet: Fleet) -> IntentOutcome:
    is_ours = _owner(each, fleet) is not None
    if each.is_seen and each.intent.action in (ARRIVES if is_ours else _LEAVES):
        return IntentOutcome(each.intent_id, IntentEnd.DONE, "its answer was lost; seen to be done")
    return IntentOutcome(
        each.intent_id, IntentEnd.SUPERSEDED, "its answer was lost; seen not to be done, and decided anew"
    )


def _rows(
    found: Iterable[_IntentObject], ledger: Mapping[str, Mapping[Identity, AppliedRow]], fleet: Fleet
) -> Iterable[AppliedRow]:
    """Rows for objects that arrived and that the journal has no record of, from their marks.

    Of one that was updated it is no longer known how much of it served.
    """
    for each in found:
        owner, intent = _owner(each, fleet), each.intent
        row = ledger.get(intent.cluster, {}).get(intent.identity)
        if row is not None and row.established is not None and intent.action not in _LEAVES:
            row = replace(row, established=None)
            yield row
        if owner is None or each.live is None or intent.action not in ARRIVES or (row and row.uid == each.live.uid):
            continue
        yield AppliedRow(
            cluster=intent.cluster,
            gvk=intent.gvk,
            identity=intent.identity,
            uid=each.live.uid,
            policy=str(owner.policy) if owner.policy else "",
            keep=owner.keep,
            flavor=owner.flavor,
            replicas=owner.replicas,
            dependency=owner.dependency,
            revision=intent.revision,
        )


def _removed(
    found: Iterable[_IntentObject], ledger: Mapping[str, Mapping[Identity, AppliedRow]], fleet: Fleet
) -> Iterable[tuple[str, Identity]]:
    """Yield what has left. The record of a hook stays; a round removes it if nothing wants the hook any more."""
    for each in found:
        row = ledger.get(each.intent.cluster, {}).get(each.intent.identity)
        is_record = row is not None and is_hook_record(row)
        if each.is_seen and each.intent.action in _LEAVES and _owner(each, fleet) is None and not is_record:
            yield each.intent.cluster, each.intent.identity
