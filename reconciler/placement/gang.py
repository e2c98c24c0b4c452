"""Placement of indivisible sets: a gang, or a workload that cannot be divided.

Source: design#gang: the whole set on one cluster that holds all of it, else nowhere; a set moves whole. Karmada:
multi-component workloads go to one cluster with at least one set available.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from reconciler.api.binding import TargetCluster
from reconciler.api.demand import Component
from reconciler.placement.candidates import AffinityGroup, Candidate, CandidateFinder, Candidates, none_fits
from reconciler.placement.capacity import FleetRoom, fits_together, sets_that_fit
from reconciler.placement.divide import webster, without_zeros
from reconciler.placement.values import Assignment, Shortfall, Situation, targets_of

_ENOUGH_SETS = 1000
"""More sets than this make no cluster better than another."""


class _Fit(NamedTuple):
    candidate: Candidate
    sets: int


def components_of(situation: Situation) -> tuple[Component, ...]:
    """The parts that run together; a workload of one kind of pod is one part."""
    demand = situation.item.demand
    return demand.components or (Component(name="", replicas=demand.replicas or 0, shape=demand.shape),)


def place_whole(
    situation: Situation, groups: Sequence[AffinityGroup], finder: CandidateFinder, room: FleetRoom
) -> Assignment:
    """Return the one cluster for the whole set: in the first tier that has one, the one with most capacity.

    The set stays where it is while that cluster is a candidate and no tick caps it there. If no cluster can hold the
    whole, it is not placed at all; running pods stay until another cluster can hold all of it.
    """
    components = components_of(situation)
    first: Candidates | None = None
    for group in groups:
        candidates = finder.find(situation, group)
        first = first if first is not None and first.members else candidates
        home = _home(situation, candidates.members, components, room)
        if home is not None:
            return _assignment(situation, group.name, candidates, home.name, "the set stays where it is")
        for tier in sorted({member.tier for member in candidates.members}):
            members = [
                member for member in candidates.members if member.tier == tier and _may_move_to(situation, member)
            ]
            fits = [_Fit(member, _sets(situation, member, components, room)) for member in members]
            best = min((fit for fit in fits if fit.sets > 0), key=lambda f: (-f.sets, f.candidate.name), default=None)
            if best is not None:
                text = f"the whole set fits on {best.candidate.name}, which has room for {_counted(best.sets)}"
                return _assignment(situation, group.name, candidates, best.candidate.name, text)
            if members and situation.item.policy.ecs_provision and tier == len(group.tiers) - 1:
                name = members[0].name
                text = f"no cluster holds the set now; it waits on {name} for new nodes (ecsProvision)"
                return _assignment(situation, group.name, candidates, name, text)
            unknown = sorted(fit.candidate.name for fit in fits if fit.sets < 0)
            if unknown:  # unknown is not full, so nothing of a lower rank is tried
                return _nowhere(situation, candidates, components, unknown)
    assert first is not None, "a policy has at least one group"
    return _nowhere(situation, first, components, ())


def _home(
    situation: Situation, members: Sequence[Candidate], components: Sequence[Component], room: FleetRoom
) -> Candidate | None:
    """Return the cluster where the set is and may stay: still a candidate, not capped, with capacity for additions."""
    if situation.fresh:
        return None
    for member in sorted(members, key=lambda member: -situation.had.get(member.name, 0)):
        had = situation.had.get(member.name)
        if had is None or situation.caps.get(member.name, situation.replicas) < situation.replicas:
            continue
        added = situation.replicas - had
        if had and (added <= 0 or _takes_added(situation, member, components, added, room)):
            return member
        if not had and situation.item.demand.replicas is None:
            return member
    return None


def _takes_added(
    situation: Situation, member: Candidate, components: Sequence[Component], added: int, room: FleetRoom
) -> bool:
    """Return whether additional pods fit next to the running ones. The grown part is unknown, so each must fit."""
    here = room.of(member.name)
    if here is None or not here.is_known or not member.takes_more:
        return False
    namespace = situation.item.identity.namespace
    return all(
        fits_together([replace(part, replicas=min(added, part.replicas))], here, namespace) for part in components
    )


def _may_move_to(situation: Situation, member: Candidate) -> bool:
    return member.takes_more and situation.caps.get(member.name, situation.replicas) >= situation.replicas


def _sets(situation: Situation, member: Candidate, components: Sequence[Component], room: FleetRoom) -> int:
    """Sets that fit there; -1 when that is not known."""
    here = room.of(member.name)
    if here is None or not here.is_known:
        return -1
    return sets_that_fit(components, here, situation.item.identity.namespace, _ENOUGH_SETS)


def _nowhere(
    situation: Situation, candidates: Candidates, components: Sequence[Component], unknown: Sequence[str]
) -> Assignment:
    pods = sum(part.replicas for part in components)
    parts = " + ".join(f"{part.replicas} {part.name}".strip() for part in components)
    if not candidates.members:
        shortfall = none_fits(candidates)
    elif unknown:
        text = f"the free capacity of {', '.join(unknown)} is not known"
        shortfall = Shortfall(code="capacity-unknown", text=text)
    else:
        text = f"no cluster has room for the whole set of {pods} pods ({parts}) together"
        shortfall = Shortfall(code="not-enough-capacity", text=text)
    kept = _kept(situation)
    text = f"{shortfall.text}; it stays where it is" if kept else f"{shortfall.text}; nothing of it is placed"
    placed = sum(target.replicas or 0 for target in kept)
    return Assignment(
        targets=kept,
        unplaced=max(0, situation.replicas - placed) if kept else situation.replicas or pods,
        affinity_name=situation.group_in_use,
        reasons=(situation.reason(shortfall.code, text),),
        cluster_reasons=candidates.reasons,
        shortfalls=(shortfall,),
    )


def _kept(situation: Situation) -> tuple[TargetCluster, ...]:
    """Return the existing replicas, at most the template's number."""
    if situation.item.demand.replicas is None:
        return tuple(TargetCluster(cluster=name) for name in situation.had)
    home = min(situation.had, key=lambda name: (-situation.had[name], name), default="")
    if home and situation.had[home] >= situation.replicas:
        return targets_of({home: situation.replicas})
    there = sum(situation.had.values())
    counts = situation.had if there <= situation.replicas else webster(situation.replicas, situation.had)
    return targets_of(without_zeros(counts) or counts)


def _assignment(situation: Situation, group: str, candidates: Candidates, cluster: str, text: str) -> Assignment:
    return Assignment(
        targets=(TargetCluster(cluster=cluster, replicas=situation.item.demand.replicas),),
        affinity_name=group,
        reasons=(situation.reason("gang", text),),
        cluster_reasons=candidates.reasons,
    )


def _counted(sets: int) -> str:
    return "1 set" if sets == 1 else f"{sets} sets" if sets < _ENOUGH_SETS else f"{sets} sets or more"
