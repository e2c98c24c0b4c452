"""Settings that wait for a person, and confirmations. Source: design#settings-plan; design#confirm."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from msgspec.structs import replace

from reconciler.api.clusters import Cluster
from reconciler.api.fleet import Fleet, FleetSettings, LooseningHold, Snapshot, StoreFile
from reconciler.api.ledger import ReviewConfirmation
from reconciler.api.plan import Action, Direction, Plan, SettingChange
from reconciler.api.problem import Problem, with_problems
from reconciler.api.rollouts import WindowKind
from reconciler.fleet import ParsedFile, inputs_of, memo_key
from reconciler.hydration import is_input
from reconciler.lint.claims import takeover_changes
from reconciler.lint.lint_store import errors_of_review
from reconciler.lint.settings_diff import has_settings, setting_changes, settings_digest
from reconciler.lint.template_contents import annotation_changes, priority_changes, sops_changes
from reconciler.planner import is_held_by_guard
from reconciler.policy import matches_cluster, named_windows
from reconciler.rollouts import lay_out

ReadRevision = tuple[Snapshot, Sequence[ParsedFile]]
_MISFIT: Final = "confirmation-fits-nothing"
REVIEW_ERRORS: Final = frozenset({
    _MISFIT, "image-illegal", "lease-cluster-unknown", "no-clusters", "no-fleet", "secret-in-clear",
    "version-not-served",
})  # fmt: skip
"""Codes of errors that a comparison of revisions tells, and none with the clusters."""
_GUARDS: Final = "spec.guards.confirm"
_REVIEW: Final = "spec.review.confirm"
_NOT_HERE: Final = "no setting is held; to confirm a merged change, revert it and make it again with its confirmation"
_KINDS: Final = ("Cluster ", "ManagedCluster ", "ClusterProfile ")
_SELECTED_BY: Final = (
    "kind", "metadata.labels", "spec.clusterManager", "spec.provider", "spec.region", "spec.zone", "spec.taints",
)  # fmt: skip


def held_settings(
    plan: Plan, changes: Iterable[SettingChange], base: Fleet, head: Fleet, who: Mapping[str, str] | None = None
) -> Plan:
    """Return the plan of two revisions with its settings, of which those that loosen are held.

    The stricter of both revisions decides. A confirmation counts in the change that brings it, and one that fits
    nothing is an error; so is what `validate` refuses. A store that names no fleet yet has nothing to loosen. `who`: by
    path of a file, its last author and the time of that.
    """
    changes = tuple(changes)
    moved = (_with_moves(change, plan, base, head) for change in changes)
    ordered = sorted(moved, key=lambda change: change.direction is not Direction.LOOSENS)
    old, new = base.settings, head.settings
    was, is_now = ((side.guards.confirm, side.guards.confirm_until) for side in (old, new))
    confirms_losses = bool(new.guards.confirm) and was != is_now
    fits = bool(plan.confirmed)
    has_held = any(map(is_held_by_guard, plan.changes))

    # The end of a confirmation as well: a later one lets the same digest pass again.
    is_misfit = confirms_losses and not fits and not has_held

    def waits(change: SettingChange) -> bool:
        return bool(old.name) and (_is_loose(change, old, new) or (is_misfit and change.path.startswith(_GUARDS)))

    digests = confirmable(changes, old, new) if any(map(waits, ordered)) else ("", "")
    passing = digests[1:] if is_misfit else digests
    is_confirmed = new.review_confirm not in ("", old.review_confirm) and new.review_confirm in passing
    settings = tuple(
        _with_words(
            replace(change, held=not is_confirmed and waits(change)), plan, who or {}, is_confirmed=is_confirmed
        )
        for change in ordered
    )
    fitting = new.review_confirm if is_confirmed else passing[0]
    misfits = _misfits(settings, old, new, fitting, plan, confirms_losses=confirms_losses and has_held and not fits)
    problems = (*misfits, *errors_of_review(base, head))
    return replace(
        plan,
        settings=settings,
        settings_digest="" if is_confirmed else passing[0],
        problems=with_problems(plan.problems, problems) if problems else plan.problems,
    )


def confirmable(changes: Iterable[SettingChange], old: FleetSettings, new: FleetSettings) -> tuple[str, str]:
    """Return what `spec.review.confirm` may be, by texts alone: the service finds the same without a plan.

    Without and with a confirmation of what guards hold: one that fits is no part of it, so that both can come together.
    """
    guards = [one for one in changes if one.document.startswith("Fleet ") and one.path.startswith(_GUARDS)]
    held = [change for change in changes if _is_place(change) or _is_loose(change, old, new)]
    return settings_digest(held), settings_digest([*held, *guards])


class HeldDifference(NamedTuple):
    """The held settings. `digests`: its `spec.review.confirm`, or empty; `loosens`: older limits count without it."""

    digests: tuple[str, str]
    loosens: bool


def held_difference(sides: tuple[ReadRevision, ReadRevision], fleets: tuple[Fleet, Fleet]) -> HeldDifference:
    """Return the settings that a review holds. `sides`: the files of both revisions, beside what was parsed."""
    steering = [steering_files(zip(side.files, parsed, strict=True)) for side, parsed in sides]
    differing = steering[0].keys() ^ steering[1].keys()
    before, after = (
        (*(file for key, file in changed.items() if key in differing), *side.ignore_files)
        for (side, _), changed in zip(sides, steering, strict=True)
    )
    changes = (*setting_changes(before, after), *content_changes(*fleets))
    windows, windows_after = (named_windows(fleet.settings, fleet.clusters.values()) for fleet in fleets)
    leaves_windows = any(map(_is_place, changes)) and windows != windows_after
    old, new = (fleet.settings for fleet in fleets)
    loosens = leaves_windows or any(_is_loose(change, old, new) for change in changes)
    return HeldDifference(confirmable(changes, old, new), loosens)


def confirmation_of(
    revision: str, written: Sequence[str], difference: Callable[[int, int], HeldDifference]
) -> ReviewConfirmation:
    """Return the confirmation that counts in REVISION, the newest of some commits, of which the oldest was followed.

    WRITTEN: the `spec.review.confirm` of each, along first parents. A new one fits what differs since its parent, or
    since the commit of the confirmation before. It counts if nothing else loosens, since it covers no other change.
    `difference`: of two commits, by index. Source: design#settings-plan.
    """
    begin, last, counts, is_all = 0, len(written) - 1, "", True
    for at, (before, now) in enumerate(pairwise(written), 1):
        if now in ("", before):
            continue
        fits = [first for first in dict.fromkeys((begin, at - 1)) if now in difference(first, at).digests]
        if fits:
            is_all = is_all and (begin in fits or not difference(begin, fits[0]).loosens)
            begin, counts = at, now
    is_all = is_all and (begin == last or not difference(begin, last).loosens)
    expected = written[last]
    if expected not in ("", counts):
        alone, with_losses = difference(begin, last).digests
        expected = alone or with_losses
    return ReviewConfirmation(
        revision=revision, written=written[last], expected=expected, counts=counts if is_all else ""
    )


def content_changes(base: Fleet, head: Fleet) -> Iterator[SettingChange]:
    """Yield what steers the service and changes in objects: their encryption, annotations of ours, their policies."""
    yield from takeover_changes(base, head)
    yield from sops_changes(base, head)
    yield from annotation_changes(base, head)
    yield from priority_changes(base, head)


def steering_files(files: Iterable[tuple[StoreFile, ParsedFile]]) -> dict[str, StoreFile]:
    """Return the files by `memo_key` that have settings and are no input of a Render."""
    pairs = [*files]
    inputs = inputs_of([parsed for _, parsed in pairs])
    return {
        memo_key(file): file
        for file, parsed in pairs
        if has_settings(parsed) and not (inputs and is_input(file.path, inputs))
    }


def with_confirmation(fleet: Fleet, confirmation: ReviewConfirmation) -> Fleet:
    """Return the fleet with the confirmation that counts in its revision, or an error. Source: design#settings-plan."""
    settings, problems = fleet.settings, fleet.problems
    if settings.review_confirm != confirmation.written:
        return fleet
    counts = confirmation.counts if confirmation.revision == fleet.revision else ""
    if confirmation.revision == fleet.revision and confirmation.written not in ("", confirmation.expected):
        now = f"what it changes and reviews hold is {confirmation.expected}" if confirmation.expected else _NOT_HERE
        message = f"{confirmation.written} confirms nothing of this revision; {now}"
        problem = Problem(source=settings.source, path=_REVIEW, code=_MISFIT, message=message)
        problems = with_problems(problems, (problem,))
    return replace(fleet, settings=replace(settings, review_confirm=counts), problems=problems)


