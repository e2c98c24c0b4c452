"""Copies that are not as wanted, or not well, as needs: which of them are one, and the words of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from reconciler.api.ledger import EventKind
from reconciler.api.plan import HeldBy
from reconciler.api.refs import Identity
from reconciler.observations import PATIENCE_S, age_s, is_waiting, timer_of
from reconciler.report.status.remedies import Behind, behind
from reconciler.report.views.view_inputs import ViewModel
from reconciler.report.views.view_shapes import Alert, AlertKind, Weight
from reconciler.state import (
    Degraded,
    Failed,
    Fought,
    Frozen,
    Held,
    NotKnown,
    ObjectState,
    Progressing,
    Refused,
    SyncState,
)

_ALTERED: Final = "altered"
"""Of a failure: it was written, and the cluster made something else of it."""
_PODS: Final = "pods"
"""Of what is stuck: pods that cannot be made or find no node, of a workload that is not degraded yet."""
_NAMED: Final = 3
"""So many of many are named."""


class NeedKey(NamedTuple):
    """The key that groups copies into one alert. `identity`: None if equal words of different objects are one."""

    what: AlertKind
    why: str
    by: str = ""
    identity: Identity | None = None


def key_of(sight: ViewModel, cluster: str, identity: Identity, state: ObjectState) -> Iterator[NeedKey]:
    """Yield the alerts of a copy: of its sync and of its health. A frozen copy keeps its earlier alerts."""
    if isinstance(state.sync, Frozen):
        yield NeedKey(AlertKind.FROZEN, state.sync.by)
    last = state.sync.last if isinstance(state.sync, Frozen) else state.sync
    if last is not None:
        yield from _sync_keys(sight, cluster, identity, last)
    if isinstance(state.health, Degraded):
        yield NeedKey(AlertKind.DEGRADED, state.health.why, "", identity)
    elif isinstance(state.health, Progressing) and state.health.reason:
        yield NeedKey(AlertKind.STUCK, state.health.why, _PODS, identity)


def _sync_keys(sight: ViewModel, cluster: str, identity: Identity, sync: SyncState) -> Iterator[NeedKey]:
    if isinstance(sync, Failed):
        yield NeedKey(AlertKind.FAILED, sync.why, _ALTERED if sync.is_altered else "")
    elif isinstance(sync, Refused):
        yield NeedKey(AlertKind.REFUSED, sync.why, sync.code, identity)
    elif isinstance(sync, Fought):
        yield NeedKey(AlertKind.FOUGHT, ", ".join(sync.managers), "", identity)
    elif isinstance(sync, NotKnown):
        yield NeedKey(AlertKind.PROBLEM, sync.why)
    elif isinstance(sync, Held) and sync.by is HeldBy.GUARD:
        yield NeedKey(AlertKind.HELD, sync.why, sync.by)
    elif isinstance(sync, Held) and sync.by is HeldBy.MOVE:
        since = sight.noted.timers.get(timer_of(identity, cluster))
        waits = any(map(is_waiting, sight.changes(cluster, identity)))
        if waits and since is not None and age_s(since, sight.now) >= PATIENCE_S:
            yield NeedKey(AlertKind.STUCK, sync.why, "", identity)
    elif isinstance(sync, Held) and not sync.order:
        # A copy that a person's order suspends is covered by the alert of the suspension.
        yield NeedKey(AlertKind.SUSPENDED if sync.by is HeldBy.SUSPENDED else AlertKind.HELD, sync.why, sync.by)


def order_of(key: NeedKey, copies: Sequence[tuple[str, Identity]]) -> tuple[Weight, AlertKind, int, str]:
    """Return the properties by which the need of these copies is ordered, without the rest of it."""
    return _weight(key), key.what, len(copies), _title(key, copies)


def need_of(sight: ViewModel, key: NeedKey, copies: Sequence[tuple[str, Identity]]) -> Alert:
    """The need of these copies."""
    cluster, identity = copies[0]
    clusters, identities = {name for name, _ in copies}, {each for _, each in copies}
    found = _behind(sight, key, cluster, identity)
    who = found.who or sight.author(found.revision) if found.todo else None
    why = key.why
    if key.what is AlertKind.FOUGHT:
        fought = sight.facts.fights.get((cluster, identity))
        why = fought.why if fought is not None else ""
    return Alert(
        weight=_weight(key),
        what=key.what,
        title=sight.text(_title(key, copies)),
        why=sight.text(why),
        cluster=cluster if len(clusters) == 1 else None,
        resource=sight.resource(cluster, identity) if len(identities) == 1 else None,
        count=len(copies),
        since=min(filter(None, (_since(sight, key, *copy) for copy in copies[:_LOOKED_UP])), default=None),
        who=sight.text(who) if who else None,
        revision=found.revision or None,
        where=found.source or None,
        todo=sight.text(found.todo) or None,
        confirm=sight.picture.round.plan.held_digest or None if key.by == HeldBy.GUARD else None,
    )


def _behind(sight: ViewModel, key: NeedKey, cluster: str, identity: Identity) -> Behind:
    state = sight.state(cluster, identity)
    assert state is not None, "its alert was made of it"
    last = state.sync.last if isinstance(state.sync, Frozen) and key.what is not AlertKind.FROZEN else state.sync
    is_health = key.what is AlertKind.DEGRADED or key.by == _PODS
    found = behind(sight.facts, cluster, identity, state.health if is_health or last is None else last)
    if key.what is AlertKind.STUCK and key.by != _PODS:
        return replace(found, todo="see why the new copy does not become ready, or take the edit back")
    return found


_LOOKED_UP: Final = 1000
"""Of so many copies it is looked up since when."""


def _weight(key: NeedKey) -> Weight:
    if key.what in (AlertKind.FAILED, AlertKind.DEGRADED, AlertKind.REFUSED):
        return Weight.ERROR
    if key.by in (HeldBy.SETTINGS, HeldBy.WINDOW, HeldBy.STAGE, HeldBy.OTHERS) or key.what is AlertKind.SUSPENDED:
        return Weight.INFO
    return Weight.WARNING


_TITLES: Final = {
    AlertKind.FAILED: "{these} cannot be written",
    AlertKind.REFUSED: "{these}: an object that is not ours is in the way",
    AlertKind.FOUGHT: "{these}: {who} keeps undoing our changes",
    AlertKind.FROZEN: "{these} {are} frozen",
    AlertKind.PROBLEM: "{these} cannot be read",
    AlertKind.STUCK: "{these}: a move makes no progress",
    AlertKind.DEGRADED: "{these} {are} degraded",
    _ALTERED: "{these} {are} changed by the cluster when written",
    _PODS: "{these}: not all of its pods run",
}
"""By what an alert is by, else by its kind; any other one is of something that is held."""


def _title(key: NeedKey, copies: Sequence[tuple[str, Identity]]) -> str:
    words = _TITLES.get(key.by) or _TITLES.get(key.what, "{these} {are} held")
    are = "is" if len(copies) == 1 else "are"
    return words.format(these=these_copies(copies), are=are, who=key.why or "somebody")


def these_copies(copies: Sequence[tuple[str, Identity]]) -> str:
    """Return `Deployment demo/web in m1`, `Deployment demo/web in 40 clusters (c001, …)`, or `7 Pods (…) in m1`."""
    clusters = list(dict.fromkeys(name for name, _ in copies))
    identities = list(dict.fromkeys(identity for _, identity in copies))
    if len(identities) == 1:
        what = str(identities[0])
    else:
        kinds = {identity.kind for identity in identities}
        what = f"{len(identities)} {f'{next(iter(kinds))}s' if len(kinds) == 1 else 'objects'}"
        what += f" ({_first(map(str, identities[: _NAMED + 1]), len(identities))})"
    if len(clusters) == 1:
        return f"{what} in {clusters[0]}"
    return f"{what} in {len(clusters)} clusters ({_first(iter(clusters[: _NAMED + 1]), len(clusters))})"


def _first(names: Iterator[str], total: int) -> str:
    shown = [name for name, _ in zip(names, range(_NAMED), strict=False)]
    return ", ".join(shown) + (", …" if total > len(shown) else "")


_BEGINNINGS: Final = {
    AlertKind.FAILED: EventKind.FAILED,
    AlertKind.REFUSED: EventKind.OBJECT_REFUSED,
    AlertKind.FOUGHT: EventKind.FIGHT_DETECTED,
}


def _since(sight: ViewModel, key: NeedKey, cluster: str, identity: Identity) -> str | None:
    """Return the time of its start, from history or the clusters; None if unknown."""
    if key.what in _BEGINNINGS:
        return sight.noted.since(_BEGINNINGS[key.what], f"{identity} @ {cluster}")
    if key.what is AlertKind.STUCK and key.by != _PODS:
        return sight.noted.timers.get(timer_of(identity, cluster))
    if key.by == HeldBy.GUARD:
        return sight.noted.held_since.get(cluster)
    if key.what is AlertKind.DEGRADED or key.by == _PODS:
        seen = sight.workload(cluster, identity)
        return (seen.unhealthy_since or None) if seen is not None else None
    return None
