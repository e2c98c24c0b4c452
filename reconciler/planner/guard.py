"""The brake on deletions that edits of the store cause.

Source: design#guards: per cluster and over the fleet, deletions and releases are held above
min(maxDeletes, max(3, maxDeletePercent)); any Namespace, CRD, PV and PVC is held always, and so is a move of copies or
of replicas that leaves volumes behind (design#volumes-stay), until `confirm` carries the digest of the held changes
(design#confirm); what is left of that set while it is carried out stays confirmed. What was deleted or released within
`window` counts together with what is due (design#guards-window):
a script that removes one file after another must not get further than one commit that removes them all.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from reconciler.api.fleet import Fleet, FleetSettings, Guards, LooseningHold
from reconciler.api.ledger import GuardsInForce, Losses, RecordedLoss
from reconciler.api.plan import NOT_CONFIRMED, Action, Change, Confirmed, HeldBy, Hold
from reconciler.api.policies import Suspension
from reconciler.api.refs import Copy, Identity
from reconciler.api.rollouts import FleetWindow
from reconciler.observations import instant
from reconciler.policy import named_windows
from reconciler.rollouts import approved_since
from reconciler.templates import replicas_moved

ALWAYS_CONFIRMED = frozenset(
    {
        ("", "Namespace"),
        ("apiextensions.k8s.io", "CustomResourceDefinition"),
        ("", "PersistentVolume"),
        ("", "PersistentVolumeClaim"),
    }
)
"""Kinds whose deletion takes data or other objects with it."""

_GOES_ALONG: Final[Mapping[tuple[str, str], str]] = {
    ("", "Namespace"): ": everything in it goes with it, what is not ours too",
    ("apiextensions.k8s.io", "CustomResourceDefinition"): ": all objects of its kind go with it, those of others too",
}

NO_LOSSES = Losses()
_CONFIRMED_FOR: Final = timedelta(days=7)
"""A confirmation without `confirmUntil` ends so long after it was first seen."""
_EPOCH = datetime.fromtimestamp(0, UTC)

ChangeKey = tuple[str, str, Identity]
"""Action, cluster and identity."""


class Guarded(Struct, frozen=True, kw_only=True):
    """The changes, with holds on those that need confirmation.

    `digest` confirms the held ones; empty: none. `confirmed`: the copies that would be held without a person's
    confirmation. `left`: the confirmed changes that are not made yet, to be remembered.
    """

    changes: tuple[Change, ...]
    digest: str = ""
    confirmed: frozenset[Copy] = frozenset()
    left: Confirmed = NOT_CONFIRMED


def stricter(before: Guards, after: Guards) -> Guards:
    """Return the guards of `after` with the stricter limits of both. Source: design#guards-stricter."""
    return replace(
        after,
        max_deletes=min(before.max_deletes, after.max_deletes),
        max_delete_percent=min(before.max_delete_percent, after.max_delete_percent),
        window_s=max(before.window_s, after.window_s),
    )


def guards_in_force(record: GuardsInForce | None, written: Guards, revision: str, now: str) -> GuardsInForce:
    """Return the guards by which a revision is judged. `record`: of the last round; None: there was none.

    Looser limits count from the revision after the one that brings them, and not while something is held. A
    confirmation belongs to the revision that brings it, and to later ones as long as something is held by then.
    """
    if record is not None and (record.revision, record.written) == (revision, written):
        return record
    if record is None:
        active, since, counts = written, now, True
    else:
        known = record.written
        active = stricter(record.active if record.holding else known, written)
        is_same = (known.confirm, known.confirm_until) == (written.confirm, written.confirm_until)
        since = record.since if is_same else now
        counts = not is_same or bool(record.active.confirm and record.holding)
    until = written.confirm_until or _after(since, _CONFIRMED_FOR)
    active = replace(active, confirm=written.confirm if counts else "", confirm_until=until if written.confirm else "")
    holding = record.holding if record is not None else ()
    return GuardsInForce(revision=revision, written=written, active=active, since=since, holding=holding)


