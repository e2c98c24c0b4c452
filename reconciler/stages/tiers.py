"""Replicas over tiers of clusters: the first tier fills first, the last empties first.

Source: the page "Elastic scheduling with multi-cluster priorities"; Karmada: overflowAffinities; design: table row
"`autoScaling.ecsProvision`". A placement without tiers is one tier.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from reconciler.stages.divide import Share, divide_by_capacity, listed, webster, without_zeros


class Standing(NamedTuple):
    """A selected cluster: what it keeps of the previous placement and the most that it may hold (None: no cap).

    `takes_more` False: nothing new goes there. The order of standings is the order of preference.
    """

    name: str
    tier: int
    keeps: int
    cap: int | None
    takes_more: bool

    @property
    def may_grow(self) -> bool:
        """Whether anything new may go there at all."""
        return self.takes_more and (self.cap is None or self.cap > self.keeps)


class Rule(NamedTuple):
    """How one workload is divided. `provisions`: the last tier gets nodes when it needs them."""

    aggregated: bool
    fresh: bool
    provisions: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TierOutcome:
    """Replicas per cluster, how many found no room, and clusters whose room had to be known but is not."""

    counts: Mapping[str, int]
    missing: int = 0
    unknown: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()


RoomOf = Callable[[str], int | None]
"""Replicas that a cluster could take in addition; None when that is not known."""


def fill_tiers(
    replicas: int, standings: Sequence[Standing], labels: Sequence[str], room_of: RoomOf, rule: Rule
) -> TierOutcome:
    """Hands out the replicas tier by tier.

    Each tier gets as many of the remaining replicas as it holds and has room for, divided by the rule of the policy
    with the previous placement of that tier. `labels` names the tiers by index. With `provisions` the last tier takes
    all that remains, whatever its room.
    """
    counts: dict[str, int] = {}
    texts: list[str] = []
    left = replicas
    last = len(labels) - 1
    for index in range(len(labels)):
        tier = [standing for standing in standings if standing.tier == index]
        if not left:
            texts += [f"{labels[index]}: empties, nothing is left for it"] if any(s.keeps for s in tier) else []
            continue
        if not tier:
            continue
        provides = rule.provisions and index == last
        room = _room(left, tier, room_of, rule)
        unknown = tuple(sorted(name for name, free in room if free is None))
        if unknown and not provides:
            return TierOutcome(counts=counts, missing=left, unknown=unknown, texts=tuple(texts))
        share = _share(left, tier, [(name, free or 0) for name, free in room], rule, provides=provides)
        counts.update(share.counts)
        left = share.missing
        texts.append(f"{labels[index]}: {share.text}" if len(labels) > 1 else share.text)
    return TierOutcome(counts=counts, missing=left, texts=tuple(texts))


def _room(replicas: int, tier: Sequence[Standing], room_of: RoomOf, rule: Rule) -> list[tuple[str, int | None]]:
    """Room per cluster, the greatest first; nothing is asked when what is there suffices."""
    if not rule.fresh and replicas <= sum(standing.keeps for standing in tier):
        return []
    room = [(standing.name, _room_at(standing, room_of)) for standing in tier]
    return sorted(room, key=lambda entry: -(entry[1] or 0))


def _room_at(standing: Standing, room_of: RoomOf) -> int | None:
    if not standing.may_grow:
        return 0
    free = room_of(standing.name)
    return free if free is None or standing.cap is None else min(free, standing.cap - standing.keeps)


def _share(
    replicas: int, tier: Sequence[Standing], room: list[tuple[str, int]], rule: Rule, *, provides: bool
) -> Share:
    kept = {standing.name: standing.keeps for standing in tier if standing.keeps}
    share = divide_by_capacity(replicas, kept, lambda: room, aggregated=rule.aggregated, fresh=rule.fresh)
    growing = [standing.name for standing in tier if standing.takes_more and standing.cap is None]
    if not provides or not share.missing or not growing:
        return share
    # Nodes come where pods wait: Aggregated lets them all wait in one cluster, in use already if there is one.
    names = [next((name for name in growing if share.counts.get(name)), growing[0])] if rule.aggregated else growing
    waiting = without_zeros(webster(share.missing, dict.fromkeys(names, 1)))
    counts = {name: share.counts.get(name, 0) + waiting.get(name, 0) for name in {*share.counts, *waiting}}
    text = f"{share.text}, and wait for new nodes (ecsProvision): {listed(waiting.items(), sign='+')}"
    return Share(counts=without_zeros(counts), text=text)
