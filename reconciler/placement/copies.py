"""Tiers of clusters, the order of exclusive groups, and placement that does not depend on free capacity.

The first tier fills first, the last empties first; a placement without tiers is one tier. Source: the page "Elastic
scheduling with multi-cluster priorities"; Karmada: overflowAffinities, Duplicated and static weights (divided from
scratch); design#affinity-groups; design#ecs-provision; design#scaled-to-0; design#not-enough-room.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter

from reconciler.api.binding import TargetCluster
from reconciler.api.clusters import Cluster
from reconciler.api.policies import Division
from reconciler.placement.candidates import (
    AffinityGroup,
    Candidate,
    CandidateFinder,
    Candidates,
    none_fits,
    stays_as_it_is,
    tier_of,
)
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
from reconciler.placement.values import Assignment, PlacementContext, Shortfall, targets_of


def fill_tiers(
    replicas: int, members: Sequence[Candidate], labels: Sequence[str], room_of: RoomOf, situation: PlacementContext
) -> tuple[Share, list[str]]:
    """Divide the replicas tier by tier; return that, and the clusters with an unknown capacity that matters.

    Each tier gets what it can take of the rest, by the policy's rule. `members`: in order of preference. With
    `ecsProvision` the last tier takes all that remains.
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
        provides = situation.item.policy.ecs_provision and index == last
        is_enough = not situation.fresh and left <= sum([member.keeps for member in tier])
        room = [] if is_enough else _free_capacity(tier, room_of)
        unknown = [name for name, free in room if free is None]
        if unknown and not provides:
            return Share(counts=counts, missing=left, texts=tuple(texts)), sorted(unknown)
        known = [(name, free or 0) for name, free in room]
        known.sort(key=itemgetter(1), reverse=True)
        share = _share(left, tier, known, situation, provides=provides)
        counts.update(share.counts)
        left = share.missing
        texts.append(f"{labels[index]}: {share.text}" if len(labels) > 1 else share.text)
    return Share(counts=counts, missing=left, texts=tuple(texts)), []


def _free_capacity(tier: Sequence[Candidate], room_of: RoomOf) -> list[tuple[str, int | None]]:
    growing = [m.name for m in tier if m.takes_more and (m.cap is None or m.cap > m.keeps)]
    known = dict(zip(growing, room_of(growing), strict=True))
    left = {m.name: m.cap - m.keeps for m in tier if m.cap is not None}
    if len(growing) == len(tier) and not left:
        return list(known.items())
    room = [(m.name, known.get(m.name, 0)) for m in tier]
    return [(name, free if free is None else min(free, left.get(name, free))) for name, free in room]


def _share(
    replicas: int,
    tier: Sequence[Candidate],
    room: list[tuple[str, int]],
    situation: PlacementContext,
    *,
    provides: bool,
) -> Share:
    aggregated = situation.division is Division.AGGREGATED
    previous = {member.name: member.keeps for member in tier if member.keeps}
    share = divide_by_capacity(replicas, previous, lambda: room, aggregated=aggregated, fresh=situation.fresh)
    if not provides or not share.missing:
        return share
    growing = [member.name for member in tier if member.takes_more and member.cap is None]
    if not growing:
        return share
    # Nodes come where pods wait: Aggregated lets them all wait in one cluster, in use already if there is one.
    names = [next((name for name in growing if share.counts.get(name)), growing[0])] if aggregated else growing
    waiting = without_zeros(webster(share.missing, dict.fromkeys(names, 1)))
    text = f"{share.text}, and wait for new nodes (ecsProvision): {listed(waiting.items(), sign='+')}"
    return Share(counts=total_of(share.counts, waiting), texts=(text,))