def former_windows(record: GuardsInForce | None, head: Fleet) -> tuple[FleetWindow, ...]:
    """Return the windows of the revision before that count beside those of HEAD. `record`: of the last round.

    A cluster may change when both have it open, until the revision after HEAD; a new `spec.review.confirm` lets HEAD's
    windows count alone, and so does `spec.review.loosening: allow` in both. `spec.mode: observe` counts as a closed
    window. Source: design#guards-stricter.
    """
    settings = head.settings
    if record is None or record.revision == head.revision:
        return record.former_windows if record is not None else ()
    is_same = record.windows == named_windows(settings, head.clusters.values())
    return () if is_same or _may_loosen(record, settings) else record.windows


def former_suspensions(record: GuardsInForce | None, head: Fleet) -> Mapping[str, Suspension]:
    """Return by policy all that it suspends until the revision after HEAD, where HEAD loosens that.

    As `former_windows`. A policy that is removed suspends nothing any more.
    """
    if record is None or record.revision == head.revision:
        return record.former_suspensions if record is not None else {}
    if not record.suspensions or _may_loosen(record, head.settings):
        return {}
    own = {str(policy.ref): policy.suspension.joined(Suspension()) for policy in head.propagation}
    both = {name: own[name].joined(before) for name, before in record.suspensions.items() if name in own}
    return {name: found for name, found in both.items() if found != own[name]}


def with_former_suspensions(head: Fleet, record: GuardsInForce | None) -> Fleet:
    """Return the fleet with policies that suspend what they did in the revision before too, where HEAD loosens that."""
    found = former_suspensions(record, head)
    policies = [
        replace(one, suspension=replace(one.suspension, former=found[name])) if (name := str(one.ref)) in found else one
        for one in head.propagation
    ]
    return replace(head, propagation=tuple(policies)) if found else head


def _may_loosen(record: GuardsInForce, settings: FleetSettings) -> bool:
    is_confirmed = settings.review_confirm not in ("", record.review_confirm)
    return is_confirmed or LooseningHold.HOLD not in (record.loosening, settings.loosening)


def judged_by(record: GuardsInForce | None, head: Fleet, now: str) -> GuardsInForce:
    """Return the guards and windows by which HEAD is judged. `record`: of the last round; None: there was none."""
    settings = head.settings
    return replace(
        guards_in_force(record, settings.guards, head.revision, now),
        windows=named_windows(settings, head.clusters.values()),
        former_windows=former_windows(record, head),
        suspensions={
            str(policy.ref): replace(policy.suspension, former=None)
            for policy in head.propagation
            if policy.suspension.dispatching or policy.suspension.clusters
        },
        former_suspensions=former_suspensions(record, head),
        approved=approved_since(record.approved if record is not None else {}, head, now),
        review_confirm=settings.review_confirm,
        loosening=settings.loosening,
    )


def _after(moment: str, span: timedelta) -> str:
    begins = instant(moment)
    return (begins + span).strftime("%Y-%m-%dT%H:%M:%SZ") if begins is not None else ""


def is_stricter(guards: GuardsInForce) -> bool:
    """Return whether the limits in force are stricter than those that the revision writes."""
    return stricter(guards.active, guards.written) != guards.written


