"""Which of several exclusive groups of clusters is tried first.

Source: design#group-in-use: it stays while it fits, else the first that fits from the top; design#fail-back: going back
to an earlier group is an opt-in. Karmada never looks at an earlier group again, and clears the placement when the one
in use stops matching.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reconciler.model.cluster import Cluster
from reconciler.stages.placement.affinity_groups import Group
from reconciler.stages.placement.candidates import tier_of
from reconciler.stages.placement.values import Situation


def in_order_of_trial(
    groups: Sequence[Group], situation: Situation, clusters: Mapping[str, Cluster]
) -> tuple[Group, ...]:
    """The groups with the one in use first; in their own order on first placement, afresh, or when they fail back."""
    if len(groups) == 1 or situation.fresh or situation.item.policy.fail_back:
        return tuple(groups)
    in_use = _group_in_use(groups, situation, clusters)
    if in_use is None:
        return tuple(groups)
    return (in_use, *(group for group in groups if group is not in_use))


def _group_in_use(groups: Sequence[Group], situation: Situation, clusters: Mapping[str, Cluster]) -> Group | None:
    named = next((group for group in groups if group.name == situation.group_in_use), None)
    if named is not None or not situation.had:
        return named if situation.had else None
    # A placement without a group (an observations file, marks read back) is recognised by its clusters.
    held = [clusters[name] for name in situation.had if name in clusters]
    covered = [sum(tier_of(cluster, group)[0] is not None for cluster in held) for group in groups]
    most = max(covered, default=0)
    return groups[covered.index(most)] if most else None
