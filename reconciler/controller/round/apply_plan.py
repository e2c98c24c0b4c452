"""Carry out a plan: cluster by cluster side by side, wave after wave, each request journaled before it is sent.

Only an answer closes an intent. Where it was lost, the intent stays open until `recover` has looked at the object.
One bad object or cluster never holds up the others; neither does a fault of ours in the work on one of them.
Source: design#intents; design#waves; design#lost-answers; design#promise-4; design#promise-7; design#boundaries.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.api.ledger import AppliedRow, Intent, IntentEnd, IntentOutcome
from reconciler.api.plan import Action, Cause, Change, FieldChange, Plan
from reconciler.api.problem import Problem
from reconciler.api.refs import Identity
from reconciler.clock import Clock, SharedSlots, SystemClock
from reconciler.containment import INTERNAL_ERROR, UNCONTAINED, fault_fields, internal_error, try_await, try_call
from reconciler.controller import timing
from reconciler.controller.round.send_change import altered_text, perform, until_gone
from reconciler.diff import Comparer
from reconciler.errors import OF_THE_MOMENT, MemberClusterError
from reconciler.incremental import by_key
from reconciler.journal.sqlite_journal import Journal
from reconciler.kube.client import MemberCluster
from reconciler.observations import memory_of
from reconciler.ownership import as_marked, missing_marks, read_owner, recorded_digest
from reconciler.planner import is_held_by_number, losses_of
from reconciler.report.mask import Masker
from reconciler.state import HealthState, health_of

log = logging.getLogger("reconciler")

_LEAVES = (Action.DELETE, Action.RELEASE)
_LET_GO = "fix in {cluster} what refuses to let it go, or `git revert {commit}`; it is retried automatically"


class ChangeResult(Struct, frozen=True, kw_only=True):
    """The result of one change. `error` is empty if it was made, and the object is as desired.

    `is_open`: it failed, and may have been made all the same; its object has to be read. `fault`: it failed for a fault
    of the program. `altered`: it was made, and the cluster altered these fields (`before`: live; `after`: sent).
    `is_paced`: the same would fail again, so that it has to wait. `is_sent`: the cluster was asked. `is_terminating`:
    finalizers keep what is deleted. `health`: when written; None: it was not. `todo`: the remedy, as of its error.
    """

    change: Change
    error: str = ""
    todo: str = ""
    is_open: bool = False
    is_paced: bool = False
    is_sent: bool = True
    fault: Problem | None = None
    altered: tuple[FieldChange, ...] = ()
    uid: str = ""
    resource_version: str = ""
    is_terminating: bool = False
    health: HealthState | None = None


GROUP: Final = 128
"""So many changes of a cluster share a commit of the journal before they are sent, and one after it."""
AT_ONCE: Final = 16
"""Of these so many have a task and a body at one time: as many as requests may be under way to a cluster."""
AT_ONCE_IN_ALL: Final = 256
"""The same over all clusters. A change that takes long counts no longer, so that no cluster waits for another one."""


def all_turns() -> SharedSlots:
    """The places that changes of all clusters share."""
    return SharedSlots(AT_ONCE_IN_ALL, timing.SLOW_S)


async def _never_lost(_: MemberCluster) -> None:
    return None


Lock = Callable[[MemberCluster], Awaitable[MemberClusterError | None]]


class WriteContext(Struct, frozen=True, kw_only=True):
    """Inputs and callbacks of a write."""

    members: Mapping[str, MemberCluster]
    journal: Journal
    comparer: Comparer
    """Knows the fleet, and finds fields of a change that the acknowledged object does not have as they were sent."""
    tell: Callable[[ChangeResult], None] = lambda result: None
    clock: Clock = field(default_factory=SystemClock)
    lost: Lock = _never_lost
    """Returns the error of a lost lock in a cluster: called before an irreversible write."""
    confirmed: frozenset[tuple[str, Identity]] = frozenset()
    """Copies that go with a person's consent: the guards do not count them."""
    turns: SharedSlots = field(default_factory=all_turns)
    gone_wait_s: float = field(default_factory=lambda: timing.GONE_WAIT_S)
    """Time that others of the cluster wait for what finalizers keep."""


