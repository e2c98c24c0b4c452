"""Tiers of clusters, the order of exclusive groups, and placement that does not depend on free capacity.

The first tier fills first, the last empties first; a placement without tiers is one tier. Source: the page "Elastic
scheduling with multi-cluster priorities"; Karmada: overflowAffinities, Duplicated and static weights (divided from
scratch); design#affinity-groups; design#ecs-provision; design#scaled-to-0; design#not-enough-room.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from operator import itemgetter
from typing import NamedTuple

from msgspec import Struct

from reconciler.api.binding import TargetCluster
from reconciler.api.clusters import Cluster
from reconciler.api.policies import Division, ReplicaScheduling
from reconciler.placement.candidates import AffinityGroup, Candidate, CandidateFinder, Candidates, none_fits, tier_of
from reconciler.placement.capacity import RoomOf
from reconciler.placement.divide import (
    Share,
    divide_by_capacity,
    divide_statically,
    listed,
    total_of,
    webster,
    without_zeros,
)
from reconciler.placement.spread import SelectedClusters, ranked_by_room, select, spread_applies
from reconciler.placement.values import Assignment, Shortfall, Situation, targets_of
from reconciler.policy import matches_cluster


class Rule(NamedTuple):
    """The division of one workload. `provisions`: the last tier gets nodes when it needs them."""

    aggregated: bool
    fresh: bool
    provisions: bool


class TierOutcome(Struct, frozen=True, kw_only=True):
    """Replicas per cluster, the number without capacity, and clusters with an unknown capacity that matters."""

    counts: Mapping[str, int]
    missing: int = 0
    unknown: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()


def fill_tiers(
    replicas: int, members: Sequence[Candidate], labels: Sequence[str], room_of: RoomOf, rule: Rule
) -> TierOutcome:
    """Divide the replicas tier by tier.

    Each tier gets as many of the remaining replicas as it holds and can take, divided by the rule of the policy with
    the previous placement of that tier. The order of `members` is the order of preference. `labels` names the tiers by
    index. With `provisions` the last tier takes all that remains, whatever its capacity.
    """
    counts: dict[str, int] = {}
    texts: list[str] = []
    left = replicas
    last = len(labels) - 1
    for index in range(len(labels)):
        tier = members if not last else [member for member in members if member.tier == index]
        if not left:
            texts += [f"{labels[index]}: empties, nothing is left for it"] if any(m.keeps for m in tier) else []
            continue
        if not tier:
            continue
        provides = rule.provisions and index == last
        room = _free_capacity(left, tier, room_of, rule)
        unknown = [name for name, free in room if free is None]
        if unknown and not provides:
            return TierOutcome(counts=counts, missing=left, unknown=tuple(sorted(unknown)), texts=tuple(texts))
        known = [(name, free or 0) for name, free in room]
        known.sort(key=itemgetter(1), reverse=True)
        share = _share(left, tier, known, rule, provides=provides)
        counts.update(share.counts)
        left = share.missing
        texts.append(f"{labels[index]}: {share.text}" if len(labels) > 1 else share.text)
    return TierOutcome(counts=counts, missing=left, texts=tuple(texts))


def _free_capacity(
    replicas: int, tier: Sequence[Candidate], room_of: RoomOf, rule: Rule
) -> list[tuple[str, int | None]]:
    """Return capacity per cluster; nothing is asked if existing replicas suffice."""
    if not rule.fresh and replicas <= sum([member.keeps for member in tier]):
        return []
    growing = [m.name for m in tier if m.takes_more and (m.cap is None or m.cap > m.keeps)]
    known = dict(zip(growing, room_of(growing), strict=True))
    left = {m.name: m.cap - m.keeps for m in tier if m.cap is not None}
    if len(growing) == len(tier) and not left:
        return list(known.items())
    room = [(m.name, known.get(m.name, 0)) for m in tier]
    return [(name, free if free is None else min(free, left.get(name, free))) for name, free in room]


def _share(
    replicas: int, tier: Sequence[Candidate], room: list[tuple[str, int]], rule: Rule, *, provides: bool
) -> Share:
    kept = {member.name: member.keeps for member in tier if member.keeps}
    share = divide_by_capacity(replicas, kept, lambda: room, aggregated=rule.aggregated, fresh=rule.fresh)
    if not provides or not share.missing:
        return share
    growing = [member.name for member in tier if member.takes_more and member.cap is None]
    if not growing:
        return share
    # Nodes come where pods wait: Aggregated lets them all wait in one cluster, in use already if there is one.
    names = [next((name for name in growing if share.counts.get(name)), growing[0])] if rule.aggregated else growing
    waiting = without_zeros(webster(share.missing, dict.fromkeys(names, 1)))
    text = f"{share.text}, and wait for new nodes (ecsProvision): {listed(waiting.items(), sign='+')}"
    return Share(counts=total_of(share.counts, waiting), text=text)


def in_order_of_trial(
    groups: Sequence[AffinityGroup], situation: Situation, clusters: Mapping[str, Cluster]
) -> tuple[AffinityGroup, ...]:
    """The groups with the one in use first; in their own order on first placement, afresh, or when they fail back.

    Source: design#group-in-use; design#fail-back. Karmada never looks at an earlier group again, and clears the
    placement when the one in use stops matching.
    """
    if len(groups) == 1 or situation.fresh or situation.item.policy.fail_back:
        return tuple(groups)
    in_use = _group_in_use(groups, situation, clusters)
    return tuple(groups) if in_use is None else (in_use, *(group for group in groups if group is not in_use))


def _group_in_use(
    groups: Sequence[AffinityGroup], situation: Situation, clusters: Mapping[str, Cluster]
) -> AffinityGroup | None:
    if not situation.had:
        return None
    named = next((group for group in groups if group.name == situation.group_in_use), None)
    if named is not None:
        return named
    # A placement without a group (an observations file, marks read back) is recognised by its clusters.
    held = [clusters[name] for name in situation.had if name in clusters]
    covered = [sum(tier_of(cluster, group)[0] is not None for cluster in held) for group in groups]
    most = max(covered, default=0)
    return groups[covered.index(most)] if most else None


class StaticWeights:
    """Weights of every cluster by the static list of a policy, computed once per policy."""

    def __init__(self, clusters: Mapping[str, Cluster]) -> None:
        """Take the clusters of the store."""
        self._clusters = clusters
        self._weights: dict[int, dict[str, int]] = {}

    def of(self, scheduling: ReplicaScheduling, names: Sequence[str]) -> dict[str, int]:
        """Weight of each named cluster: the greatest of the entries that match it, 0 when none does."""
        weights = self._weights.get(id(scheduling))
        if weights is None:
            weights = self._weights[id(scheduling)] = dict.fromkeys(self._clusters, 0)
            for entry in scheduling.static_weights:
                for name in entry.target.cluster_names or self._clusters:
                    if name in weights and matches_cluster(entry.target, self._clusters[name])[0]:
                        weights[name] = max(weights[name], entry.weight)
        return {name: weights[name] for name in names}


def place_copies(
    situation: Situation,
    groups: Sequence[AffinityGroup],
    finder: CandidateFinder,
    clusters: Mapping[str, Cluster],
    weights: StaticWeights,
    room_of: RoomOf,
) -> Assignment:
    """Return a placement in the first group with a candidate; without any, existing copies stay."""
    failures: list[tuple[Candidates, Shortfall]] = []
    for group in groups:
        candidates = finder.find(situation, group)
        if not candidates.members:
            failures.append((candidates, none_fits(candidates)))
            continue
        selection = _selection(situation, candidates.members, clusters, room_of)
        if selection.failure:
            failures.append((candidates, Shortfall(code="spread-constraint-unmet", text=selection.failure)))
            continue
        return _placed(situation, group, candidates, selection, weights)
    candidates, shortfall = failures[0]
    text = f"{shortfall.text}; the previous placement stays" if situation.had else shortfall.text
    targets = _kept(situation)
    if situation.division is Division.DUPLICATED:
        unplaced = 0 if targets else situation.replicas
    else:
        unplaced = max(0, situation.replicas - sum(target.replicas or 0 for target in targets))
    return Assignment(
        targets=targets,
        unplaced=unplaced,
        affinity_name=situation.group_in_use,
        reasons=(situation.reason(shortfall.code, text),),
        cluster_reasons=candidates.reasons,
        shortfalls=(shortfall,),
    )


def _selection(
    situation: Situation, members: Sequence[Candidate], clusters: Mapping[str, Cluster], room_of: RoomOf
) -> SelectedClusters:
    placement = situation.item.policy.placement
    if not spread_applies(placement):
        return SelectedClusters(names=tuple(member.name for member in members))
    wanted = situation.replicas
    # The capacity for 0 replicas does not matter.
    free: RoomOf = room_of if wanted else lambda names: [0] * len(names)
    return select(placement, ranked_by_room(wanted, members, situation.had, clusters, free), wanted)


def _placed(
    situation: Situation,
    group: AffinityGroup,
    candidates: Candidates,
    selection: SelectedClusters,
    weights: StaticWeights,
) -> Assignment:
    names, item = sorted(selection.names), situation.item
    if item.demand.replicas is None:
        targets = tuple(TargetCluster(cluster=name) for name in names)
        text = f"{item.gvk.kind} has no replicas: a copy on {_each(len(names))}"
        rule = "copies"
    elif situation.division is Division.DUPLICATED:
        targets = targets_of(dict.fromkeys(names, situation.replicas))
        text = f"Duplicated: all {situation.replicas} replicas on {_each(len(names))}"
        rule = str(Division.DUPLICATED)
    elif not situation.replicas:
        first_tier = min(member.tier for member in candidates.members)
        primary = {member.name for member in candidates.members if member.tier == first_tier}
        targets, text = _scaled_to_zero(situation, names, primary, weights)
        rule = "scaled-to-zero"
    else:
        targets, text = _by_static_weights(situation, names, weights)
        rule = str(Division.STATIC)
    spread = (situation.reason("spread", selection.text),) if selection.text else ()
    reasons = (*spread, situation.reason(rule, text))
    return Assignment(targets=targets, affinity_name=group.name, reasons=reasons, cluster_reasons=candidates.reasons)


def _by_static_weights(
    situation: Situation, names: Sequence[str], weights: StaticWeights
) -> tuple[tuple[TargetCluster, ...], str]:
    scheduling, demand = situation.item.policy.placement.scheduling, situation.item.demand
    weighed = weights.of(scheduling, names)
    if demand.is_divisible:
        share = divide_statically(situation.replicas, weighed)
        return targets_of(share.counts), share.text
    share = divide_statically(1, weighed)
    counts = dict.fromkeys(share.counts, situation.replicas)
    return targets_of(counts), f"{situation.item.gvk.kind} cannot be divided: whole on the heaviest; {share.text}"


def _scaled_to_zero(
    situation: Situation, names: Sequence[str], primary: Collection[str], weights: StaticWeights
) -> tuple[tuple[TargetCluster, ...], str]:
    """Return its present clusters, with 0 replicas; without any its first candidates (`primary`: of the first tier)."""
    stays = [name for name in names if name in situation.had]
    if stays:
        return targets_of(dict.fromkeys(stays, 0)), "scaled to 0: it stays where it is, with 0 replicas"
    names = [name for name in names if name in primary] or names
    if situation.division is Division.STATIC:
        weighed = weights.of(situation.item.policy.placement.scheduling, names)
        names = [name for name in names if weighed[name]] or names
    return targets_of(dict.fromkeys(names, 0)), "0 replicas and nowhere yet: the object goes to the candidates"


def _each(clusters: int) -> str:
    return "the one selected cluster" if clusters == 1 else f"each of {clusters} selected clusters"


def _kept(situation: Situation) -> tuple[TargetCluster, ...]:
    if situation.item.demand.replicas is None:
        return tuple(TargetCluster(cluster=name) for name in situation.had)
    if situation.division is Division.DUPLICATED or not situation.replicas:
        return targets_of(dict.fromkeys(situation.had, situation.replicas))
    return targets_of(situation.had)
