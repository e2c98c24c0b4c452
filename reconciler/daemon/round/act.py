"""Carry out a plan: cluster by cluster side by side, wave after wave, each request journaled before it is sent.

Only an answer closes an intent. Where it was lost, the intent stays open until `recover` has looked at the object.
One bad object or cluster never holds up the others. Source: design#intents; design#waves; design#lost-answers;
design#promise-4; design#promise-7.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Final, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.adapters.clock import Clock, SystemClock
from reconciler.adapters.journal.journal import Journal
from reconciler.adapters.kube.bounds.shared_slots import SharedSlots
from reconciler.adapters.kube.client import MemberCluster
from reconciler.daemon.round.perform import Done, perform
from reconciler.errors import MemberClusterError
from reconciler.interpreters.registry import Registry
from reconciler.model.ledger import AppliedRow, Intent, IntentEnd, IntentOutcome
from reconciler.model.plan import Action, Change, Plan
from reconciler.model.refs import Identity
from reconciler.report.mask import Masker
from reconciler.stages.deletion import is_held_by_number, losses_of
from reconciler.stages.moves import still_established
from reconciler.stages.ownership import read_owner, recorded_digest
from reconciler.stages.state import HealthState, health_of

_T = TypeVar("_T")
_LEAVES = (Action.DELETE, Action.RELEASE)


class Result(Struct, frozen=True, kw_only=True):
    """How one change ended. `error` is empty when it was made.

    `is_open`: it failed, and may have been made all the same; its object has to be looked at.
    """

    change: Change
    error: str = ""
    is_open: bool = False
    uid: str = ""
    resource_version: str = ""
    health: HealthState | None = None
    """How the object was when it was written; None: it left, or was not written."""


GROUP: Final = 128
"""So many changes of a cluster share a commit of the journal before they are sent, and one after it."""
AT_ONCE: Final = 16
"""Of these so many have a task and a body at one time: as many as requests may be under way to a cluster."""
AT_ONCE_IN_ALL: Final = 256
"""The same over all clusters. A change that takes long counts no longer, so that no cluster waits for another one."""
_SLOW_AFTER_S: Final = 1.0


def all_turns() -> SharedSlots:
    """The places that changes of all clusters share."""
    return SharedSlots(AT_ONCE_IN_ALL, _SLOW_AFTER_S)


async def _never_lost(_: MemberCluster) -> None:
    return None


class Acting(Struct, frozen=True, kw_only=True):
    """Who acts, on what, and who is told."""

    members: Mapping[str, MemberCluster]
    journal: Journal
    fleet: str
    revision: str
    interpreters: Registry
    tell: Callable[[Result], None] = lambda result: None
    clock: Clock = field(default_factory=SystemClock)
    lost: Callable[[MemberCluster], Awaitable[MemberClusterError | None]] = _never_lost
    """Whether the fleet is no longer held in a cluster, and why: asked before what cannot be taken back."""
    confirmed: frozenset[tuple[str, Identity]] = frozenset()
    """Copies that go with a person's consent: the guards do not count them."""
    turns: SharedSlots = field(default_factory=all_turns)
    made: Callable[[str, Sequence[Result]], None] = lambda cluster, results: None
    """Told of the results in a cluster as soon as they are journaled."""


def not_held(changes: Iterable[Change], error: MemberClusterError) -> tuple[Result, ...]:
    """Changes that are due in a cluster where the fleet could not be held, as failures."""
    return tuple(Result(change=change, error=f"the fleet cannot be held there: {error.message}") for change in changes)


def _why_stays(change: Change, failed: Collection[Identity]) -> str:
    """Why a change is not begun after others failed; empty: it may be."""
    owner = min(change.after.intersection(failed), default=None)
    return f"it stays, since {owner} could not be deleted" if owner is not None else ""


Waves = tuple[tuple[Change, ...], ...]
"""What is written in one cluster: a wave in no particular order, one wave after the other."""


def waves_by_cluster(plan: Plan) -> dict[str, Waves]:
    """The waves of a plan, cluster by cluster."""
    found: dict[str, list[tuple[Change, ...]]] = {}
    for wave in plan.waves:
        of_wave: dict[str, list[Change]] = {}
        for index in wave:
            of_wave.setdefault(plan.changes[index].cluster, []).append(plan.changes[index])
        for cluster, changes in of_wave.items():
            found.setdefault(cluster, []).append(tuple(changes))
    return {cluster: tuple(waves) for cluster, waves in sorted(found.items())}


def as_confirmed(plan: Plan, acting: Acting) -> Acting:
    """Acting with the consent that came with the plan: what a person has looked at counts no more.

    Neither what goes now nor what went before it.
    """
    if plan.confirmed and any(
        (change.cluster, change.identity) in plan.confirmed and is_held_by_number(change) for change in plan.changes
    ):
        acting.journal.forget_losses()
    return replace(acting, confirmed=plan.confirmed)


async def act(plan: Plan, acting: Acting) -> tuple[Result, ...]:
    """Results in the order of the plan; held changes have none.

    Raises:
        JournalError: nothing is sent that could not be journaled first.
    """
    results: list[Result] = []
    acting = replace(as_confirmed(plan, acting), made=lambda cluster, made: results.extend(made))
    clusters = waves_by_cluster(plan).items()
    await asyncio.gather(*(act_in(acting.members[cluster], waves, acting) for cluster, waves in clusters))
    order = {id(change): index for index, change in enumerate(plan.changes)}
    return tuple(sorted(results, key=lambda result: order[id(result.change)]))