def not_held(changes: Iterable[Change], error: MemberClusterError) -> tuple[ChangeResult, ...]:
    """Changes that are due in a cluster where the fleet could not be held, as failures."""
    text = f"the fleet cannot be held there: {error.message}"
    return tuple(ChangeResult(change=change, error=text, todo=error.todo, is_sent=False) for change in changes)


def failed_by(fault: Exception, changes: Iterable[Change], *, is_open: bool = True) -> tuple[ChangeResult, ...]:
    """Changes that a fault of the program ended. `is_open` False: nothing was sent for them."""

    def failed(change: Change) -> ChangeResult:
        consequence = "it is looked at, and tried again"
        problem = internal_error(fault, change.source, str(change.identity), consequence, change.cluster)
        error = f"{INTERNAL_ERROR}: {problem.message}"
        return ChangeResult(change=change, error=error, is_open=is_open, is_paced=True, fault=problem)

    return tuple(map(failed, changes))


def report_each(acting: WriteContext, results: Iterable[ChangeResult]) -> None:
    """Report results. A fault of the callback does not change the results."""
    for result in results:
        if (fault := try_call(acting.tell, result).fault) is not None:
            subject = fault_fields(result.change.cluster, result.change.identity)
            log.error("what became of a change could not be told", exc_info=fault, extra=subject)


Waves = tuple[tuple[Change, ...], ...]
"""The writes of one cluster: a wave in no particular order, one wave after the other."""


def waves_by_cluster(plan: Plan) -> dict[str, Waves]:
    """The waves of a plan, cluster by cluster."""
    by_cluster: dict[str, list[tuple[Change, ...]]] = {}
    for wave in plan.waves:
        for cluster, changes in by_key((plan.changes[index].cluster, plan.changes[index]) for index in wave).items():
            by_cluster.setdefault(cluster, []).append(tuple(changes))
    return {cluster: tuple(waves) for cluster, waves in sorted(by_cluster.items())}


def as_confirmed(plan: Plan, acting: WriteContext) -> WriteContext:
    """Apply the plan's confirmation: pending and earlier losses that a person has confirmed count no more."""
    if plan.confirmed and any(change.copy in plan.confirmed and is_held_by_number(change) for change in plan.changes):
        acting.journal.forget_losses()
    if plan.confirmed:
        # Before anything of it is made: the remaining changes are then not the confirmed set.
        acting.journal.keep_losses(replace(acting.journal.losses(), confirmed=plan.left))
    return replace(acting, confirmed=plan.confirmed)


async def act(plan: Plan, acting: WriteContext, lock: Lock = _never_lost) -> tuple[ChangeResult, ...]:
    """Results in the order of the plan; held changes have none. `lock`: as of `act_in`.

    Raises JournalError: nothing is sent that could not be journaled first.
    """
    results: list[ChangeResult] = []
    acting, due = as_confirmed(plan, acting), waves_by_cluster(plan).items()

    async def work(cluster: str, waves: Waves) -> None:
        async for group in act_in(acting.members[cluster], waves, acting, lock):
            results.extend(group)

    await asyncio.gather(*(work(cluster, waves) for cluster, waves in due))
    order = {id(change): index for index, change in enumerate(plan.changes)}
    return tuple(sorted(results, key=lambda result: order[id(result.change)]))


async def act_in(
    member: MemberCluster, waves: Waves, acting: WriteContext, lock: Lock
) -> AsyncIterator[Sequence[ChangeResult]]:
    """Make one cluster's part of a plan; yield results as soon as they are journaled.

    The boundary of the cluster: after a fault of ours it is unknown of all that has no result whether it was made.
    `lock`: takes the lock of the cluster; where it returns an error, nothing is sent.

    Raises JournalError: nothing is sent that could not be journaled first; FleetHeld: of the lock.
    """
    judged: set[Identity] = set()
    try:
        async for results in _results_in(member, waves, acting, lock):
            judged.update(result.change.identity for result in results)
            yield results
    except UNCONTAINED:
        raise
    except Exception as fault:
        failed = failed_by(fault, (change for change in chain.from_iterable(waves) if change.identity not in judged))
        report_each(acting, failed)
        yield failed


