"""The affinities of a policy as groups of clusters, each with tiers that fill in order.

A policy without `clusterAffinities` is one group with one tier. Source: the page "Elastic scheduling with multi-cluster
priorities" (tiers); Karmada: clusterAffinities (exclusive groups) and overflowAffinities (tiers inside a group);
design#affinity-groups.
"""

from __future__ import annotations

from typing import NamedTuple

from reconciler.model.policy import AffinityMode, AffinityTerm, ClusterAffinity, PropagationPolicy


class Tier(NamedTuple):
    """Clusters of equal rank. `affinity` None: every cluster. `label` names it in reasons."""

    label: str
    affinity: ClusterAffinity | None


class Group(NamedTuple):
    """Clusters of which a resource uses either some or none. `name` is the affinityName to be remembered."""

    name: str
    tiers: tuple[Tier, ...]


def groups_of(policy: PropagationPolicy, *, by_capacity: bool) -> tuple[Group, ...]:
    """Return the groups of a policy in their order.

    `by_capacity`: replicas are divided by free capacity (dynamic weights, Aggregated, a gang). Only then do tiers
    matter: everything else is not limited by capacity, would never spill over, and so lands in the first group that
    fits. The page sends the Service of its tiered workload to every cluster by a policy of its own.
    """
    placement = policy.placement
    if not placement.terms:
        return (Group("", (Tier("", placement.affinity),)),)
    if policy.affinity_mode is AffinityMode.TIERS and by_capacity:
        return (Group("", tuple(tier for term in placement.terms for tier in _tiers(term))),)
    return tuple(Group(term.name, _tiers(term) if by_capacity else _tiers(term)[:1]) for term in placement.terms)


def _tiers(term: AffinityTerm) -> tuple[Tier, ...]:
    return tuple(Tier(_label(part), part.affinity) for part in (term, *term.overflow))


def _label(term: AffinityTerm) -> str:
    return f"group {term.name}" if term.name else "unnamed group"
