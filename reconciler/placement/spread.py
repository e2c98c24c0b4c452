"""Choice of clusters under spread constraints on the number of clusters and regions.

Source: Karmada: clusters and regions are selected, zone and provider next to a cluster constraint only demand the
property, `spreadByLabel` alone fails, static weights ignore all of it. One point differs, design#max-groups: not given
is no limit.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple

from msgspec import Struct

from reconciler.api.policies import Division, Placement, SpreadConstraint
from reconciler.incremental import by_key
from reconciler.placement.candidates import Candidate
from reconciler.placement.capacity import RoomOf


class Ranked(NamedTuple):
    """A candidate to select. `score`: 100 where the resource is, else 0; `available`: free plus present replicas."""

    name: str
    tier: int
    score: int
    available: int
    region: str


class SelectedClusters(Struct, frozen=True, kw_only=True):
    """The selected clusters in order of preference, or why none could be selected."""

    names: tuple[str, ...] = ()
    text: str = ""
    failure: str = ""
    lacks_room: bool = False


def ranked_by_room(
    replicas: int, members: Sequence[Candidate], had: Mapping[str, int], room_of: RoomOf
) -> list[Ranked]:
    """Return candidates with their capacity; all replicas fit where no estimator answers. Source: Karmada."""
    growing = [member.name for member in members if member.takes_more]
    free = dict(zip(growing, room_of(growing), strict=True))
    ranked = []
    for member in members:
        name, room = member.name, free.get(member.name, 0)
        available = (replicas if room is None else room) + had.get(name, 0)
        ranked.append(Ranked(name, member.tier, 100 if name in had else 0, available, member.region))
    return ranked


def in_order(candidates: Sequence[Ranked]) -> list[Ranked]:
    """Return candidates by tier, then score and available replicas from the greatest, then name. Source: Karmada."""
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


def is_within_maximum(placement: Placement, regions: Sequence[str]) -> bool:
    """Return whether the clusters in use, by their regions, are within the maximum of the constraints."""
    if not spread_applies(placement):
        return True
    in_use = (("cluster", len(regions)), ("region", len({*regions})))
    pairs = [(constraint_on(placement, field), number) for field, number in in_use]
    return all(number <= constraint.max_groups for constraint, number in pairs if constraint and constraint.max_groups)


def select_by_cluster(
    constraint: SpreadConstraint, candidates: Sequence[Ranked], replicas: int | None
) -> SelectedClusters:
    """Return clusters for a `cluster` constraint, from ordered candidates; `replicas` None: capacity is ignored.

    Source: Karmada: the first clusters in order, then swaps from the last one upwards for the unselected cluster with
    the most capacity, until the replicas fit.
    """
    if len(candidates) < constraint.min_groups:
        return SelectedClusters(failure=f"{len(candidates)} clusters fit, minGroups asks for {constraint.min_groups}")
    wanted = min(len(candidates), constraint.max_groups or len(candidates))
    chosen, others = list(candidates[:wanted]), list(candidates[wanted:])
    room = sum(candidate.available for candidate in chosen)
    for slot in reversed(range(len(chosen))):
        if replicas is None or room >= replicas or not others:
            break
        best = max(range(len(others)), key=lambda index: (others[index].available, -index))
        if others[best].available > chosen[slot].available:
            room += others[best].available - chosen[slot].available
            chosen[slot], others[best] = others[best], chosen[slot]
    names = tuple(candidate.name for candidate in chosen)
    text = f"spread over {wanted} of {len(candidates)} clusters: {', '.join(names)}"
    if replicas is not None and room < replicas:
        failure = f"no {wanted} clusters together have room for {replicas} replicas (at most {room})"
        return SelectedClusters(names=names, text=text, failure=failure, lacks_room=True)
    return SelectedClusters(names=names, text=text)


_UNIT = 1000
"""Weight of one replica (one cluster under Duplicated) against the average score of 0 to 100."""

_MAX_STEPS = 50_000
"""Limit of searched combinations; then regions are taken by score."""

_MAX_DEPTH = 200
"""The limit of regions for the search of combinations."""


class Region(NamedTuple):
    """A region with its clusters in order."""

    name: str
    score: int
    clusters: tuple[Ranked, ...]


def select_by_region(
    by_region: SpreadConstraint,
    by_cluster: SpreadConstraint,
    candidates: Sequence[Ranked],
    replicas: int,
    *,
    duplicated: bool,
) -> SelectedClusters:
    """Return clusters for a `region` constraint next to a `cluster` constraint, out of ordered candidates.

    Source: Karmada: regions are scored by the capacity of their clusters, the best combination is searched depth first,
    each chosen region gives its best cluster, and the rest is filled up to the cluster constraint's maximum.
    """
    least, least_clusters = by_region.min_groups, by_cluster.min_groups
    members = by_key((candidate.region, candidate) for candidate in candidates)
    regions = [
        Region(name, region_score(clusters, replicas, least, least_clusters, duplicated=duplicated), tuple(clusters))
        for name, clusters in members.items()
        if name
    ]
    if len(regions) < least:
        return SelectedClusters(failure=f"{len(regions)} regions fit, minGroups asks for {least}")
    chosen = choose_regions(regions, least, by_region.max_groups or len(regions), least_clusters)
    if not chosen:
        return SelectedClusters(failure=f"no allowed choice of regions has the {least_clusters} clusters of minGroups")
    names = [region.clusters[0].name for region in chosen]
    rest = [candidate for region in chosen for candidate in region.clusters[1:]]
    rest.sort(key=lambda candidate: (-candidate.score, -candidate.available, candidate.name))
    limit = by_cluster.max_groups or len(names) + len(rest)
    names += [candidate.name for candidate in rest[: max(0, limit - len(names))]]
    scored = ", ".join(f"{region.name} (score {region.score})" for region in chosen)
    return SelectedClusters(names=tuple(names), text=f"spread over {len(chosen)} regions {scored}: {', '.join(names)}")


def region_score(
    clusters: Sequence[Ranked], replicas: int, min_regions: int, min_clusters: int, *, duplicated: bool
) -> int:
    """Return the score of a region with ordered clusters: counted capacity times 1000, plus their average score.

    Capacity counts up to the share of replicas that one region needs, so a region that is big enough scores as a bigger
    one does. Under Duplicated every cluster with capacity for all replicas counts 1.
    """
    if duplicated:
        fitting = [cluster.score for cluster in clusters if cluster.available >= replicas]
        return len(fitting) * _UNIT + sum(fitting) // len(fitting) if fitting else 0
    target = -(-replicas // max(1, min_regions))
    enough = max(min_clusters, min_regions)
    room = scores = used = 0
    for cluster in clusters:
        room += cluster.available
        scores += cluster.score
        used += 1
        if used >= enough and room >= target:
            break
    return min(room, target) * _UNIT + scores // used


def choose_regions(regions: Sequence[Region], least: int, most: int, min_clusters: int) -> tuple[Region, ...]:
    """Return the best combination of `least` to `most` regions with `min_clusters` clusters; empty if none.

    Best: highest total score, then most clusters, then found first; a shorter combination that begins the best one
    (both ordered by score and name) is preferred.
    """
    ordered = sorted(regions, key=lambda region: (len(region.clusters), -region.score, region.name))
    paths = _combinations(ordered, least, most, min_clusters) if len(ordered) <= _MAX_DEPTH else None
    if paths is None:
        by_score = sorted(regions, key=lambda region: (-region.score, -len(region.clusters), region.name))
        for count in range(max(1, least), min(most, len(by_score)) + 1):
            if sum(len(region.clusters) for region in by_score[:count]) >= min_clusters:
                return tuple(by_score[:count])
        by_size = sorted(regions, key=lambda region: (-len(region.clusters), -region.score, region.name))[:most]
        return tuple(by_size) if sum(len(region.clusters) for region in by_size) >= min_clusters else ()
    paths.sort(key=lambda path: (-sum(region.score for region in path), -sum(len(one.clusters) for one in path)))
    best: tuple[Region, ...] = paths[0] if paths else ()
    for path in paths[1:]:
        if len(path) < len(best) and best[: len(path)] == path:
            best = path
    return best


def _combinations(
    regions: Sequence[Region], least: int, most: int, min_clusters: int
) -> list[tuple[Region, ...]] | None:
    paths: list[tuple[Region, ...]] = []
    chosen: list[Region] = []
    steps = itertools.count(1)

    def search(clusters: int, begin: int) -> bool:
        if next(steps) > _MAX_STEPS:
            return False
        if clusters >= min_clusters and least <= len(chosen) <= most:
            paths.append(tuple(sorted(chosen, key=lambda region: (-region.score, region.name))))
            return True
        if len(chosen) >= most:
            return True
        for index in range(begin, len(regions)):
            chosen.append(regions[index])
            finished = search(clusters + len(regions[index].clusters), index + 1)
            chosen.pop()
            if not finished:
                return False
        return True

    return paths if search(0, 0) else None


def select(placement: Placement, candidates: Sequence[Ranked], replicas: int) -> SelectedClusters:
    """Return the clusters that constraints select out of all candidates; all of them when no constraint selects."""
    ordered = in_order(candidates)
    if not spread_applies(placement):
        return SelectedClusters(names=tuple(candidate.name for candidate in ordered))
    duplicated = placement.scheduling.division is Division.DUPLICATED
    by_cluster, by_region = constraint_on(placement, "cluster"), constraint_on(placement, "region")
    if by_region is not None:
        return select_by_region(by_region, by_cluster or SpreadConstraint(), ordered, replicas, duplicated=duplicated)
    if by_cluster is not None:
        return select_by_cluster(by_cluster, ordered, None if duplicated else replicas)
    return SelectedClusters(failure="only spread constraints by cluster and by region select clusters")
