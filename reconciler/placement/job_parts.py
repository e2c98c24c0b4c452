"""Placement of a divided Job that has begun: completions are fixed at creation, so its parts move whole or not at all.

An API server refuses to change the completions of a Job. Replicas that leave a cluster can therefore only go to
clusters that have no part yet; elsewhere the parallelism would come and the completions would not. Source: design#jobs;
Kubernetes: spec.completions is immutable; Karmada: completions by Webster over the assigned parallelism.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final

from msgspec.structs import replace

from reconciler.api.binding import TargetCluster
from reconciler.api.content import JsonObject, dig
from reconciler.api.policies import Division
from reconciler.kinds.jobs import COMPLETIONS, PARALLELISM
from reconciler.placement.divide import listed, webster
from reconciler.placement.values import OPEN, Assignment, PlacementContext, Shortfall, targets_of

PARTS_STAY = "job-parts-stay"

Decide = Callable[[PlacementContext], Assignment]


def place_parts(situation: PlacementContext, clusters: Collection[str], decide: Decide) -> Assignment:
    """Return the placement of a resource, perhaps a divided Job. `decide` places anything as if it had no parts."""
    free = decide(situation)
    parts = {cluster: count for cluster, count in situation.had.items() if count}
    is_divided = situation.division is not Division.DUPLICATED and not situation.is_whole
    if not (situation.item.has_completions and is_divided and situation.replicas and parts):
        return free
    placed = {target.cluster: target.replicas or 0 for target in free.targets}
    # An order, a tick or the affinity takes a part away, and not just another division.
    candidates = {name for name, reason in free.cluster_reasons.items() if reason.rule in OPEN}
    leaving = {
        name: count
        for name, count in parts.items()
        if name not in placed
        and (name in situation.excluded or situation.caps.get(name) == 0 or name not in candidates)
    }
    staying = {name: count for name, count in parts.items() if name not in leaving}
    if placed.keys() == staying.keys() and not leaving:
        return free
    if not staying:
        return free if placed.keys().isdisjoint(parts) else _joined(situation, free, parts, ())
    counts = _stay(situation, staying, clusters, decide, situation.replicas - sum(leaving.values()))
    if not leaving:
        return _joined(situation, free, counts, ())
    # Place the parts that leave a cluster: in clusters without a part.
    replicas = sum(leaving.values())
    occupied = dict.fromkeys(parts, "it has a part of the Job already")
    moves = decide(_with_replicas(situation, replicas, had={}, excluded={**situation.excluded, **occupied}))
    if moves.unplaced or not moves.targets:
        where = ", ".join(sorted(leaving))
        has_all = not set(clusters) - set(parts)
        why = "every cluster has a part already" if has_all else "no cluster without a part can take it"
        text = f"its part in {where} has to leave and stays: completions are fixed at creation, and {why}"
        return _joined(situation, free, {**counts, **leaving}, (Shortfall(code=PARTS_STAY, text=text),))
    gained = {target.cluster: target.replicas or 0 for target in moves.targets}
    return _joined(situation, free, {**counts, **gained}, ())


def _stay(
    situation: PlacementContext, staying: Mapping[str, int], clusters: Collection[str], decide: Decide, replicas: int
) -> Mapping[str, int]:
    """Return the parallelism of the parts that stay, at least 1 for each. No cluster without a part gets any."""
    if replicas <= len(staying):
        return dict.fromkeys(staying, 1)
    others = dict.fromkeys(set(clusters) - staying.keys(), "it has no part of the Job, whose completions are fixed")
    assignment = decide(_with_replicas(situation, replicas, had=staying, excluded={**situation.excluded, **others}))
    counts = {target.cluster: target.replicas or 0 for target in assignment.targets if target.cluster in staying}
    idle = dict.fromkeys((cluster for cluster in staying if not counts.get(cluster)), 1)
    if not idle or idle.keys() == staying.keys():
        return counts or idle
    rest = {cluster: count for cluster, count in staying.items() if cluster not in idle}
    return {**idle, **_stay(situation, rest, clusters, decide, replicas - len(idle))}


def _with_replicas(
    situation: PlacementContext, replicas: int, had: Mapping[str, int], excluded: Mapping[str, str]
) -> PlacementContext:
    item = replace(situation.item, demand=replace(situation.item.demand, replicas=replicas))
    return replace(situation, item=item, had=had, excluded=excluded, partial=False)


def _joined(
    situation: PlacementContext, free: Assignment, counts: Mapping[str, int], shortfalls: tuple[Shortfall, ...]
) -> Assignment:
    text = f"the parts of a Job move whole, since completions are fixed at creation: {listed(sorted(counts.items()))}"
    reasons = [situation.reason(shortfall.code, shortfall.text) for shortfall in shortfalls]
    return replace(
        free,
        targets=targets_of(counts),
        unplaced=max(0, situation.replicas - sum(counts.values())),
        reasons=(situation.reason("job-parts", text), *reasons),
        shortfalls=shortfalls,
    )


WORK_QUEUE: Final = -1
"""Instead of a share: the part was created with parallelism alone, which cannot be changed."""


def fixed_share(part: JsonObject, *, is_single_run: bool) -> int | None:
    """Return the completions that a part of a Job was created with; None: not fixed; WORK_QUEUE: parallelism alone."""
    count = dig(part, *COMPLETIONS)
    if isinstance(count, int):
        return count
    return WORK_QUEUE if is_single_run and dig(part, *PARALLELISM) is not None else None


def has_completions(body: JsonObject) -> bool:
    """Return whether a Job sets how many of its pods have to succeed."""
    total = dig(body, *COMPLETIONS)
    return isinstance(total, int) and not isinstance(total, bool)


def missing_completions(
    body: JsonObject, targets: tuple[TargetCluster, ...], fixed: Mapping[str, int], elsewhere: int
) -> int:
    """Return how many completions of a divided Job no part has. `elsewhere`: of parts outside the targets."""
    if not has_completions(body):
        return 0
    total: int = dig(body, *COMPLETIONS)
    return max(0, total - elsewhere - sum(completions(body, targets, fixed).values()))


def completions(body: JsonObject, targets: tuple[TargetCluster, ...], fixed: Mapping[str, int]) -> dict[str, int]:
    """Return completions per cluster, if any to split. `fixed`: of live parts, unchangeable; others share the rest."""
    if not has_completions(body):
        return {}
    total: int = dig(body, *COMPLETIONS)
    votes = {target.cluster: target.replicas or 0 for target in targets if target.cluster not in fixed}
    if not any(votes.values()):
        # Scaled to 0: the share counts later, and a part with 0 completions would end at once.
        votes = dict.fromkeys(votes, 1)
    return {**webster(max(0, total - sum(fixed.values())), votes), **fixed}
