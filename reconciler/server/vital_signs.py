"""The vital signs, and Rollouts as numbers. Everything shown passes the scrubber."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, get_args

from reconciler.api.problem import Problem
from reconciler.api.rollout_progress import Phase, RolloutProgress, StageState
from reconciler.controller.vitals.service_vitals import Vitals
from reconciler.report.mask import scrub_text
from reconciler.report.plan.stages import state_word


def readiness(vitals: Vitals) -> dict[str, str]:
    """Return each check with `ok` or its fault. A cluster that does not answer degrades, it does not fail."""
    return {
        "source": "ok" if vitals.is_ready else scrub_text(vitals.source_error) or "the store is not loaded yet",
        "journal": scrub_text(vitals.journal_error) or "ok",
        "fleet": "another process holds it in every cluster that answers" if _is_held_elsewhere(vitals) else "ok",
    }


def _is_held_elsewhere(vitals: Vitals) -> bool:
    """Return whether all answering clusters are owned by a copy of the journal, so that nothing can be written."""
    answering = {name for name, cluster in vitals.shown.clusters.items() if cluster.is_up and not cluster.is_left}
    return bool(answering) and answering <= {problem.cluster for problem in _held_elsewhere(vitals)}


def _held_elsewhere(vitals: Vitals) -> list[Problem]:
    return [problem for problem in vitals.shown.problems if problem.code == "fleet-held-elsewhere"]


def degradations(vitals: Vitals) -> list[str]:
    """Return the faults that do not make the daemon unready."""
    found = [
        f"cluster {name}: {cluster.why or 'does not answer'}"
        for name, cluster in sorted(vitals.shown.clusters.items())
        if not cluster.is_up and not cluster.is_left
    ]
    found += [
        f"cluster {name}: {cluster.why}; {sum(cluster.objects.values())} of our objects are there still"
        for name, cluster in sorted(vitals.shown.clusters.items())
        if cluster.is_left
    ]
    found += [f"cluster {problem.cluster}: {problem.message}" for problem in _held_elsewhere(vitals)]
    if vitals.is_ready and vitals.source_error:
        found.insert(0, f"store: {vitals.source_error}; the last good revision stays in force")
    return [scrub_text(line) for line in found]


Sample = tuple[Sequence[str], float]

_STATES: Final = tuple(str(found.__struct_config__.tag) for found in get_args(StageState))


def stage_states(rollouts: Iterable[RolloutProgress]) -> Iterator[Sample]:
    """1 for the state of each stage; zeros too, since an alert needs the series before it fires."""
    for found in rollouts:
        for stage in found.stages:
            word = state_word(stage.state)
            for state in _STATES:
                yield (found.rollout, stage.name, state), float(state == word)


def clusters_by_phase(rollouts: Iterable[RolloutProgress]) -> Iterator[Sample]:
    """Return the number of clusters in each phase."""
    for found in rollouts:
        counts = Counter(cluster.phase for cluster in found.clusters.values())
        for phase in Phase:
            yield (found.rollout, str(phase)), float(counts[phase])