def _is_loose(change: SettingChange, old: FleetSettings, new: FleetSettings) -> bool:
    """Return whether a change loosens and is held: always, or as one of the revisions says."""
    is_held = change.is_always_held or LooseningHold.HOLD in (old.loosening, new.loosening)
    return is_held and change.direction is Direction.LOOSENS


def _is_place(change: SettingChange) -> bool:
    """Return whether a change is of a label or place by which a cluster is selected."""
    return change.document.startswith(_KINDS) and change.path.startswith(_SELECTED_BY)


def _with_words(change: SettingChange, plan: Plan, who: Mapping[str, str], *, is_confirmed: bool) -> SettingChange:
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
        yield Problem(source=at.get(_GUARDS, new.source), path=_GUARDS, code=_MISFIT, message=message)
    if new.review_confirm and new.review_confirm not in (old.review_confirm, digest):
        now = f"the settings that are held are {digest}" if digest else _NOT_HERE
        message = f"{new.review_confirm} confirms nothing of this plan; {now}"
        yield Problem(source=at.get(_REVIEW, new.source), path=_REVIEW, code=_MISFIT, message=message)


def _with_moves(change: SettingChange, plan: Plan, base: Fleet, head: Fleet) -> SettingChange:
    """Return the change with what it moves: it loosens if it takes objects, stage or window from a cluster."""
    name = change.document.rpartition(" ")[2]
    before, after = base.clusters.get(name), head.clusters.get(name)
    if not _is_place(change) or before is None or after is None:
        return change
    actions = [one.action for one in plan.changes if one.cluster == name]
    gone = sum(action in (Action.DELETE, Action.RELEASE) for action in actions)
    come = sum(action in (Action.CREATE, Action.ADOPT) for action in actions)
    lost = [*_stages(before, after, base, head)]
    for one in base.settings.windows:
        if matches_cluster(one.clusters, before)[0] and not matches_cluster(one.clusters, after)[0]:
            kind = "freeze" if one.window.kind is WindowKind.DENY else "window"
            lost.append(f"the {kind} {one.window.cron.text!r} is not for it any more")
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
        names = [place.stage.name if place is not None else "none" for place in (old, new)]
        if names[0] != names[1]:
            yield f"in Rollout {rollout.name} it goes from the stage {names[0]} to {names[1]}"