def limit(guards: Guards, managed: int) -> int:
    """Return how many deletions and releases may pass unconfirmed, with `managed` objects of ours."""
    return min(guards.max_deletes, max(3, managed * guards.max_delete_percent // 100))


def guard(
    changes: tuple[Change, ...],
    guards: Guards,
    managed: Mapping[str, int],
    now: str,
    losses: Losses = NO_LOSSES,
    unread: Collection[str] = (),
    is_evaluated: Callable[[str, Identity], bool] = lambda cluster, identity: True,
) -> Guarded:
    """Hold what is too much at once.

    `unread`: clusters that could not be read: what was held there is not due in this round, and waits all the same.

    `managed`: our objects per cluster, those of `losses` not among them. `now`: RFC 3339 UTC. `losses`: what was lost
    lately; a person's confirmation made it void, so that what was confirmed counts no more. `is_evaluated`: whether
    this round shows that a change of a copy is due no more.
    """
    kept = _kept(losses.confirmed, guards, is_evaluated)
    if not any(change.guarded or change.confirm for change in changes):
        return Guarded(changes=changes, left=_left(losses.confirmed.digest, kept))
    reasons = _reasons(
        changes, guards, managed, _Lately(changes, guards, losses, now), losses.held_since.keys() & set(unread)
    )
    if not reasons:
        return Guarded(changes=changes, left=_left(losses.confirmed.digest, kept))
    # Replacements exist before the old copy goes: a confirmed move stays confirmed.
    due = frozenset(_key(changes[index]) for index in reasons if changes[index].guarded or changes[index].confirm)
    digest = held_digest(due)
    is_confirmed = digest == guards.confirm or (
        due <= losses.confirmed.changes and losses.confirmed.digest == guards.confirm
    )
    if is_confirmed and not _is_over(guards.confirm_until, now):
        confirmed = frozenset(changes[index].copy for index in reasons)
        return Guarded(changes=changes, confirmed=confirmed, left=_left(guards.confirm, due | kept))
    held = tuple(
        replace(change, hold=Hold(HeldBy.GUARD, f"guard: {reasons[index]}")) if index in reasons else change
        for index, change in enumerate(changes)
    )
    return Guarded(
        changes=held, digest=digest, left=_left(losses.confirmed.digest, kept | (due & losses.confirmed.changes))
    )


def _kept(confirmed: Confirmed, guards: Guards, is_evaluated: Callable[[str, Identity], bool]) -> frozenset[ChangeKey]:
    """Confirmed changes that may still be due although this round does not show them."""
    if confirmed.digest != guards.confirm:
        return frozenset()
    return frozenset(key for key in confirmed.changes if not is_evaluated(key[1], key[2]))


def _left(digest: str, changes: frozenset[ChangeKey]) -> Confirmed:
    return Confirmed(digest=digest, changes=changes) if changes else NOT_CONFIRMED


def _key(change: Change) -> ChangeKey:
    return str(change.action), change.cluster, change.identity


def _is_over(until: str, now: str) -> bool:
    ends, moment = instant(until), instant(now)
    return ends is not None and moment is not None and moment > ends


class _Count(Struct, frozen=True):
    """Pending and recent losses in one place, and their limit."""

    due: int
    made: int
    most: int

    @property
    def is_over(self) -> bool:
        return self.due + self.made > self.most


class _Lately:
    """Recent losses beside the pending ones."""

    def __init__(self, changes: Iterable[Change], guards: Guards, losses: Losses, now: str) -> None:
        self.due: set[Copy] = {change.copy for change in changes if change.guarded}
        self._guards = guards
        self._losses = losses
        self._now = now

    def is_held_in(self, cluster: str) -> bool:
        """Return whether the last round that read the cluster held something there."""
        return cluster in self._losses.held_since

    def count(self, managed: Mapping[str, int], cluster: str | None) -> _Count:
        """Of one cluster; None: over the fleet."""
        due = {copy for copy in self.due if cluster in (None, copy[0])}
        made = set(_counted(self._losses, self._guards, self._now, cluster)) - due
        # What there was before the window, not the rest that shrinks with each loss.
        ours = sum(managed.values()) if cluster is None else managed.get(cluster, 0)
        return _Count(len(due), len(made), limit(self._guards, ours + len(made)))


def _counted(losses: Losses, guards: Guards, now: str, cluster: str | None) -> Iterator[Copy]:
    """The copies that were lost within the window before now, or before something began to be held there.

    What was counted when a hold began is counted until that has ended: time alone lets nothing through.
    """
    if not losses.made:
        return
    held = [since for name, since in losses.held_since.items() if cluster in (None, name)]
    begins = _begin((*held, now), guards)
    for loss in losses.made:
        if cluster in (None, loss.cluster) and (instant(loss.time) or _EPOCH) > begins:
            yield loss.cluster, loss.identity


def _begin(moments: Iterable[str], guards: Guards) -> datetime:
    first = min(instant(moment) or _EPOCH for moment in moments)
    return first - timedelta(seconds=guards.window_s)


def _reasons(
    changes: tuple[Change, ...],
    guards: Guards,
    managed: Mapping[str, int],
    lately: _Lately,
    away: Collection[str],
) -> dict[int, str]:
    """By index why a change is held. `away`: clusters in which something is held, and that could not be read."""
    clusters = {cluster: lately.count(managed, cluster) for cluster, _ in lately.due}
    fleet = lately.count(managed, None)
    reasons: dict[int, str] = {}
    for index, change in enumerate(changes):
        if not change.guarded:
            continue
        if change.action is Action.DELETE and change.identity[:2] in ALWAYS_CONFIRMED:
            along = _GOES_ALONG.get(change.identity[:2], "")
            reasons[index] = f"deleting a {change.identity.kind} needs confirmation{along}"
        elif clusters[change.cluster].is_over:
            reasons[index] = _too_many(clusters[change.cluster], guards, "in one cluster")
        elif fleet.is_over:
            reasons[index] = _too_many(fleet, guards, "over the fleet")
        elif away and lately.is_held_in(change.cluster):
            # It counted together with the held losses there, which may still be due.
            reasons[index] = f"more is held in {', '.join(sorted(away))}, which could not be read"
    return reasons | _confirmed_moves(changes)


def _confirmed_moves(changes: tuple[Change, ...]) -> dict[int, str]:
    """Return moves that a person must confirm, with their replacements: new copies, more replicas."""
    why = {change.identity: change.confirm for change in changes if change.confirm}
    if not why:
        return {}
    return {
        index: change.confirm or why[change.identity]
        for index, change in enumerate(changes)
        if change.confirm or (change.identity in why and _takes_over(change))
    }


def _takes_over(change: Change) -> bool:
    return change.action is Action.CREATE or (change.action is Action.UPDATE and replicas_moved(change) > 0)


def _too_many(count: _Count, guards: Guards, where: str) -> str:
    made = f" within {_duration(guards.window_s)}, {count.made} of them made already" if count.made else ""
    return f"{count.due + count.made} deletions and releases {where}{made}, at most {count.most} pass"


def _duration(seconds: int) -> str:
    minutes, rest = divmod(seconds, 60)
    return f"{minutes}m" if minutes and not rest else f"{seconds}s"


def held_digest(held: Iterable[ChangeKey]) -> str:
    """Sixteen hex characters that stand for a set of held changes, whatever their order."""
    lines = sorted(f"{action} {cluster} {identity.group} {identity}" for action, cluster, identity in held)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def is_held_by_guard(change: Change) -> bool:
    """Return whether a person must confirm the change."""
    return change.hold is not None and change.hold.by is HeldBy.GUARD


def is_held_by_number(change: Change) -> bool:
    """Return whether a guarded or confirmed change is held only for the number of losses."""
    is_special = change.action is Action.DELETE and change.identity[:2] in ALWAYS_CONFIRMED
    return change.guarded and not change.confirm and not is_special


def losses_after(
    losses: Losses,
    changes: Iterable[Change],
    guards: GuardsInForce,
    now: str,
    read: Iterable[str],
    left: Confirmed = NOT_CONFIRMED,
) -> Losses:
    """Return the guards' memory after a round: start times of holds, and recent losses that still count.

    `changes`: all held ones after the round. `read`: the clusters that were read; in others nothing has ended. `left`:
    the confirmed changes that are not made yet.
    """
    held, known = [change for change in changes if is_held_by_guard(change)], set(read)
    waiting = {change.cluster for change in held} | {cluster for _, cluster, _ in left.changes}
    guards = replace(guards, holding=tuple(sorted(waiting | (set(guards.holding) - known))))
    holding = {change.cluster for change in held if is_held_by_number(change)}
    holding |= losses.held_since.keys() - known
    if not losses.made and not holding:
        return Losses(confirmed=left, guards=guards)
    held_since = {cluster: losses.held_since.get(cluster, now) for cluster in sorted(holding)}
    begins = _begin((*held_since.values(), now), guards.active)
    made = tuple(loss for loss in losses.made if (instant(loss.time) or _EPOCH) > begins)
    return Losses(made=made, held_since=held_since, confirmed=left, guards=guards)


def losses_of(changes: Iterable[Change], now: str) -> tuple[RecordedLoss, ...]:
    """Return the guarded losses among changes that are about to be made."""
    return tuple(
        RecordedLoss(cluster=change.cluster, identity=change.identity, time=now) for change in changes if change.guarded
    )
