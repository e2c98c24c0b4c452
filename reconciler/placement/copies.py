"""Placement that does not depend on free capacity: no replicas, Duplicated, static weights, and scaled to 0.

Source: Karmada: every selected cluster gets a copy (non-workloads without a number, Duplicated with all replicas),
static weights are divided from scratch; design#scaled-to-0; design#not-enough-room: nothing is cleared because nothing
fits.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from reconciler.api.binding import Reason, TargetCluster
from reconciler.api.clusters import Cluster
from reconciler.api.policies import Division, ReplicaScheduling
from reconciler.placement.candidates import AffinityGroup, Candidate, CandidateFinder, Candidates, none_fits
from reconciler.placement.capacity import RoomOf
from reconciler.placement.divide import divide_statically
from reconciler.placement.spread import SelectedClusters, ranked_by_room, select, spread_applies
from reconciler.placement.values import Assignment, Shortfall, Situation, targets_of
from reconciler.policy import matches_cluster


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
    placed = sum(target.replicas or 0 for target in targets)
    return Assignment(
        targets=targets,
        unplaced=_unplaced(situation, placed, bool(targets)),
        affinity_name=situation.group_in_use,
        reasons=(_reason(situation, shortfall.code, text),),
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
    ranked = ranked_by_room(wanted, members, situation.had, clusters, room_of if wanted else _no_room)
    return select(placement, ranked, wanted)


def _no_room(clusters: Sequence[str]) -> Sequence[int | None]:
    """Return the capacity for 0 replicas: it does not matter."""
    return [0] * len(clusters)


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
    reasons = [_reason(situation, rule, text)]
    if selection.text:
        reasons.insert(0, _reason(situation, "spread", selection.text))
    return Assignment(
        targets=targets,
        affinity_name=group.name,
        reasons=tuple(reasons),
        cluster_reasons=candidates.reasons,
    )


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


def _unplaced(situation: Situation, placed: int, is_somewhere: bool) -> int:
    if situation.division is Division.DUPLICATED:
        return 0 if is_somewhere else situation.replicas
    return max(0, situation.replicas - placed)


def _reason(situation: Situation, rule: str, text: str) -> Reason:
    return Reason(rule=rule, text=text, source=situation.item.policy.placement.scheduling.source)
