"""The document by which a Rollout goes on: a release under way keeps the one with which it began.

Source: design#rollouts-stricter, as design#guards-stricter.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from reconciler.api.fleet import Fleet, LooseningHold
from reconciler.api.problem import Problem, warning
from reconciler.api.refs import short_revision
from reconciler.api.rollouts import (
    Amount,
    ChangeTime,
    Count,
    Gate,
    OnFailure,
    Percent,
    Rollout,
    Stage,
    Window,
    WindowKind,
)
from reconciler.incremental import by_key
from reconciler.placement import bare

_OF_ROLLOUT: Final = frozenset(
    {"approvals", "pins", "on_new_commit", "deletions", "placement", "rollback_window_s", "stages"}
)
_OF_STAGE: Final = frozenset({"max_concurrency", "after", "gate", "windows"})
_OF_GATE: Final = frozenset(
    {"healthy", "checks", "metrics", "min_success_s", "timeout_s", "max_failures", "on_failure"}
)


def rollout_documents(head: Fleet, written_in: Mapping[str, Fleet]) -> dict[str, Rollout]:
    """Return the Rollouts in force, by name, while releases are under way. `written_in`: the fleet of each document.

    One that HEAD removes, or loosens, stays as it was; approvals, pins and `onNewCommit` are those of HEAD. A new
    `spec.review.confirm` lets HEAD's pass, and so does `spec.review.loosening: allow`, but for one that is removed.
    """
    found = {rollout.name: rollout for rollout in head.rollouts}
    confirmed = head.settings.review_confirm
    for name, fleet in written_in.items():
        before = next((each for each in fleet.rollouts if each.name == name), None)
        is_confirmed = bool(confirmed) and confirmed != fleet.settings.review_confirm
        if before is None or head.revision == fleet.revision or is_confirmed:
            continue
        after = found.get(name)
        if after is None:
            found[name] = before
        elif is_looser(before, after) and LooseningHold.HOLD in (fleet.settings.loosening, head.settings.loosening):
            of_head = ("approvals", "pins", "on_new_commit", "source")
            found[name] = replace(before, **{field: getattr(after, field) for field in of_head})
    return found


def kept_problem(kept: Rollout, head: Fleet, revision: str) -> Problem:
    """Return what is said of a Rollout whose document in HEAD is not in force yet. `revision`: of the one that is."""
    is_removed = all(each.name != kept.name for each in head.rollouts)
    message = (
        f"Rollout {kept.name} was {'removed' if is_removed else 'loosened'} while its release is under way; it goes on "
        f"as {short_revision(revision)} has it until the release is completed; to let it pass now, revert the change "
        "and make it again with the spec.review.confirm that its review names"
    )
    return warning(kept.source, "", "rollout-kept-in-force", message)


def is_looser(before: Rollout, after: Rollout) -> bool:
    """Return whether a change of a Rollout loosens it, or cannot be compared."""
    return (
        (before.deletions, after.deletions) == (ChangeTime.LAST, ChangeTime.WITH_STAGE)
        or (before.placement, after.placement) == (ChangeTime.LAST, ChangeTime.NOW)
        or after.rollback_window_s > before.rollback_window_s
        or len(before.stages) != len(after.stages)
        or _differs(before, after, _OF_ROLLOUT)
        or any(_is_looser_stage(*pair) for pair in zip(before.stages, after.stages, strict=True))
    )


def _differs(before: object, after: object, compared: frozenset[str]) -> bool:
    """Return whether a field differs that no rule here compares, such as names and clusters."""
    old, new = ({name: value for name, value in bare(one).items() if name not in compared} for one in (before, after))
    return bool(old != new)


def _is_looser_stage(before: Stage, after: Stage) -> bool:
    return (
        _differs(before, after, _OF_STAGE)
        or _is_more(before.max_concurrency, after.max_concurrency)
        or after.after.wait_s < before.after.wait_s
        or (before.after.approval and not after.after.approval)
        or _is_looser_gate(before.gate, after.gate)
        or _are_looser_windows(before.windows, after.windows)
    )


def _is_looser_gate(before: Gate, after: Gate) -> bool:
    """Return whether something may pass earlier, which a shorter time until a failure does where clusters may fail."""
    may_fail = after.on_failure is OnFailure.CONTINUE or after.max_failures != Count(0)
    return (
        _differs(before, after, _OF_GATE)
        or (before.healthy and not after.healthy)
        or any(check not in bare(after.checks) for check in bare(before.checks))
        or any(metric not in bare(after.metrics) for metric in bare(before.metrics))
        or after.min_success_s < before.min_success_s
        or (after.timeout_s < before.timeout_s and may_fail)
        or _is_more(before.max_failures, after.max_failures)
        or (before.on_failure, after.on_failure) == (OnFailure.PAUSE, OnFailure.CONTINUE)
    )


def _is_more(before: Amount, after: Amount) -> bool:
    """Return whether more clusters are meant; of a number and a share nobody knows."""
    if isinstance(before, Percent) and isinstance(after, Percent):
        return after.share > before.share
    if isinstance(before, Percent) or isinstance(after, Percent):
        return True
    return after.number > before.number


def _are_looser_windows(before: tuple[Window, ...], after: tuple[Window, ...]) -> bool:
    """Return whether a closed time may be open now: a deny window went, or an allow window came or was the last."""
    was, is_now = (by_key((one.kind, bare(one)) for one in side) for side in (before, after))
    allowed, allowed_now = (side.get(WindowKind.ALLOW, []) for side in (was, is_now))
    is_wider = bool(allowed) and (not allowed_now or any(window not in allowed for window in allowed_now))
    denied, denied_now = (side.get(WindowKind.DENY, []) for side in (was, is_now))
    return is_wider or any(window not in denied_now for window in denied)
