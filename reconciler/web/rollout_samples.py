"""Rollouts as numbers: by stage and by phase, never by commit and never by object."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, get_args

from reconciler.daemon.vitals.vitals import Vitals
from reconciler.model.rollouts.progress import Phase, StageState
from reconciler.report.rollouts.words import state_word

Sample = tuple[Sequence[str], float]

_STATES: Final = tuple(str(found.__struct_config__.tag) for found in get_args(StageState))


def stage_states(vitals: Vitals, now_s: float) -> Iterator[Sample]:
    """1 for the state of each stage; zeros too, since an alert needs the series before it fires."""
    for found in vitals.rollouts:
        for stage in found.stages:
            word = state_word(stage.state)
            for state in _STATES:
                yield (found.rollout, stage.name, state), float(state == word)


def clusters_by_phase(vitals: Vitals, now_s: float) -> Iterator[Sample]:
    """Return the number of clusters in each phase."""
    for found in vitals.rollouts:
        counts = Counter(cluster.phase for cluster in found.clusters.values())
        for phase in Phase:
            yield (found.rollout, str(phase)), float(counts[phase])


def rollouts_done(vitals: Vitals, now_s: float) -> Iterator[Sample]:
    """Yield 1 for each Rollout whose revision is active in every stage."""
    for found in vitals.rollouts:
        yield (found.rollout,), float(found.is_done)
