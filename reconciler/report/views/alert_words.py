"""Copies that are not as wanted, or not well, as needs: which of them are one, and the words of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from reconciler.api.ledger import EventKind
from reconciler.api.plan import HeldBy
from reconciler.api.problem import NOWHERE
from reconciler.api.refs import Identity
from reconciler.observations import PATIENCE_S, age_s, is_waiting, timer_of
from reconciler.report.views.questions import remedy_of
from reconciler.report.views.view_inputs import ViewModel
from reconciler.report.views.view_shapes import Alert, AlertKind, Weight
from reconciler.state import (
    THE_SERVER,
    Degraded,
    Failed,
    Fought,
    Frozen,
    Held,
    NotKnown,
    ObjectState,
    Refused,
    SyncState,
)

_ALTERED: Final = "altered"
"""Of a failure: it was written, and the cluster made something else of it."""
_MEND_ADMISSION: Final = "mend the admission webhook or policy"
_LEAVE_FIELD: Final = "leave the field to it with spec.ignore of the Fleet document"
_NAMED: Final = 3
"""So many of many are named."""
_SPECS: Final = {
    HeldBy.REPLACEMENT: "see `reconciler diff`; it is deleted and created only where its annotation allows that",
    HeldBy.SETTINGS: "the Fleet document says so (spec.mode, spec.drift); `reconciler diff` shows what differs",
    HeldBy.SUSPENDED: "`reconciler resume`, or take the suspension out of the policy",
    HeldBy.WINDOW: "nothing: it is made when the window opens; `spec.windows` of the Fleet document says when",
    HeldBy.STAGE: "nothing here: it is made with the turn of its cluster; `reconciler status` shows the stages",
    HeldBy.OTHERS: "it is made once what it waits for has come or gone; mend what an API server would refuse",
}


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


def _sync_keys(sight: ViewModel, cluster: str, identity: Identity, sync: SyncState) -> Iterator[NeedKey]:
    if isinstance(sync, Failed):
        yield NeedKey(AlertKind.FAILED, sync.why, _ALTERED if sync.is_altered else "")
    elif isinstance(sync, Refused):
        yield NeedKey(AlertKind.REFUSED, sync.why, sync.code, identity)
    elif isinstance(sync, Fought):
        yield NeedKey(AlertKind.FOUGHT, ", ".join(sync.managers), "", identity)
    elif isinstance(sync, NotKnown):
        yield NeedKey(AlertKind.PROBLEM, sync.why)
    elif isinstance(sync, Held):
        yield from _held_key(sight, cluster, identity, sync)


def _held_key(sight: ViewModel, cluster: str, identity: Identity, sync: Held) -> Iterator[NeedKey]:
    if sync.by is HeldBy.GUARD:
        yield NeedKey(AlertKind.HELD, sync.why, sync.by)
    elif sync.by is HeldBy.MOVE:
        since = sight.noted.timers.get(timer_of(identity, cluster))
        waits = any(map(is_waiting, sight.changes(cluster, identity)))
        if waits and since is not None and age_s(since, sight.now) >= PATIENCE_S:
            yield NeedKey(AlertKind.STUCK, sync.why, "", identity)
    elif not sync.order:
        # A copy that a person's order suspends is covered by the alert of the suspension.
        yield NeedKey(AlertKind.SUSPENDED if sync.by is HeldBy.SUSPENDED else AlertKind.HELD, sync.why, sync.by)


def need_of(sight: ViewModel, key: NeedKey, copies: Sequence[tuple[str, Identity]]) -> Alert:
    """The need of these copies."""
    cluster, identity = copies[0]
    title, todo = _words(sight, key, copies)
    clusters, identities = {name for name, _ in copies}, {each for _, each in copies}
    row = sight.facts.journal.ledger.get(cluster, {}).get(identity)
    revision = sight.facts.decision.fleet.revision
    is_of_commit = key.what in (AlertKind.HELD, AlertKind.FAILED, AlertKind.STUCK)
    return Alert(
        weight=_weight(key),
        what=key.what,
        title=sight.text(title),
        why=sight.text(_why(sight, key, cluster, identity)),
        cluster=cluster if len(clusters) == 1 else None,
        resource=sight.resource(cluster, identity) if len(identities) == 1 else None,
        count=len(copies),
        since=min(filter(None, (_since(sight, key, *copy) for copy in copies[:_LOOKED_UP])), default=None),
        who=_who(sight, key, revision if is_of_commit else row.revision if row is not None else ""),
        revision=(revision if is_of_commit else row.revision if row is not None else "") or None,
        where=_where(sight, cluster, identity),
        todo=todo,
        confirm=sight.picture.round.plan.held_digest or None if key.by == HeldBy.GUARD else None,
    )


_LOOKED_UP: Final = 1000
"""Of so many copies it is looked up since when."""


def _weight(key: NeedKey) -> Weight:
    if key.what in (AlertKind.FAILED, AlertKind.DEGRADED, AlertKind.REFUSED):
        return Weight.ERROR
    if key.by in (HeldBy.SETTINGS, HeldBy.WINDOW, HeldBy.STAGE, HeldBy.OTHERS) or key.what is AlertKind.SUSPENDED:
        return Weight.INFO
    return Weight.WARNING


def _words(sight: ViewModel, key: NeedKey, copies: Sequence[tuple[str, Identity]]) -> tuple[str, str | None]:
    """Return the title and the remedy."""
    these = _these(copies)
    match key.what:
        case AlertKind.FAILED if key.by == _ALTERED:
            verb = "is" if len(copies) == 1 else "are"
            return f"{these} {verb} changed by the cluster when written", f"{_MEND_ADMISSION}, or {_LEAVE_FIELD}"
        case AlertKind.FAILED:
            return f"{these} cannot be written", "it is tried again by itself, ever more rarely; mend what is said"
        case AlertKind.REFUSED:
            return f"{these}: an object that is not ours is in the way", remedy_of(key.by)
        case AlertKind.FOUGHT:
            who = key.why or "somebody"
            end = _MEND_ADMISSION if who == THE_SERVER else f"end the writes of {who}"
            todo = f"{end}, or {_LEAVE_FIELD}"
            return f"{these}: {who} keeps undoing our changes", todo
        case AlertKind.FROZEN:
            return (
                f"{these} {'is' if len(copies) == 1 else 'are'} frozen",
                "mend that file, or take it out of the store",
            )
        case AlertKind.PROBLEM:
            return f"{these} cannot be read", "`reconciler doctor` says which rights are missing"
        case AlertKind.STUCK:
            return (
                f"{these}: a move makes no progress",
                "see why the new copy does not become ready, or take the edit back",
            )
        case AlertKind.DEGRADED:
            return (
                f"{these} {'is' if len(copies) == 1 else 'are'} degraded",
                "`reconciler get` and `kubectl describe` show it",
            )
        case _:
            return f"{these} {'is' if len(copies) == 1 else 'are'} held", _how_to_pass(sight, key)


def _how_to_pass(sight: ViewModel, key: NeedKey) -> str | None:
    if key.by != HeldBy.GUARD:
        return _SPECS.get(HeldBy(key.by))
    settings, digest = sight.facts.decision.fleet.settings, sight.picture.round.plan.held_digest
    where = f" ({settings.source})" if settings.source != NOWHERE else ""
    if not digest:
        return "see `reconciler diff`, and take the edit back if it was not meant"
    return (
        f"if it is meant, write spec.guards.confirm: {digest} into the Fleet document{where}, else take the edit back"
    )


def _these(copies: Sequence[tuple[str, Identity]]) -> str:
    """`Deployment demo/web in m1`, `Deployment demo/web in 40 clusters (c001, c002, c003, …)`, `7 Pods (…) in m1`."""
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


def _why(sight: ViewModel, key: NeedKey, cluster: str, identity: Identity) -> str:
    if key.what is not AlertKind.FOUGHT:
        return key.why
    fought = sight.facts.fights.get((cluster, identity))
    return fought.why if fought is not None else ""


_BEGINNINGS: Final = {
    AlertKind.FAILED: EventKind.FAILED,
    AlertKind.REFUSED: EventKind.OBJECT_REFUSED,
    AlertKind.FOUGHT: EventKind.FIGHT_DETECTED,
}


def _since(sight: ViewModel, key: NeedKey, cluster: str, identity: Identity) -> str | None:
    """Return the time of its start, from history or the clusters; None if unknown."""
    if key.what in _BEGINNINGS:
        return sight.noted.since(_BEGINNINGS[key.what], f"{identity} @ {cluster}")
    if key.what is AlertKind.STUCK:
        return sight.noted.timers.get(timer_of(identity, cluster))
    if key.by == HeldBy.GUARD:
        return sight.noted.held_since.get(cluster)
    if key.what is AlertKind.DEGRADED:
        seen = sight.workload(cluster, identity)
        return (seen.unhealthy_since or None) if seen is not None else None
    return None


def _who(sight: ViewModel, key: NeedKey, revision: str) -> str | None:
    """The field manager, or the author of the commit that is behind it."""
    if key.what is AlertKind.FOUGHT:
        return sight.text(key.why) or None
    if key.what is AlertKind.REFUSED:
        return None
    author = sight.author(revision)
    return sight.text(author) if author else None


def _where(sight: ViewModel, cluster: str, identity: Identity) -> str | None:
    """Return its line in the store."""
    template = sight.facts.decision.fleet.templates.get(identity)
    manifest = sight.facts.manifests.get(cluster, {}).get(identity)
    sources = [found.source for found in (template, manifest, *sight.changes(cluster, identity)) if found is not None]
    return next((str(source) for source in sources if source.path), None)
