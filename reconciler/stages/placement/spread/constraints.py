"""Spread constraints: whether they select, the order of candidates, and the form of a choice.

Source: Karmada: clusters and regions are selected, zone and provider next to a cluster constraint only demand the
property, `spreadByLabel` alone fails, static weights ignore all of it. One point differs, design#max-groups: not given
is no limit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple

from msgspec import Struct

from reconciler.model.cluster import Cluster
from reconciler.model.policy import Division, Placement, SpreadConstraint
from reconciler.stages.placement.candidates import Candidate
from reconciler.stages.placement.room import RoomOf


class Ranked(NamedTuple):
    """A candidate as selection sees it.

    `score` is 100 for a cluster that holds the resource, else 0; `available`: free capacity plus the replicas there.
    """

    name: str
    tier: int
    score: int
    available: int
    region: str


class Selection(Struct, frozen=True, kw_only=True):
    """The selected clusters in order of preference, or why none could be selected."""

    names: tuple[str, ...] = ()
    text: str = ""
    failure: str = ""
    lacks_room: bool = False


def ranked_by_room(
    replicas: int,
    members: Sequence[Candidate],
    had: Mapping[str, int],
    clusters: Mapping[str, Cluster],
    room_of: RoomOf,
) -> list[Ranked]:
    """Candidates with the replicas that each could hold.

    Source: Karmada: where no estimator answers, as many replicas as are asked for count as available.
    """
    growing = [member.name for member in members if member.takes_more]
    free = dict(zip(growing, room_of(growing), strict=True))
    ranked = []
    for member in members:
        name, found = member.name, free.get(member.name, 0)
        available = (replicas if found is None else found) + had.get(name, 0)
        ranked.append(Ranked(name, member.tier, 100 if name in had else 0, available, clusters[name].region))
    return ranked


def in_order(candidates: Sequence[Ranked]) -> list[Ranked]:
    """Candidates by tier, then score and available replicas from the greatest, then name. Source: Karmada."""
    # One pass a key, the last one first: sorting is stable, and these keys are made without a call for each candidate.
    ordered = sorted(candidates, key=attrgetter("name"))
    ordered.sort(key=attrgetter("score", "available"), reverse=True)
    ordered.sort(key=attrgetter("tier"))
    return ordered


def spread_applies(placement: Placement) -> bool:
    """Return whether constraints select. Source: Karmada: not for static weights, unless weightPreference is empty."""
    scheduling = placement.scheduling
    ignored = scheduling.division is Division.STATIC and (
        bool(scheduling.static_weights) or not scheduling.has_weight_preference
    )
    return bool(placement.spread) and not ignored


def constraint_on(placement: Placement, field: str) -> SpreadConstraint | None:
    """Return the constraint by a field; None without one."""
    return next((constraint for constraint in placement.spread if constraint.by_field == field), None)


def keeps_to_maximum(placement: Placement, regions: Mapping[str, str]) -> bool:
    """Return whether the clusters in use (name to region) are within the maximum of the constraints."""
    if not spread_applies(placement):
        return True
    by_cluster, by_region = constraint_on(placement, "cluster"), constraint_on(placement, "region")
    if by_cluster is not None and by_cluster.max_groups and len(regions) > by_cluster.max_groups:
        return False
    return not (by_region is not None and by_region.max_groups and len({*regions.values()}) > by_region.max_groups)