async def act_in(member: MemberCluster, waves: Waves, acting: Acting) -> None:
    """Make one cluster's part of a plan. `acting.made` is told what comes of it; nothing is kept here.

    Raises:
        JournalError: nothing is sent that could not be journaled first.
    """
    lost: MemberClusterError | None = None
    failed: set[Identity] = set()
    for number, wave in enumerate(waves):
        why = [_why_stays(change, failed) for change in wave]
        left = [Result(change=change, error=reason) for change, reason in zip(wave, why, strict=True) if reason]
        due = [change for change, reason in zip(wave, why, strict=True) if not reason]
        if number and lost is None and any(change.action in _LEAVES for change in due):
            lost = await acting.lost(member)
        if lost is not None:
            left += not_held(due, lost)
        for result in left:
            acting.tell(result)
        if left:
            acting.made(member.name, left)
            failed |= {result.change.identity for result in left}
        if lost is None:
            failed |= await _wave(member, due, acting)


async def _wave(member: MemberCluster, changes: Sequence[Change], acting: Acting) -> set[Identity]:
    """Make all changes of one wave in one cluster, group by group: what it takes at one time does not grow with it.

    What could not be made.
    """
    failed: set[Identity] = set()
    for begin in range(0, len(changes), GROUP):
        results = await _group(member, changes[begin : begin + GROUP], acting)
        acting.made(member.name, results)
        failed.update(result.change.identity for result in results if result.error)
    return failed


async def _group(member: MemberCluster, changes: Sequence[Change], acting: Acting) -> list[Result]:
    """Changes that may be made in any order. One commit before the requests and one after them."""
    counted = [change for change in changes if (change.cluster, change.identity) not in acting.confirmed]
    losses = losses_of(counted, acting.clock.now())
    intents = acting.journal.begin((_intent(change, acting.revision) for change in changes), losses)
    masker = Masker()
    for change in changes:
        masker.change(change)

    async def one(change: Change) -> tuple[Result, Done | None]:
        try:
            async with acting.turns.slot():
                done = await perform(member, change, acting.fleet, acting.interpreters)
        except MemberClusterError as error:
            # What an API server says may quote what was sent to it.
            text = masker.text(error.message)
            result = Result(change=change, error=text, is_open=not error.changed_nothing)
            acting.tell(result)
            return result, None
        result = Result(
            change=change, uid=done.uid, resource_version=done.resource_version, health=_health(change, done, acting)
        )
        acting.tell(result)
        # The body is not kept: there may be thousands.
        return result, replace(done, live=None)

    ended = await _in_turn(one, changes)
    done = [(result.change, made) for result, made in ended if made is not None]
    acting.journal.finish(
        [
            IntentOutcome(intent, IntentEnd.FAILED if result.error else IntentEnd.DONE, result.error)
            for intent, (result, _) in zip(intents, ended, strict=True)
            if not result.is_open
        ],
        applied=[
            *(row for change, made in done if (row := applied_row(change, made, acting)) is not None),
            *_in_doubt([result.change for result, made in ended if made is None], acting),
        ],
        removed=[(member.name, change.identity) for change, _ in done if change.action in _LEAVES],
    )
    return [result for result, _ in ended]


def _health(change: Change, done: Done, acting: Acting) -> HealthState | None:
    if change.action in _LEAVES or done.live is None:
        return None
    return health_of(done.live, acting.interpreters.of(*change.identity[:2]))


async def _in_turn(work: Callable[[Change], Awaitable[_T]], changes: Sequence[Change]) -> list[_T]:
    """What came of each change, in their order. At most `AT_ONCE` of them are worked on at one time."""
    found: dict[int, _T] = {}
    left = iter(enumerate(changes))

    async def worker() -> None:
        for index, change in left:
            found[index] = await work(change)

    await asyncio.gather(*(worker() for _ in range(min(AT_ONCE, len(changes)))))
    return [found[index] for index in range(len(changes))]


def _in_doubt(failed: Iterable[Change], acting: Acting) -> Iterable[AppliedRow]:
    """What is there after a write that failed, and how much of it serves, is only known once it has been looked at."""
    ledger = acting.journal.ledger()
    for change in failed:
        row = ledger.get(change.cluster, {}).get(change.identity)
        if row is not None and row.established is not None and change.action not in _LEAVES:
            yield replace(row, established=None)


def _intent(change: Change, revision: str) -> Intent:
    return Intent(
        cluster=change.cluster,
        gvk=change.gvk,
        identity=change.identity,
        action=change.action,
        uid=change.uid,
        revision=revision,
    )


def applied_row(change: Change, done: Done, acting: Acting) -> AppliedRow | None:
    """What the journal keeps of an object that was written; None when it left, or carries no mark of ours."""
    owner = read_owner(change.manifest) if change.manifest is not None else None
    if owner is None or change.action in _LEAVES:
        return None
    known = acting.journal.ledger().get(change.cluster, {}).get(change.identity)
    return AppliedRow(
        cluster=change.cluster,
        gvk=change.gvk,
        identity=change.identity,
        uid=done.uid,
        manifest_digest=recorded_digest(change.manifest_digest, change.identity, acting.journal.hash_key),
        recorded=change.declared or change.manifest,
        policy=str(owner.policy) if owner.policy else "",
        keep=owner.keep,
        flavor=owner.flavor,
        replicas=owner.replicas,
        dependency=owner.dependency,
        revision=acting.revision,
        source=change.source,
        established=still_established(known, done.uid, owner.replicas),
    )
