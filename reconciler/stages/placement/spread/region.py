"""Choice of clusters under a constraint on the number of regions.

Source: Karmada: regions are scored by the capacity of their clusters, the best combination is searched depth first,
each chosen region gives its best cluster, and the rest is filled up to the cluster constraint's maximum.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from reconciler.model.policy import SpreadConstraint
from reconciler.stages.placement.spread.constraints import Ranked, Selection

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
) -> Selection:
    """Clusters for a `region` constraint next to a `cluster` constraint, out of ordered candidates."""
    needs = Needs(replicas, by_region.min_groups, by_cluster.min_groups, duplicated)
    members: dict[str, list[Ranked]] = {}
    for candidate in candidates:
        members.setdefault(candidate.region, []).append(candidate)
    regions = [
        Region(name, region_score(clusters, needs), tuple(clusters)) for name, clusters in members.items() if name
    ]
    if len(regions) < by_region.min_groups:
        return Selection(failure=f"{len(regions)} regions fit, minGroups asks for {by_region.min_groups}")
    chosen = choose_regions(regions, by_region.min_groups, by_region.max_groups or len(regions), by_cluster.min_groups)
    if not chosen:
        return Selection(failure=f"no allowed choice of regions has the {by_cluster.min_groups} clusters of minGroups")
    names = [region.clusters[0].name for region in chosen]
    rest = sorted(
        (candidate for region in chosen for candidate in region.clusters[1:]),
        key=lambda candidate: (-candidate.score, -candidate.available, candidate.name),
    )
    limit = by_cluster.max_groups or len(names) + len(rest)
    names += [candidate.name for candidate in rest[: max(0, limit - len(names))]]
    scored = ", ".join(f"{region.name} (score {region.score})" for region in chosen)
    return Selection(names=tuple(names), text=f"spread over {len(chosen)} regions {scored}: {', '.join(names)}")


class Needs(NamedTuple):
    """The policy's requirements on regions."""

    replicas: int
    min_regions: int
    min_clusters: int
    duplicated: bool


def region_score(clusters: Sequence[Ranked], needs: Needs) -> int:
    """Return the score of a region with ordered clusters: counted capacity times 1000, plus their average score.

    Capacity counts up to the share of replicas that one region needs, so a region that is big enough scores as a bigger
    one does. Under Duplicated every cluster with capacity for all replicas counts 1.
    """
    if needs.duplicated:
        fitting = [cluster.score for cluster in clusters if cluster.available >= needs.replicas]
        return len(fitting) * _UNIT + sum(fitting) // len(fitting) if fitting else 0
    target = -(-needs.replicas // max(1, needs.min_regions))
    enough = max(needs.min_clusters, needs.min_regions)
    room = scores = used = 0
    for cluster in clusters:
        room += cluster.available
        scores += cluster.score
        used += 1
        if used >= enough and room >= target:
            break
    return min(room, target) * _UNIT + scores // used


class _Path(NamedTuple):
    regions: tuple[Region, ...]
    score: int
    clusters: int


def choose_regions(regions: Sequence[Region], least: int, most: int, min_clusters: int) -> tuple[Region, ...]:
    """Return the best combination of `least` to `most` regions with `min_clusters` clusters; empty if none.

    Best: highest total score, then most clusters, then found first; a shorter combination that begins the best one
    (both ordered by score and name) is preferred.
    """
    ordered = sorted(regions, key=lambda region: (len(region.clusters), -region.score, region.name))
    paths = _combinations(ordered, least, most, min_clusters) if len(ordered) <= _MAX_DEPTH else None
    if paths is None:
        return _by_score(regions, least, most, min_clusters)
    paths.sort(key=lambda path: (-path.score, -path.clusters))
    if not paths:
        return ()
    best = paths[0]
    for path in paths[1:]:
        if len(path.regions) < len(best.regions) and best.regions[: len(path.regions)] == path.regions:
            best = path
    return best.regions


def _combinations(regions: Sequence[Region], least: int, most: int, min_clusters: int) -> list[_Path] | None:
    paths: list[_Path] = []
    taken: list[Region] = []
    steps = 0

    def search(clusters: int, begin: int) -> bool:
        nonlocal steps
        steps += 1
        if steps > _MAX_STEPS:
            return False
        if clusters >= min_clusters and least <= len(taken) <= most:
            by_score = tuple(sorted(taken, key=lambda region: (-region.score, region.name)))
            paths.append(_Path(by_score, sum(region.score for region in taken), clusters))
            return True
        if len(taken) >= most:
            return True
        for index in range(begin, len(regions)):
            taken.append(regions[index])
            finished = search(clusters + len(regions[index].clusters), index + 1)
            taken.pop()
            if not finished:
                return False
        return True

    return paths if search(0, 0) else None


def _by_score(regions: Sequence[Region], least: int, most: int, min_clusters: int) -> tuple[Region, ...]:
    by_score = sorted(regions, key=lambda region: (-region.score, -len(region.clusters), region.name))
    for count in range(max(1, least), min(most, len(by_score)) + 1):
        if sum(len(region.clusters) for region in by_score[:count]) >= min_clusters:
            return tuple(by_score[:count])
    by_size = sorted(regions, key=lambda region: (-len(region.clusters), -region.score, region.name))[:most]
    return tuple(by_size) if sum(len(region.clusters) for region in by_size) >= min_clusters else ()
