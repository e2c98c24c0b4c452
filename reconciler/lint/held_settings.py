"""Settings that wait for a person, and confirmations of this comparison.

Source: design#settings-plan; design#confirm.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec.structs import replace

from reconciler.api.clusters import Cluster
from reconciler.api.fleet import Fleet, FleetSettings, Guards, LooseningHold
from reconciler.api.plan import Action, Direction, Plan, SettingChange
from reconciler.api.problem import Problem, with_problems
from reconciler.api.rollouts import WindowKind
from reconciler.lint.lint_store import errors_of_review
from reconciler.lint.settings_diff import settings_digest
from reconciler.planner import is_held_by_guard
from reconciler.policy import matches_cluster
from reconciler.rollouts import lay_out

REVIEW_ERRORS: Final = frozenset(
    {
        "confirmation-fits-nothing",
        "image-illegal",
        "lease-cluster-unknown",
        "no-clusters",
        "no-fleet",
        "secret-in-clear",
    }
)
"""Codes of errors that a comparison of revisions tells, and none with the clusters."""
_GUARDS: Final = "spec.guards.confirm"
_REVIEW: Final = "spec.review.confirm"
_NOT_HERE: Final = "no setting is held; to confirm a merged change, revert it and make it again with its confirmation"
_KINDS: Final = ("Cluster ", "ManagedCluster ", "ClusterProfile ")
_SELECTED_BY: Final = ("metadata.labels", "spec.provider", "spec.region", "spec.zone", "spec.taints")


def held_settings(
    plan: Plan, changes: Iterable[SettingChange], base: Fleet, head: Fleet, who: Mapping[str, str] | None = None
) -> Plan:
    """Return the plan of two revisions with its settings, of which those that loosen are held.

    The stricter of both revisions decides. A confirmation counts in the change that brings it, and one that fits
    nothing is an error; so is what `validate` refuses. A store that names no fleet yet has nothing to loosen. `who`: by
    path of a file, its last author and the time of that.
    """
    found = tuple(_with_moves(change, plan, base, head) for change in changes)
    old, new = base.settings, head.settings
    is_allowed = LooseningHold.HOLD not in (old.loosening, new.loosening)
    confirms_losses = _is_new(old.guards, new.guards)
    fits = bool(plan.confirmed)
    has_held = any(map(is_held_by_guard, plan.changes))

    def waits(change: SettingChange) -> bool:
        if not old.name:
            return False
        if change.path == _GUARDS and confirms_losses and not fits and not has_held:
            return True
        return change.direction is Direction.LOOSENS and (change.is_always_held or not is_allowed)

    waiting = [change for change in found if waits(change)]
    digest = settings_digest(waiting)
    is_confirmed = bool(digest) and digest == new.review_confirm and new.review_confirm != old.review_confirm
    told = tuple(
        _told(replace(change, held=not is_confirmed and waits(change)), plan, who or {}, is_confirmed=is_confirmed)
        for change in found
    )
    misfits = _misfits(told, old, new, digest, plan, confirms_losses=confirms_losses and has_held and not fits)
    problems = (*misfits, *errors_of_review(base, head))
    return replace(
        plan,
        settings=told,
        settings_digest="" if is_confirmed else digest,
        problems=with_problems(plan.problems, problems) if problems else plan.problems,
    )


def _is_new(before: Guards, after: Guards) -> bool:
    return bool(after.confirm) and (before.confirm, before.confirm_until) != (after.confirm, after.confirm_until)


def _told(change: SettingChange, plan: Plan, who: Mapping[str, str], *, is_confirmed: bool) -> SettingChange:
    if change.direction is not Direction.CONFIRMS and not change.path.startswith("spec.pin"):
        return change
    by = who.get(change.source.path, "")
    words = change.meaning
    if change.path == _GUARDS and plan.confirmed:
        words = f"{len(plan.confirmed):,} deletions and releases are confirmed in this change"
    elif change.path == _GUARDS:
        words = f"{words}; no change of this comparison, only what the service holds by then"
    elif change.path == _REVIEW and is_confirmed:
        words = "the loosened settings of this change are confirmed"
    return replace(change, meaning=f"{words}{f', by {by}' if by else ''}")


def _misfits(
    changes: Iterable[SettingChange],
    old: FleetSettings,
    new: FleetSettings,
    digest: str,
    plan: Plan,
    *,
    confirms_losses: bool,
) -> Iterable[Problem]:
    at = {change.path: change.source for change in changes if change.document.startswith("Fleet")}
    if confirms_losses:
        message = f"{new.guards.confirm} confirms nothing of this plan; what the guard holds is {plan.held_digest}"
        yield Problem(
            source=at.get(_GUARDS, new.source), path=_GUARDS, code="confirmation-fits-nothing", message=message
        )
    if new.review_confirm and new.review_confirm not in (old.review_confirm, digest):
        now = f"the settings that are held are {digest}" if digest else _NOT_HERE
        message = f"{new.review_confirm} confirms nothing of this plan; {now}"
        yield Problem(
            source=at.get(_REVIEW, new.source), path=_REVIEW, code="confirmation-fits-nothing", message=message
        )


def _with_moves(change: SettingChange, plan: Plan, base: Fleet, head: Fleet) -> SettingChange:
    """Return a change; one of a label or place of a cluster with what it moves.

    It loosens if it takes objects from the cluster, or the cluster out of its stage or of a window.
    """
    name = change.document.rpartition(" ")[2]
    before, after = base.clusters.get(name), head.clusters.get(name)
    is_place = change.document.startswith(_KINDS) and change.path.startswith(_SELECTED_BY)
    if not is_place or before is None or after is None:
        return change
    actions = [found.action for found in plan.changes if found.cluster == name]
    gone = sum(action in (Action.DELETE, Action.RELEASE) for action in actions)
    come = sum(action in (Action.CREATE, Action.ADOPT) for action in actions)
    lost = [*_stages(before, after, base, head), *_windows(before, after, base)]
    counts = [f"{gone:,} objects leave it, {come:,} come"] if gone or come else []
    return replace(
        change,
        meaning="; ".join([change.meaning, *counts, *lost]),
        direction=Direction.LOOSENS if gone or lost else change.direction,
    )


def _stages(before: Cluster, after: Cluster, base: Fleet, head: Fleet) -> Iterator[str]:
    known = {rollout.name for rollout in base.rollouts}
    for rollout in head.rollouts:
        if rollout.name not in known:
            continue
        clusters = {**head.clusters, before.name: before}
        old, new = (lay_out(rollout, each).stage_of.get(after.name) for each in (clusters, head.clusters))
        names = [found.stage.name if found is not None else "none" for found in (old, new)]
        if names[0] != names[1]:
            yield f"in Rollout {rollout.name} it goes from the stage {names[0]} to {names[1]}"


def _windows(before: Cluster, after: Cluster, base: Fleet) -> Iterator[str]:
    for found in base.settings.windows:
        was, is_now = (matches_cluster(found.clusters, cluster)[0] for cluster in (before, after))
        if was and not is_now:
            kind = "freeze" if found.window.kind is WindowKind.DENY else "window"
            yield f"the {kind} {found.window.cron.text!r} is not for it any more"