async def _results_in(
    member: MemberCluster, waves: Waves, acting: WriteContext, lock: Lock
) -> AsyncIterator[Sequence[ChangeResult]]:
    if (lost := await lock(member)) is not None:
        refused = not_held(chain.from_iterable(waves), lost)
        report_each(acting, refused)
        yield refused
        return
    staying = _NotYetDeleted(member, acting.gone_wait_s)
    for number, wave in enumerate(waves):
        why = [await staying.why(change) for change in wave]
        left = [ChangeResult(change=change, error=reason) for change, reason in zip(wave, why, strict=True) if reason]
        due = [change for change, reason in zip(wave, why, strict=True) if not reason]
        if number and lost is None and any(change.action in _LEAVES for change in due):
            lost = await acting.lost(member)
        if lost is not None:
            left += not_held(due, lost)
        report_each(acting, left)
        if left:
            staying.note_failures(left)
            yield left
        # Make all changes of one wave in one cluster, in groups: memory does not grow with the wave.
        for begin in range(0, len(due) if lost is None else 0, GROUP):
            results = await _group(member, due[begin : begin + GROUP], acting)
            staying.note_failures(results)
            yield results


class _NotYetDeleted:
    """The objects of one cluster that were to leave in earlier waves and have not left."""

    def __init__(self, member: MemberCluster, wait_s: float) -> None:
        self._member, self._wait_s = member, wait_s
        self._failed: set[Identity] = set()
        self._terminating: dict[Identity, Change] = {}

    def note_failures(self, results: Iterable[ChangeResult]) -> None:
        """Note failures, and objects kept by finalizers."""
        for result in results:
            if result.error:
                self._failed.add(result.change.identity)
            elif result.is_terminating:
                self._terminating[result.change.identity] = result.change

    async def why(self, change: Change) -> str:
        """Return why a change is not begun, once the finalizers of others had their time; empty: it may be."""
        owner = min(change.after & self._failed, default=None)
        if owner is not None:
            return f"it stays, since {owner} could not be deleted"
        for identity in sorted(change.after & self._terminating.keys()):
            gone = await try_await(until_gone(self._member, self._terminating[identity], self._wait_s))
            if gone.value is not None or gone.fault is not None:
                self._wait_s = 0.0  # All of them have it together.
                self._failed.add(identity)
                return f"it stays until {identity} has left, which finalizers keep"
            del self._terminating[identity]
        return ""


async def _group(member: MemberCluster, changes: Sequence[Change], acting: WriteContext) -> Sequence[ChangeResult]:
    ended = await try_await(_journaled(member, changes, acting))
    if ended.value is not None:
        return ended.value
    assert ended.fault is not None, "what gives nothing has failed"
    failed = failed_by(ended.fault, changes)
    report_each(acting, failed)
    return failed


async def _journaled(member: MemberCluster, changes: Sequence[Change], acting: WriteContext) -> list[ChangeResult]:
    masker = Masker()
    unmasked = {id(change): fault for change in changes if (fault := try_call(masker.change, change).fault)}
    # What cannot be masked is not sent, since an answer may quote it.
    unsent = [failed_by(fault, [change], is_open=False)[0] for change in changes if (fault := unmasked.get(id(change)))]
    report_each(acting, unsent)
    changes = [change for change in changes if id(change) not in unmasked]
    losses = losses_of([change for change in changes if change.copy not in acting.confirmed], acting.clock.now())
    intents = await acting.journal.shared_commits.begin(
        (
            Intent(
                cluster=change.cluster,
                gvk=change.gvk,
                identity=change.identity,
                action=change.action,
                uid=change.uid,
                revision=acting.comparer.snapshot.fleet.revision,
            )
            for change in changes
        ),
        losses,
    )
    results: dict[int, tuple[ChangeResult, AppliedRow | None]] = {}
    waiting = iter(enumerate(changes))

    async def work() -> None:
        for index, change in waiting:
            results[index] = await _tried(member, change, acting, masker)

    await asyncio.gather(*(work() for _ in range(min(AT_ONCE, len(changes)))))
    ended = [results[index] for index in range(len(changes))]
    acting.journal.finish(
        [
            IntentOutcome(
                intent, IntentEnd.FAILED if result.error and not result.altered else IntentEnd.DONE, result.error
            )
            for intent, (result, _) in zip(intents, ended, strict=True)
            if not result.is_open
        ],
        applied=[
            *(row for _, row in ended if row is not None),
            *_in_doubt([result for result, row in ended if row is None], acting),
        ],
        removed=[
            (member.name, result.change.identity)
            for result, _ in ended
            if not result.error
            and result.change.action in _LEAVES
            and result.change.cause is not Cause.COMPLETED
            and not result.is_terminating
        ],
    )
    return [*unsent, *(result for result, _ in ended)]


