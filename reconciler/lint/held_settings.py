"""Settings that wait for a person, and confirmations of this comparison.

Source: design#settings-plan; design#confirm.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec.structs import replace

from reconciler.api.fleet import Fleet, FleetSettings, Guards, LooseningHold
from reconciler.api.plan import Direction, Plan, SettingChange
from reconciler.api.problem import Problem, with_problems
from reconciler.lint.settings_diff import settings_digest
from reconciler.planner import is_held_by_guard

_GUARDS: Final = "spec.guards.confirm"
_REVIEW: Final = "spec.review.confirm"


def held_settings(
    plan: Plan, changes: Iterable[SettingChange], base: Fleet, head: Fleet, who: Mapping[str, str] | None = None
) -> Plan:
    """Return the plan of two revisions with its settings, of which those that loosen are held.

    The stricter of both revisions decides. A confirmation counts in the change that brings it, and one that fits
    nothing is an error. A store that names no fleet yet has nothing to loosen. `who`: by path of a file, its last
    author and the time of that.
    """
    found, old, new = tuple(changes), base.settings, head.settings
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
    problems = tuple(_misfits(told, old, new, digest, plan, confirms_losses=confirms_losses and has_held and not fits))
    return replace(
        plan,
        settings=told,
        settings_digest="" if is_confirmed else digest,
        problems=with_problems(plan.problems, problems) if problems else plan.problems,
    )


def _is_new(before: Guards, after: Guards) -> bool:
    return bool(after.confirm) and (before.confirm, before.confirm_until) != (after.confirm, after.confirm_until)


def _told(change: SettingChange, plan: Plan, who: Mapping[str, str], *, is_confirmed: bool) -> SettingChange:
    if change.direction is not Direction.CONFIRMS:
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
        now = f"the settings that are held are {digest}" if digest else "no setting is held"
        message = f"{new.review_confirm} confirms nothing of this plan; {now}"
        yield Problem(
            source=at.get(_REVIEW, new.source), path=_REVIEW, code="confirmation-fits-nothing", message=message
        )