def in_order_of_trial(
    groups: Sequence[AffinityGroup], situation: PlacementContext, clusters: Mapping[str, Cluster]
) -> tuple[AffinityGroup, ...]:
    """Return the groups to try, the one in use first. Source: design#group-in-use; design#fail-back."""
    if len(groups) == 1 or situation.fresh or situation.item.policy.fail_back:
        return tuple(groups)
    if not situation.had:
        return tuple(groups)
    in_use = next((group for group in groups if group.name == situation.group_in_use), None)
    if in_use is None:
        # A placement without a group (an observations file, marks read back) is recognised by its clusters.
        held = [clusters[name] for name in situation.had if name in clusters]
        covered = [sum(tier_of(cluster, group)[0] is not None for cluster in held) for group in groups]
        if not any(covered):
            return tuple(groups)
        in_use = groups[covered.index(max(covered))]
    return (in_use, *(group for group in groups if group is not in_use))


def place_copies(
    situation: PlacementContext, groups: Sequence[AffinityGroup], finder: CandidateFinder, room_of: RoomOf
) -> Assignment:
    """Return a placement in the first group with a candidate; without any, existing copies stay."""
    placement, wanted = situation.item.policy.placement, situation.replicas
    # The capacity for 0 replicas does not matter.
    free: RoomOf = room_of if wanted else lambda names: [0] * len(names)
    failures: list[tuple[Candidates, Shortfall]] = []
    for group in groups:
        candidates = finder.find(situation, group)
        if not candidates.members:
            failures.append((candidates, none_fits(candidates)))
            continue
        if spread_applies(placement):
            selection = select(placement, ranked_by_room(wanted, candidates.members, situation.had, free), wanted)
        else:
            selection = SelectedClusters(names=tuple(member.name for member in candidates.members))
        if selection.failure:
            failures.append((candidates, Shortfall(code="spread-constraint-unmet", text=selection.failure)))
            continue
        return _placed(situation, group, candidates, selection, finder)
    candidates, shortfall = failures[0]
    text = f"{shortfall.text}; the previous placement stays" if situation.had else shortfall.text
    if situation.item.demand.replicas is None:
        targets = tuple(TargetCluster(cluster=name) for name in situation.had)
    elif situation.division is Division.DUPLICATED or not situation.replicas:
        targets = targets_of(dict.fromkeys(situation.had, situation.replicas))
    else:
        targets = targets_of(situation.had)
    if situation.division is Division.DUPLICATED:
        unplaced = 0 if targets else situation.replicas
    else:
        unplaced = max(0, situation.replicas - sum(target.replicas or 0 for target in targets))
    return stays_as_it_is(situation, candidates, shortfall, targets, text, unplaced)


def _placed(
    situation: PlacementContext,
    group: AffinityGroup,
    candidates: Candidates,
    selection: SelectedClusters,
    finder: CandidateFinder,
) -> Assignment:
    names, item = sorted(selection.names), situation.item
    scheduling = item.policy.placement.scheduling
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
        primary = [member.name for member in candidates.members if member.tier == first_tier]
        stays = [name for name in names if name in situation.had]
        text = "scaled to 0: it stays where it is, with 0 replicas"
        if not stays:
            stays = [name for name in names if name in primary] or names
            if situation.division is Division.STATIC:
                weighed = finder.weights_of(scheduling, stays)
                stays = [name for name in stays if weighed[name]] or stays
            text = "0 replicas and nowhere yet: the object goes to the candidates"
        targets = targets_of(dict.fromkeys(stays, 0))
        rule = "scaled-to-zero"
    else:
        weighed = finder.weights_of(scheduling, names)
        share = divide_statically(situation.replicas if item.demand.is_divisible else 1, weighed)
        counts, text = share.counts, share.text
        if not item.demand.is_divisible:
            counts = dict.fromkeys(counts, situation.replicas)
            text = f"{item.gvk.kind} cannot be divided: whole on the heaviest; {text}"
        targets, rule = targets_of(counts), str(Division.STATIC)
    spread = (situation.reason("spread", selection.text),) if selection.text else ()
    reasons = (*spread, situation.reason(rule, text))
    return Assignment(targets=targets, affinity_name=group.name, reasons=reasons, cluster_reasons=candidates.reasons)


def _each(clusters: int) -> str:
    return "the one selected cluster" if clusters == 1 else f"each of {clusters} selected clusters"
