"""The picture that a round leaves, as vital signs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from reconciler.daemon.round.faults import log_faults
from reconciler.daemon.round.history.steps import Steps
from reconciler.daemon.vitals.vitals import ClusterVitals, Vitals
from reconciler.engine import Round
from reconciler.model.plan import Change
from reconciler.stages.state import ClusterState, FleetState, Step, held_by


def show(vitals: Vitals, picture: Round, state: FleetState, heard: Collection[str]) -> None:
    """Bring the vital signs up to date. `heard`: the clusters that were asked now."""
    log_faults(vitals.problems, picture.plan.problems)
    vitals.problems = picture.plan.problems
    vitals.held = _held(picture.plan.changes, state.facts.closed if state.facts is not None else {})
    for name in vitals.clusters.keys() - state.clusters.keys():
        del vitals.clusters[name]
    for name, found in state.clusters.items():
        vital = vitals.clusters.setdefault(name, ClusterVitals(name=name))
        vital.is_left = found.is_left
        if name in heard or found.why_away is not None or found.is_left:
            _show_answer(vital, found)
        vital.kinds_unread = len(state.unread_kinds(name))
        vital.last_success = found.last_contact
        vital.objects = {str(lag): count for lag, count in found.syncs.items()}
        vital.health = {str(word): count for word, count in found.healths.items()}


def show_step(vitals: Vitals, step: Step, steps: Steps) -> None:
    """Bring up to date how far the revision in force has come. How long it took counts once."""
    vitals.step, vitals.revision_seen_at, vitals.is_told_in_step = step, steps.seen_at, steps.is_told
    if steps.fresh_s is not None:
        vitals.in_step_s.observe((), steps.fresh_s)


def _held(changes: Iterable[Change], closed: Mapping[str, str]) -> dict[str, int]:
    """Return the number of held changes by holder; zeros too, so that an alert has a series before the first one."""
    found = dict.fromkeys(("guard", "move", "suspended", "other"), 0)
    for change in changes:
        if change.held is not None:
            by = str(held_by(change, closed))
            found[by if by in found else "other"] += 1
    return found


def _show_answer(vital: ClusterVitals, found: ClusterState) -> None:
    vital.is_doubted = False
    if found.is_left:
        vital.is_up, vital.why = False, "the store has no Cluster document for it"
    elif found.why_away is not None:
        vital.is_up, vital.why = False, found.why_away
    else:
        vital.is_up, vital.why = True, ""
