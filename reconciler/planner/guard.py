"""The brake on deletions that edits of the store cause.

Source: design#guards: per cluster and over the fleet, deletions and releases are held above min(maxDeletes, max(3,
maxDeletePercent)); any Namespace, CRD, PV and PVC is held always, and so are moves that leave volumes behind
(design#volumes-stay), until `confirm` carries the digest of the held changes (design#confirm). What went within
`window` counts with what is due (design#guards-window): a script that removes file after file gets no further than one
commit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from msgspec.structs import replace

from reconciler.api.fleet import Fleet, FleetSettings, Guards, LooseningHold
from reconciler.api.ledger import GuardsInForce, Losses, RecordedLoss
from reconciler.api.plan import NOT_CONFIRMED, Action, Cause, Change, Confirmed, HeldBy, Hold, Plan
from reconciler.api.policies import Suspension
from reconciler.api.refs import Copy, Identity
from reconciler.api.rollouts import ChangeTime, FleetWindow
from reconciler.observations import instant, later
from reconciler.policy import named_windows
from reconciler.rollouts import approved_since
from reconciler.templates import replicas_moved

ALWAYS_CONFIRMED: Final[Mapping[tuple[str, str], str]] = {
    ("", "Namespace"): ": everything in it goes with it, what is not ours too",
    ("apiextensions.k8s.io", "CustomResourceDefinition"): ": all objects of its kind go with it, those of others too",
    **dict.fromkeys((("", "PersistentVolume"), ("", "PersistentVolumeClaim")), ""),
}
"""Kinds whose deletion takes data or other objects with it, and what that is."""

NO_LOSSES = Losses()
_CONFIRMED_FOR_S: Final = 7 * 24 * 3600
"""A confirmation without `confirmUntil` ends so long after it was first seen."""
_STRICTER: Final = "; limits that were loosened count from the next change on, once nothing is held"
_EPOCH = datetime.fromtimestamp(0, UTC)

ChangeKey = tuple[str, str, Identity]
"""Action, cluster and identity."""


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
    until = written.confirm_until or later(since, _CONFIRMED_FOR_S)
    active = replace(active, confirm=written.confirm if counts else "", confirm_until=until if written.confirm else "")
    holding = record.holding if record is not None else ()
    return GuardsInForce(revision=revision, written=written, active=active, since=since, holding=holding)


def former_windows(record: GuardsInForce | None, head: Fleet) -> tuple[FleetWindow, ...]:
    """Return the windows of the revision before that count beside those of HEAD, until the revision after HEAD.

    Not after a new `spec.review.confirm`, nor under `spec.review.loosening: allow` in both. `spec.mode: observe` counts
    as a closed window. Source: design#guards-stricter.
    """
    settings = head.settings
    if record is None or record.revision == head.revision:
        return record.former_windows if record is not None else ()
    is_same = record.windows == named_windows(settings, head.clusters.values())
    return () if is_same or _may_loosen(record, settings) else record.windows


def former_suspensions(record: GuardsInForce | None, head: Fleet) -> Mapping[str, Suspension]:
    """Return by policy of HEAD the suspensions of the revision before too, where HEAD loosens them."""
    if record is None or record.revision == head.revision:
        return record.former_suspensions if record is not None else {}
    if not record.suspensions or _may_loosen(record, head.settings):
        return {}
    own = {str(policy.ref): policy.suspension.joined(Suspension()) for policy in head.propagation}
    both = {name: own[name].joined(before) for name, before in record.suspensions.items() if name in own}
    return {name: joined for name, joined in both.items() if joined != own[name]}


def with_former_suspensions(head: Fleet, record: GuardsInForce | None) -> Fleet:
    """Return the fleet with policies that suspend what they did in the revision before too, where HEAD loosens that."""
    past = former_suspensions(record, head)
    policies = [
        replace(one, suspension=replace(one.suspension, former=past[name])) if (name := str(one.ref)) in past else one
        for one in head.propagation
    ]
    return replace(head, propagation=tuple(policies)) if past else head


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


def is_stricter(guards: GuardsInForce) -> bool:
    """Return whether the limits in force are stricter than those that the revision writes."""
    return stricter(guards.active, guards.written) != guards.written


def limit(guards: Guards, managed: int) -> int:
    """Return how many deletions and releases may pass unconfirmed, with `managed` objects of ours."""
    return min(guards.max_deletes, max(3, managed * guards.max_delete_percent // 100))


def guard(
    plan: Plan,
    in_force: GuardsInForce,
    managed: Mapping[str, int],
    now: str,
    losses: Losses = NO_LOSSES,
    unread: Collection[str] = (),
    is_evaluated: Callable[[str, Identity], bool] = lambda cluster, identity: True,
) -> Plan:
    """Return the plan, what is too much at once held, with the digest that confirms it, `confirmed` and `left`.

    `managed`: our objects per cluster. `losses`: recent ones; a confirmation voids them. `unread`: clusters whose held
    losses wait all the same. `is_evaluated`: whether this round shows that a copy's change is due no more.
    """
    known, changes, guards = losses.confirmed, plan.changes, in_force.active
    # Confirmed changes that may still be due although this round does not show them.
    pending: frozenset[ChangeKey] = frozenset()
    if known.digest == guards.confirm:
        pending = frozenset(key for key in known.changes if not is_evaluated(key[1], key[2]))
    numbers = [_stage_number(change, plan) for change in changes]
    reasons: dict[int, str] = {}
    for number in sorted(set(numbers)):  # What comes later is judged then.
        reasons = reasons or _reasons(changes, guards, managed, losses, now, unread, [one == number for one in numbers])
    if not reasons:
        return replace(plan, left=_left(known.digest, pending))
    # Replacements exist before the old copy goes: a confirmed move stays confirmed.
    losing = [change for change in map(changes.__getitem__, reasons) if change.guarded or change.confirm]
    due = frozenset((str(change.action), change.cluster, change.identity) for change in losing)
    digest = held_digest(due)
    is_confirmed = digest == guards.confirm or (due <= known.changes and known.digest == guards.confirm)
    ends, moment = instant(guards.confirm_until), instant(now)
    is_over = ends is not None and moment is not None and moment > ends
    if is_confirmed and not is_over:
        confirmed = frozenset(changes[index].copy for index in reasons)
        return replace(plan, confirmed=confirmed, left=_left(guards.confirm, due | pending))
    note = _STRICTER if is_stricter(in_force) else ""
    held = tuple(
        replace(change, hold=Hold(HeldBy.GUARD, f"guard: {reasons[index]}{note}")) if index in reasons else change
        for index, change in enumerate(changes)
    )
    return replace(plan, changes=held, held_digest=digest, left=_left(known.digest, pending | (due & known.changes)))


def _stage_number(change: Change, plan: Plan) -> int:
    """Return the number of the stage in which an offline change is due: 0 at once, the last one after all stages."""
    name, _, stage = change.stage.partition("/")
    for rollout in plan.rollouts if stage else ():
        stages = [one for one in rollout.stages if one.clusters]
        if rollout.name == name and rollout.deletions is ChangeTime.LAST and change.cause is not Cause.PLACEMENT:
            return len(stages) + 1
        for number, one in enumerate(stages):
            if (rollout.name, one.stage.name) == (name, stage):
                return number + (change.cluster not in one.clusters[: one.at_once])
    return 0


def _left(digest: str, changes: frozenset[ChangeKey]) -> Confirmed:
    return Confirmed(digest=digest, changes=changes) if changes else NOT_CONFIRMED


def _too_many(
    losing: Collection[Copy], guards: Guards, managed: Mapping[str, int], losses: Losses, now: str, cluster: str | None
) -> str:
    """Return why no more may go from a cluster (None: from the fleet); empty: not too much is due and went lately.

    Lately: within the window before now, or before something began to be held there. What was counted when a hold began
    is counted until that has ended: time alone lets nothing through.
    """
    due = {copy for copy in losing if cluster in (None, copy[0])}
    holds = [at for name, at in losses.held_since.items() if cluster in (None, name)]
    begins = _begin((*holds, now), guards)
    lost = {(one.cluster, one.identity) for one in losses.recorded if (instant(one.time) or _EPOCH) > begins}
    gone = len({copy for copy in lost if cluster in (None, copy[0])} - due)
    # What there was before the window, not the rest that shrinks with each loss.
    ours = sum(managed.values()) if cluster is None else managed.get(cluster, 0)
    most = limit(guards, ours + gone)
    if len(due) + gone <= most:
        return ""
    where = "over the fleet" if cluster is None else "in one cluster"
    minutes, rest = divmod(guards.window_s, 60)
    window = f"within {minutes}m" if minutes and not rest else f"within {guards.window_s}s"
    note = f" {f'since {begins:%Y-%m-%dT%H:%M:%SZ}' if holds else window}, {gone} of them made already" if gone else ""
    return f"{len(due) + gone} deletions and releases {where}{note}, at most {most} pass"


def _begin(moments: Iterable[str], guards: Guards) -> datetime:
    return min(instant(moment) or _EPOCH for moment in moments) - timedelta(seconds=guards.window_s)


def _reasons(
    changes: tuple[Change, ...],
    guards: Guards,
    managed: Mapping[str, int],
    losses: Losses,
    now: str,
    unread: Collection[str],
    is_due: Sequence[bool],
) -> dict[int, str]:
    """Return by index of a change why it is held. `is_due`: of each change, whether its turn is judged."""
    away = losses.held_since.keys() & set(unread)
    due = {change.copy for change, counts in zip(changes, is_due, strict=True) if change.guarded and counts}
    too_many = {one: _too_many(due, guards, managed, losses, now, one) for one in {None, *(copy[0] for copy in due)}}
    reasons: dict[int, str] = {}
    for index, change in enumerate(changes):
        if not (change.guarded and is_due[index]):
            continue
        if change.action is Action.DELETE and change.identity[:2] in ALWAYS_CONFIRMED:
            along = ALWAYS_CONFIRMED[change.identity[:2]]
            reasons[index] = f"deleting a {change.identity.kind} needs confirmation{along}"
        elif too_many[change.cluster] or too_many[None]:
            reasons[index] = too_many[change.cluster] or too_many[None]
        elif away and change.cluster in losses.held_since:
            # It counted together with the held losses there, which may still be due.
            reasons[index] = f"more is held in {', '.join(sorted(away))}, which could not be read"
    # Moves that a person must confirm, with their replacements: new copies, more replicas.
    why = {change.identity: change.confirm for index, change in enumerate(changes) if change.confirm and is_due[index]}
    for index, change in enumerate(changes if why else ()):
        takes_over = change.action is Action.CREATE or (change.action is Action.UPDATE and replicas_moved(change) > 0)
        if change.identity in why and (change.confirm or takes_over):
            reasons[index] = change.confirm or why[change.identity]
    return reasons


def held_digest(held: Iterable[ChangeKey]) -> str:
    """Return sixteen hex characters that stand for a set of held changes, whatever their order."""
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
    """Return the guards' memory after a round: holds since when, and losses that count. `left`: confirmed changes."""
    held, known = [change for change in changes if is_held_by_guard(change)], set(read)
    waiting = {change.cluster for change in held} | {cluster for _, cluster, _ in left.changes}
    guards = replace(guards, holding=tuple(sorted(waiting | (set(guards.holding) - known))))
    holding = {change.cluster for change in held if is_held_by_number(change)}
    holding |= losses.held_since.keys() - known
    if not losses.recorded and not holding:
        return Losses(confirmed=left, guards=guards)
    held_since = {cluster: losses.held_since.get(cluster, now) for cluster in sorted(holding)}
    begins = _begin((*held_since.values(), now), guards.active)
    recent = tuple(loss for loss in losses.recorded if (instant(loss.time) or _EPOCH) > begins)
    return Losses(recorded=recent, held_since=held_since, confirmed=left, guards=guards)


def losses_of(changes: Iterable[Change], now: str) -> tuple[RecordedLoss, ...]:
    """Return the guarded losses among changes that are about to be made."""
    return tuple(
        RecordedLoss(cluster=change.cluster, identity=change.identity, time=now) for change in changes if change.guarded
    )