async def _tried(
    member: MemberCluster, change: Change, acting: WriteContext, masker: Masker
) -> tuple[ChangeResult, AppliedRow | None]:
    """Make one change within an error boundary; return its result, and the row for the journal."""
    row, leaves, comparer = None, change.action in _LEAVES, acting.comparer
    interpreters = comparer.snapshot.interpreters
    try:
        async with acting.turns.slot():
            live = await perform(member, change, comparer.names, interpreters, acting.gone_wait_s)
        row = applied_row(change, live.uid, acting) if live is not None and not leaves else None
    except UNCONTAINED:
        raise
    except MemberClusterError as error:
        # Messages of an API server may quote the sent object.
        text, is_open = masker.text(error.message), not error.changed_nothing
        is_paced = not isinstance(error, OF_THE_MOMENT)
        has_left = leaves and error.todo == MemberClusterError.todo  # no document to correct
        todo = _LET_GO if has_left else error.todo
        result = ChangeResult(change=change, error=text, todo=todo, is_open=is_open, is_paced=is_paced)
    except Exception as fault:
        (result,) = failed_by(fault, [change])
    else:
        result = ChangeResult(change=change, uid=live.uid if live is not None else change.uid)
        if leaves:
            result = replace(result, is_terminating=live is not None)
        elif live is not None:
            health = health_of(live, interpreters.of(*change.identity[:2]))
            result = replace(result, resource_version=live.resource_version, health=health)
            if row is not None and (altered := comparer.altered(change, live)):
                masked = masker.change(replace(change, fields=altered)).fields
                lost = " and ".join(missing_marks(live.body, comparer.names[:1]))
                text = altered_text(masked) + (f"; without {lost} it is not known as ours" if lost else "")
                result = replace(result, error=masker.text(text), is_paced=True, altered=altered)
                # A round has to read its availability first.
                row = replace(row, established=None, recorded=row.recorded and as_marked(row.recorded, live.body))
    report_each(acting, [result])
    return result, row


def _in_doubt(results: Iterable[ChangeResult], acting: WriteContext) -> Iterable[AppliedRow]:
    """Yield rows of failed writes without their established number, as the object must be read first.

    Of what we deleted or may have, and finalizers may keep, without its uid too: when it goes, nobody else deleted it.
    """
    ledger = acting.journal.ledger()
    for result in results:
        change = result.change
        row = ledger.get(change.cluster, {}).get(change.identity)
        is_replaced = result.is_open and change.action is Action.REPLACE
        if row is None or change.cause is Cause.COMPLETED:
            continue
        if result.is_terminating or is_replaced:
            yield replace(row, uid="", established=None)
        elif result.error and row.established is not None and change.action not in _LEAVES:
            yield replace(row, established=None)


def applied_row(change: Change, uid: str, acting: WriteContext) -> AppliedRow | None:
    """Return the row of an object as a change writes it; None when it carries no mark of ours."""
    owner = read_owner(change.manifest) if change.manifest is not None else None
    if owner is None:
        return None
    known = acting.journal.ledger().get(change.cluster, {}).get(change.identity)
    if known is not None and not known.uid and change.action is Action.UPDATE:
        uid = ""  # It goes all the same.
    memory = memory_of(known, uid, owner.replicas)
    return replace(
        owner.row(change.cluster, change.gvk, change.identity, uid),
        manifest_digest=recorded_digest(change.manifest_digest, change.identity, acting.journal.hash_key),
        recorded=change.declared or change.manifest,
        revision=acting.journal.commit_behind(change, acting.comparer.snapshot.fleet.revision),
        source=change.source,
        established=memory.established,
        base=memory.base,
    )
