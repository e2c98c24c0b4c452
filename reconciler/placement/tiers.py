"""Replicas over tiers of clusters: the first tier fills first, the last empties first.

Source: the page "Elastic scheduling with multi-cluster priorities"; Karmada: overflowAffinities;
design#affinity-groups; design#ecs-provision. A placement without tiers is one tier.

Which of several exclusive groups of clusters is tried first.

Source: design#group-in-use: it stays while it fits, else the first that fits from the top; design#fail-back: going back
to an earlier group is an opt-in. Karmada never looks at an earlier group again, and clears the placement when the one
in use stops matching.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import NamedTuple

from msgspec import Struct

from reconciler.api.clusters import Cluster
from reconciler.placement.candidates import AffinityGroup, Candidate, tier_of
from reconciler.placement.capacity import RoomOf
from reconciler.placement.divide import Share, divide_by_capacity, listed, webster, without_zeros
from reconciler.placement.values import Situation


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
        room = _room(left, tier, room_of, rule)
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


def _room(replicas: int, tier: Sequence[Candidate], room_of: RoomOf, rule: Rule) -> list[tuple[str, int | None]]:
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
    counts = {name: share.counts.get(name, 0) + waiting.get(name, 0) for name in {*share.counts, *waiting}}
    text = f"{share.text}, and wait for new nodes (ecsProvision): {listed(waiting.items(), sign='+')}"
    return Share(counts=without_zeros(counts), text=text)


def in_order_of_trial(
    groups: Sequence[AffinityGroup], situation: Situation, clusters: Mapping[str, Cluster]
) -> tuple[AffinityGroup, ...]:
    """The groups with the one in use first; in their own order on first placement, afresh, or when they fail back."""
    if len(groups) == 1 or situation.fresh or situation.item.policy.fail_back:
        return tuple(groups)
    in_use = _group_in_use(groups, situation, clusters)
    if in_use is None:
        return tuple(groups)
    return (in_use, *(group for group in groups if group is not in_use))


def _group_in_use(
    groups: Sequence[AffinityGroup], situation: Situation, clusters: Mapping[str, Cluster]
) -> AffinityGroup | None:
    named = next((group for group in groups if group.name == situation.group_in_use), None)
    if named is not None or not situation.had:
        return named if situation.had else None
    # A placement without a group (an observations file, marks read back) is recognised by its clusters.
    held = [clusters[name] for name in situation.had if name in clusters]
    covered = [sum(tier_of(cluster, group)[0] is not None for cluster in held) for group in groups]
    most = max(covered, default=0)
    return groups[covered.index(most)] if most else None
