"""The whole fleet in numbers, where it has shards: of all clusters, as far as their processes tell this one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reconciler.daemon.vitals.vitals import Vitals
from reconciler.report.views.sight import is_cluster_in_step
from reconciler.stages.state import Applier, ClusterState, Lag

Sample = tuple[Sequence[str], float]
"""Values of labels, and a number."""
_Found = tuple[str, Applier, ClusterState]


def _clusters(vitals: Vitals) -> Iterator[_Found]:
    """None where the fleet has no shards: then the other metrics say all there is to say."""
    whole = vitals.board.whole
    for name, found in whole.picture.state.clusters.items() if whole is not None else ():
        if found.applier is not None:
            yield name, found.applier, found


def shards_told(vitals: Vitals, now_s: float) -> Iterator[Sample]:
    """Whether each shard tells how its clusters are."""
    others = vitals.board.others
    if others is None or vitals.board.shown is None:
        return
    if others.shard:
        yield (others.shard,), 1.0
    for shard, told in sorted(others.told.items()):
        yield (shard,), float(not told.why)


def clusters_up(vitals: Vitals, now_s: float) -> Iterator[Sample]:
    """Whether each cluster answers who applies there; nothing of those of which nobody tells."""
    for name, applier, found in _clusters(vitals):
        if not found.is_left and not applier.why:
            yield (name, applier.shard), float(found.why_away is None)


def objects_by_state(vitals: Vitals, now_s: float) -> Iterator[Sample]:
    """Objects of each cluster by state. Zeros are left out but of what is synced: alerts have the other metric."""
    for name, applier, found in _clusters(vitals):
        for lag, count in found.syncs.items():
            if count or lag is Lag.SYNCED:
                yield (name, applier.shard, str(lag)), float(count)


def objects_by_health(vitals: Vitals, now_s: float) -> Iterator[Sample]:
    """Objects of each cluster by health, without zeros."""
    for name, applier, found in _clusters(vitals):
        for word, count in found.healths.items():
            if count:
                yield (name, applier.shard, str(word)), float(count)


def clusters_in_all(vitals: Vitals, now_s: float) -> Iterator[Sample]:
    """How many clusters the shards have."""
    found = [each for _, _, each in _clusters(vitals) if not each.is_left]
    if found:
        yield (), float(len(found))


def clusters_in_step(vitals: Vitals, now_s: float) -> Iterator[Sample]:
    """In how many of them everything is known to be as the revision in force here says."""
    found = [is_cluster_in_step(each) for _, _, each in _clusters(vitals) if not each.is_left]
    if found:
        yield (), float(sum(found))
