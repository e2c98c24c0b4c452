"""The state of one copy, from its facts: the first matching rule counts; lasting conditions of a copy.

No copy is Synced for lack of news: an unread one is Unknown. A condition ends only by evidence of this round: a copy
that was not compared (unreachable, unreadable, frozen, being written) keeps its known state. Source: design#promise-3;
design#history.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from typing import Final, TypeAlias, TypeVar

from reconciler.api.clusters import Read
from reconciler.api.plan import Change, HeldBy
from reconciler.api.problem import Problem, Severity
from reconciler.api.refs import Copy, Identity
from reconciler.api.rollout_progress import NothingWritten
from reconciler.state.state_values import (
    HEALTHY,
    NOMINAL,
    SYNCED,
    Degraded,
    Failed,
    Frozen,
    HealthState,
    Held,
    Left,
    LookedAt,
    Missing,
    NotKnown,
    ObjectState,
    Pending,
    Progressing,
    Refused,
    StateFacts,
    SyncState,
    UnknownHealth,
)

_IN_THE_WAY: Final = frozenset({"object-not-ours", "object-of-another-tool", "object-let-go"})
_UNREAD: Final = "object-not-read"
_LEAVES: Final = frozenset({"being-deleted"})
_KEPT: Final = frozenset({"not-deleted"})


def state_of(facts: StateFacts, cluster: str, identity: Identity) -> ObjectState | None:
    """Return the state of a copy; None: there is none, and none is wanted."""
    if facts.is_left(cluster):
        is_ours = identity in facts.journal.ledger.get(cluster, {})
        return _not_read(Left(facts.last_contact.get(cluster, ""))) if is_ours else None
    why = facts.why_away(cluster)
    if why is not None:
        is_there = identity in facts.journal.ledger.get(cluster, {}) or facts.schedule.is_bound(identity, cluster)
        return _not_read(NotKnown(why, facts.last_contact.get(cluster, ""))) if is_there else None
    compared = _sync(facts, cluster, identity)
    by = facts.why_frozen(cluster, identity)
    is_there = compared is not None or identity in facts.journal.ledger.get(cluster, {})
    sync = Frozen(by, compared) if by is not None and is_there else compared
    if sync is None:
        return None
    if isinstance(sync, NotKnown):
        return _not_read(sync, is_wanted=identity in facts.manifests.get(cluster, {}))
    health = _health(facts, cluster, identity, sync)
    if sync is SYNCED and health is HEALTHY:
        return NOMINAL
    return ObjectState(sync, health, identity in facts.manifests.get(cluster, {}))


def _health(facts: StateFacts, cluster: str, identity: Identity, sync: SyncState) -> HealthState:
    """Return the reported health, and nothing by guess: an unobserved copy is of unknown health."""
    member, reported = facts.members[cluster], facts.health.get(cluster, {}).get(identity)
    row = facts.journal.ledger.get(cluster, {}).get(identity)
    if isinstance(reported, Missing) and row is not None and row.finished:
        # A Job that has done what it was for may be gone.
        return Degraded("it failed, and was deleted then", is_over=True, reason="HookFailed") if row.failed else HEALTHY
    if reported is not None:
        return reported
    is_asked = isinstance(member, Read) and identity in member.under_way
    is_rendered = identity in facts.manifests.get(cluster, {})
    is_leaving = not is_rendered and not isinstance(sync, Failed)
    if is_asked or not (is_rendered or is_leaving):
        return UnknownHealth("its state is not known yet")
    return HEALTHY


def _not_read(sync: NotKnown | Left, *, is_wanted: bool = False) -> ObjectState:
    return ObjectState(sync, UnknownHealth(sync.why), is_wanted)


def _sync(facts: StateFacts, cluster: str, identity: Identity) -> LookedAt | None:
    """Return the last seen state of a copy in a cluster that was read."""
    copy, member = (cluster, identity), facts.members[cluster]
    assert isinstance(member, Read), "the cluster was read"
    problems = tuple(problem for problem in facts.problems.get(identity, ()) if problem.cluster in ("", cluster))
    by_code = {problem.code: problem for problem in problems if problem.cluster == cluster}
    is_wanted = identity in facts.manifests.get(cluster, {})
    if failed := facts.failures.get(copy):
        return failed
    for code in sorted(_IN_THE_WAY & by_code.keys()):
        message = by_code[code].message
        return Refused(code, message if message.startswith(str(identity)) else f"{identity} {message}")
    if _UNREAD in by_code or identity in member.unread:
        why = by_code[_UNREAD].message if _UNREAD in by_code else member.unread[identity]
        return NotKnown(why, facts.last_contact.get(cluster, ""))
    if is_wanted and copy in facts.fights:
        return facts.fights[copy]
    if identity in member.under_way and (is_wanted or copy in facts.changes):
        return Pending("it is being written or read", is_evaluated=False)
    if due := facts.changes.get(copy):
        return _of_changes(facts, due)
    if is_wanted and any(problem.severity is Severity.ERROR for problem in by_code.values()):
        return _failed(problems)
    for code in sorted((_LEAVES | _KEPT) & by_code.keys()):
        message = by_code[code].message
        return Pending(message) if code in _LEAVES else Held(HeldBy.OTHERS, message)
    return SYNCED if is_wanted else _not_rendered(facts, cluster, identity, problems)


def _not_rendered(facts: StateFacts, cluster: str, identity: Identity, problems: Iterable[Problem]) -> LookedAt | None:
    """Return the state of a copy that is bound but not rendered; None if unbound."""
    if not facts.schedule.is_bound(identity, cluster):
        return None
    if any(problem.severity is Severity.ERROR for problem in problems):
        return _failed(problems)
    source = staging.of(identity, cluster) if (staging := facts.schedule.staging) is not None else None
    if isinstance(source, NothingWritten):
        return Held(HeldBy.STAGE, source.why)
    # What is bound and not rendered without a fault stays where it runs, in another cluster.
    return None


def _of_changes(facts: StateFacts, due: tuple[Change, ...]) -> LookedAt:
    """Return the state of a copy with pending changes. A hold counts before pending writes: it stays after them."""
    for change in due:
        if change.hold is not None:
            return Held(change.hold.by, change.hold.why, change.hold.order)
    if facts.schedule.fleet.settings.observe_only:
        return Held(HeldBy.SETTINGS, "spec.mode of the Fleet document is observe: nothing is written")
    return Pending(f"it is to be {due[0].action.done}")


def _failed(problems: Iterable[Problem]) -> Failed:
    first = next(problem for problem in sorted(problems) if problem.severity is Severity.ERROR)
    return Failed(first.message, is_evaluated=False, code=first.code)


T = TypeVar("T")
FOR_A_PERSON: Final = frozenset({HeldBy.GUARD, HeldBy.REPLACEMENT})
"""Holds that a person has to confirm or to allow. A suspension has an alert of its own."""


class ConditionEnd(Enum):
    """It is not known to be so now."""

    OVER = "over"
    """It was looked at, and is so no longer."""
    NOT_EVALUATED = "not evaluated"
    """Nobody looked: it is as it was known to be."""


Verdict: TypeAlias = T | ConditionEnd
"""The state in which a condition holds, or that it is not known to."""
Condition: TypeAlias = Callable[[StateFacts, Copy, ObjectState | None], Verdict[T]]
"""Evaluates one copy. The state is None if nominal, or neither there nor desired."""


def is_evaluated(facts: StateFacts, copy: Copy, state: ObjectState | None) -> bool:
    """Return whether the state of a copy comes from a comparison with its desired state."""
    cluster, identity = copy
    if state is not None:
        return state.sync.is_evaluated
    member = facts.members.get(cluster)
    if facts.is_left(cluster) or not isinstance(member, Read) or facts.why_frozen(cluster, identity) is not None:
        return False
    if identity in member.under_way or identity in member.unread:
        return False
    # That nothing is wanted there follows from absence from the store, which a partial reading does not prove.
    return identity in facts.manifests.get(cluster, {}) or facts.schedule.fleet.is_complete


def refused(facts: StateFacts, copy: Copy, state: ObjectState | None) -> Verdict[Refused]:
    """Return whether an object that is not ours blocks it."""
    sync = state.sync if state is not None else None
    return sync if isinstance(sync, Refused) else _ending(facts, copy, state)


def held_for_person(facts: StateFacts, copy: Copy, state: ObjectState | None) -> Verdict[Held]:
    """Return whether a change waits until a person confirms or allows it."""
    ending = _ending(facts, copy, state)
    for change in facts.changes.get(copy, ()) if ending is ConditionEnd.OVER else ():
        if (hold := change.hold) is not None and hold.by in FOR_A_PERSON:
            return Held(hold.by, hold.why)
    return ending


def degraded(facts: StateFacts, copy: Copy, state: ObjectState | None) -> Verdict[Degraded]:
    """Return whether an object is degraded. One that makes progress, or waits to be removed, has not recovered."""
    health = state.health if state is not None else None
    if isinstance(health, Degraded):
        return health
    is_open = not is_evaluated(facts, copy, state) if state is None else not state.is_wanted
    if is_open or isinstance(health, Progressing | UnknownHealth):
        return ConditionEnd.NOT_EVALUATED
    return ConditionEnd.OVER


def frozen(facts: StateFacts, copy: Copy, state: ObjectState | None) -> Verdict[Frozen]:
    """Return whether a broken file freezes it. A complete reading of the store ends it in any case."""
    if state is not None and isinstance(state.sync, Frozen):
        return state.sync
    return ConditionEnd.OVER if facts.schedule.fleet.is_complete else _ending(facts, copy, state)


def _ending(facts: StateFacts, copy: Copy, state: ObjectState | None) -> ConditionEnd:
    return ConditionEnd.OVER if is_evaluated(facts, copy, state) else ConditionEnd.NOT_EVALUATED
