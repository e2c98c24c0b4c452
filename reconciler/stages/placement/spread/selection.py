"""Choice of clusters under spread constraints.

Source: Karmada: clusters and regions are selected, zone and provider next to a cluster constraint only demand the
property, `spreadByLabel` alone fails.
"""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.model.policy import Division, Placement, SpreadConstraint
from reconciler.stages.placement.spread.cluster import select_by_cluster
from reconciler.stages.placement.spread.constraints import Ranked, Selection, constraint_on, in_order, spread_applies
from reconciler.stages.placement.spread.region import select_by_region


def select(placement: Placement, candidates: Sequence[Ranked], replicas: int) -> Selection:
    """The clusters that constraints select out of all candidates; all of them when no constraint selects."""
    ordered = in_order(candidates)
    if not spread_applies(placement):
        return Selection(names=tuple(candidate.name for candidate in ordered))
    duplicated = placement.scheduling.division is Division.DUPLICATED
    by_cluster, by_region = constraint_on(placement, "cluster"), constraint_on(placement, "region")
    if by_region is not None:
        return select_by_region(by_region, by_cluster or SpreadConstraint(), ordered, replicas, duplicated=duplicated)
    if by_cluster is not None:
        return select_by_cluster(by_cluster, ordered, None if duplicated else replicas)
    return Selection(failure="only spread constraints by cluster and by region select clusters")
