"""Copies that are not as wanted, or not well, as needs: which of them are one, and the words of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from reconciler.api.ledger import EventKind
from reconciler.api.plan import HeldBy
from reconciler.api.refs import Identity
from reconciler.observations import PATIENCE_S, age_s, is_waiting, timer_of
from reconciler.report.status.remedies import behind
from reconciler.report.views.view_inputs import ViewModel
from reconciler.report.views.view_shapes import Alert, AlertKind, Weight
from reconciler.state import Degraded, Failed, Fought, Frozen, Held, NotKnown, ObjectState, Progressing, Refused

_NAMED: Final = 3


class _Kind(NamedTuple):
    """The words of alerts of a kind. `begins`: the event with which their episode begins."""

    what: AlertKind
    title: str = "{these} {are} held"
    weight: Weight = Weight.WARNING
    begins: EventKind | None = None


_ALTERED: Final = "altered"
"""Of a failure: it was written, and the cluster made something else of it."""
_KINDS: Final[Mapping[type | str, _Kind]] = {
    Failed: _Kind(AlertKind.FAILED, "{these} cannot be written", Weight.ERROR, EventKind.FAILED),
    _ALTERED: _Kind(
        AlertKind.FAILED, "{these} {are} changed by the cluster when written", Weight.ERROR, EventKind.FAILED
    ),
    Refused: _Kind(
        AlertKind.REFUSED, "{these}: an object that is not ours is in the way", Weight.ERROR, EventKind.OBJECT_REFUSED
    ),
    Fought: _Kind(AlertKind.FOUGHT, "{these}: {who} keeps undoing our changes", begins=EventKind.FIGHT_DETECTED),
    Frozen: _Kind(AlertKind.FROZEN, "{these} {are} frozen"),
    NotKnown: _Kind(AlertKind.PROBLEM, "{these} cannot be read"),
    Degraded: _Kind(AlertKind.DEGRADED, "{these} {are} degraded", Weight.ERROR),
    Progressing: _Kind(AlertKind.STUCK, "{these}: not all of its pods run"),
    HeldBy.GUARD: _Kind(AlertKind.HELD),
    HeldBy.REPLACEMENT: _Kind(AlertKind.HELD),
    HeldBy.MOVE: _Kind(AlertKind.STUCK, "{these}: a move makes no progress"),
    HeldBy.SUSPENDED: _Kind(AlertKind.SUSPENDED, weight=Weight.INFO),
    **dict.fromkeys((HeldBy.SETTINGS, HeldBy.WINDOW, HeldBy.STAGE, HeldBy.OTHERS),
                    _Kind(AlertKind.HELD, weight=Weight.INFO)),
}  # fmt: skip
"""By the state of a copy, or by what holds it."""


class NeedKey(NamedTuple):
    """The key that groups copies into one alert. `identity`: None if equal words of different objects are one."""

    of: type | str
    why: str
    code: str = ""
    identity: Identity | None = None


def keys_of(model: ViewModel, cluster: str, identity: Identity, state: ObjectState) -> Iterator[NeedKey]:
    """Yield the alerts of a copy: of its sync and of its health. A frozen copy keeps its earlier alerts."""
    if isinstance(state.sync, Frozen):
        yield NeedKey(Frozen, state.sync.by)
    match state.sync.last if isinstance(state.sync, Frozen) else state.sync:
        case Failed(why=why, is_altered=is_altered):
            yield NeedKey(_ALTERED if is_altered else Failed, why)
        case Refused(why=why, code=code):
            yield NeedKey(Refused, why, code, identity)
        case Fought(managers=managers):
            yield NeedKey(Fought, ", ".join(managers), "", identity)
        case NotKnown(why=why):
            yield NeedKey(NotKnown, why)
        case Held(why=why, by=HeldBy.MOVE):
            since = model.journal.timers.get(timer_of(identity, cluster))
            waits = any(map(is_waiting, model.changes(cluster, identity)))
            if waits and since is not None and age_s(since, model.now) >= PATIENCE_S:
                yield NeedKey(HeldBy.MOVE, why, "", identity)
        case Held(why=why, by=by, order=order) if by is HeldBy.GUARD or not order:
            # A copy that a person's order suspends is covered by the alert of the suspension.
            yield NeedKey(by, why)
    if isinstance(state.health, Degraded) or (isinstance(state.health, Progressing) and state.health.reason):
        yield NeedKey(type(state.health), state.health.why, "", identity)


def order_of(key: NeedKey, copies: Sequence[tuple[str, Identity]]) -> tuple[Weight, AlertKind, int, str]:
    """Return the properties by which the need of these copies is ordered, without the rest of it."""
    return _KINDS[key.of].weight, _KINDS[key.of].what, len(copies), _title(key, copies)


def need_of(model: ViewModel, key: NeedKey, copies: Sequence[tuple[str, Identity]]) -> Alert:
    """The need of these copies."""
    cluster, identity = copies[0]
    clusters, identities = {name for name, _ in copies}, {each for _, each in copies}
    state = model.state(cluster, identity)
    assert state is not None, "its alert was made of it"
    last = state.sync.last if isinstance(state.sync, Frozen) and key.of is not Frozen else state.sync
    cause = behind(model.facts, cluster, identity, state.health if key.of in _HEALTHS or last is None else last)
    todo = cause.todo
    if key.of is HeldBy.MOVE:
        todo = "see why the new copy does not become ready, or take the edit back"
    who = cause.who or model.author(cause.revision) if todo else None
    why = key.why
    if key.of is Fought:
        fought = model.facts.fights.get((cluster, identity))
        why = fought.why if fought is not None else ""
    return Alert(
        weight=_KINDS[key.of].weight,
        what=_KINDS[key.of].what,
        title=model.text(_title(key, copies)),
        why=model.text(why),
        cluster=cluster if len(clusters) == 1 else None,
        resource=model.resource(cluster, identity) if len(identities) == 1 else None,
        count=len(copies),
        since=min(filter(None, (_since(model, key, *copy) for copy in copies[:_COPIES_MAX])), default=None),
        who=model.text(who) if who else None,
        revision=cause.revision or None,
        where=cause.source or None,
        todo=model.text(todo) or None,
        confirm=model.picture.round.plan.held_digest or None if key.of is HeldBy.GUARD else None,
    )


_COPIES_MAX: Final = 1000
"""Of so many copies it is looked up since when."""


_HEALTHS: Final = (Degraded, Progressing)


def _title(key: NeedKey, copies: Sequence[tuple[str, Identity]]) -> str:
    are = "is" if len(copies) == 1 else "are"
    return _KINDS[key.of].title.format(these=these_copies(copies), are=are, who=key.why or "somebody")


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
    first = [name for name, _ in zip(names, range(_NAMED), strict=False)]
    return ", ".join(first) + (", …" if total > len(first) else "")


def _since(model: ViewModel, key: NeedKey, cluster: str, identity: Identity) -> str | None:
    """Return the time of its start, from history or the clusters; None if unknown."""
    begins = _KINDS[key.of].begins
    if begins is not None:
        return model.journal.since(begins, f"{identity} @ {cluster}")
    if key.of is HeldBy.MOVE:
        return model.journal.timers.get(timer_of(identity, cluster))
    if key.of is HeldBy.GUARD:
        return model.journal.held_since.get(cluster)
    workload = model.workload(cluster, identity) if key.of in _HEALTHS else None
    return (workload.unhealthy_since or None) if workload is not None else None
