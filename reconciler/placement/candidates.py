"""Candidate clusters of a resource in the groups and tiers of its affinities, with the reason for every cluster.

A policy without `clusterAffinities` is one group with one tier. Source: the page "Elastic scheduling with multi-cluster
priorities" (tiers); Karmada: clusterAffinities (exclusive groups), overflowAffinities (tiers inside a group), and the
filter plugins ClusterAffinity, TaintToleration, APIEnablement, SpreadConstraint and ClusterEviction;
design#affinity-groups; design#leaves-affinity: a cluster that no longer matches leaves, whatever the scheduling type.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Final, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.api.binding import Reason, TargetCluster
from reconciler.api.clusters import Cluster, ClusterObservation, Taint
from reconciler.api.content import dig
from reconciler.api.fleet import Fleet
from reconciler.api.policies import (
    AffinityMode,
    AffinityTerm,
    ClusterAffinity,
    PropagationPolicy,
    ReplicaScheduling,
    Toleration,
)
from reconciler.api.problem import NOWHERE, Problem, warning
from reconciler.api.refs import GVK, Identity
from reconciler.placement.values import Assignment, PlacementContext, PolicyReasons, Shortfall
from reconciler.policy import matches_cluster


class Tier(NamedTuple):
    """Clusters of equal rank. `affinity` None: every cluster. `label` names it in reasons."""

    label: str
    affinity: ClusterAffinity | None


class AffinityGroup(NamedTuple):
    """Clusters of which a resource uses either some or none. `name` is the affinityName to be remembered."""

    name: str
    tiers: tuple[Tier, ...]


def groups_of(policy: PropagationPolicy, *, by_capacity: bool) -> tuple[AffinityGroup, ...]:
    """Return the groups of a policy in order.

    Tiers matter only `by_capacity` (dynamic weights, Aggregated, a gang); all else never spills over and lands in the
    first group that fits.
    """
    placement = policy.placement
    if not placement.terms:
        return (AffinityGroup("", (Tier("", placement.affinity),)),)
    if policy.affinity_mode is AffinityMode.TIERS and by_capacity:
        return (AffinityGroup("", tuple(tier for term in placement.terms for tier in _tiers(term))),)
    return tuple(
        AffinityGroup(term.name, _tiers(term) if by_capacity else _tiers(term)[:1]) for term in placement.terms
    )


def _tiers(term: AffinityTerm) -> tuple[Tier, ...]:
    parts = (term, *term.overflow)
    return tuple(Tier(f"group {part.name}" if part.name else "unnamed group", part.affinity) for part in parts)


BUILT_IN: Final[Mapping[str, int]] = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
"""Those that every cluster has. Source: Kubernetes."""


def priority_classes(fleet: Fleet) -> tuple[dict[str, int], list[Problem]]:
    """Return the value of each class that policies name, for taking capacity, and warnings. Source: Karmada."""
    values: dict[str, int] = {}
    problems: list[Problem] = []
    for policy in fleet.propagation:
        name = policy.priority_class
        if not name or name in values:
            continue
        template = fleet.templates.get(Identity("scheduling.k8s.io", "PriorityClass", "", name))
        value = dig(template.body, "value") if template else BUILT_IN.get(name)
        if isinstance(value, int) and not isinstance(value, bool):
            values[name] = value
        elif fleet.is_complete:
            message = (
                f"the store has no PriorityClass {name}, so what {policy.ref} selects is placed with priority 0; "
                "add it, or take schedulePriority out"
            )
            path, code = "spec.schedulePriority.priorityClassName", "priority-class-unknown"
            problems.append(warning(policy.source, path, code, message))
    return values, problems


KEEPS_OUT: Final = ("NoSchedule", "NoExecute")
"""Effects of taints that keep pods out."""

NOT_READY = Taint(key="cluster.karmada.io/not-ready", effect="NoSchedule")
"""The taint of a cluster that cannot be reached. Source: design#unreachable."""


class Candidate(NamedTuple):
    """A cluster that may hold the resource. `tier` is the index of its tier in the group, 0 without tiers.

    `takes_more` False: existing replicas stay, no new ones come. `keeps`: replicas kept of the previous placement,
    `cap`: the most that it may hold (None: no cap); both are set if replicas are divided by capacity.
    """

    name: str
    tier: int
    takes_more: bool
    region: str
    keeps: int = 0
    cap: int | None = None


class Candidates(Struct, frozen=True, kw_only=True):
    """Candidates in name order, and the reason for every cluster of the fleet."""

    members: Sequence[Candidate]
    reasons: Mapping[str, Reason] = field(default_factory=dict)


API_NOT_SERVED: Final = "api-not-served"
API_SILENT: Final = "api-silent"
_NAMED_MAX: Final = 3
"""So many clusters are named in one sentence."""


class _Gate(NamedTuple):
    """The way of a policy's resources to a cluster. `rule`, `text`: why it is closed; empty: it is open."""

    keeps: bool = True
    takes_more: bool = True
    rule: str = ""
    text: str = ""


class _SharedReach(NamedTuple):
    """Shared results of policies with these tiers and gates. `texts`: rule and text of each cluster's reason."""

    open: list[Candidate]
    keeps: dict[str, Candidate]
    texts: dict[str, tuple[str, str]]
    keep_reasons: dict[str, Reason]


class CandidateFinder:
    """Finds candidates and static weights; results that depend on policy and kind only are computed once."""

    def __init__(self, clusters: Mapping[str, Cluster], observed: Mapping[str, ClusterObservation]) -> None:
        self._clusters = [clusters[name] for name in sorted(clusters)]
        self._observed = observed
        # With the policy and the group, so that the ids in the keys stay their own.
        self._by_policy: dict[
            tuple[int, GVK | None, int], tuple[PropagationPolicy, AffinityGroup, _SharedReach, PolicyReasons]
        ] = {}
        self._weights: dict[int, dict[str, int]] = {}
        self._gates: dict[tuple[object, ...], list[_Gate]] = {}
        there = [observed.get(cluster.name) for cluster in self._clusters]
        self._is_everywhere = cache(lambda gvk: all(one is None or _serves(one, gvk) for one in there))
        """Says whether every cluster serves a kind, as far as known."""
        self._tiers: dict[object, list[tuple[int | None, str]]] = {}
        # By the ids of lists of the two above, which are kept there.
        self._reached: dict[tuple[int, int], _SharedReach] = {}

    def find(self, situation: PlacementContext, group: AffinityGroup) -> Candidates:
        """Return candidates of a group of clusters for one resource: replicas may stay where no new ones would come."""
        item = situation.item
        # The kind matters only where a cluster does not serve it.
        kind = None if self._is_everywhere(item.gvk) else item.gvk
        key = (id(item.policy), kind, id(group))
        entry = self._by_policy.get(key)
        if entry is None:
            placement = item.policy.placement
            gates_key = (placement.tolerations, tuple(constraint.by_field for constraint in placement.spread), kind)
            gates = self._gates.get(gates_key)
            if gates is None:
                gates = self._gates[gates_key] = [
                    _gate(item.policy, item.gvk, one, self._observed.get(one.name)) for one in self._clusters
                ]
            # Many policies name the same clusters, each in a place of its own.
            terms = tuple([(one.label, one.affinity and replace(one.affinity, source=NOWHERE)) for one in group.tiers])
            tiers = self._tiers.get(terms)
            if tiers is None:
                tiers = self._tiers[terms] = [tier_of(cluster, group) for cluster in self._clusters]
            reached = self._reached.get((id(gates), id(tiers)))
            if reached is None:
                reached = self._reached[id(gates), id(tiers)] = self._reach(gates, tiers)
            entry = (item.policy, group, reached, PolicyReasons(reached.texts, item.policy.placement.source))
            self._by_policy[key] = entry
        _, _, reach, shared = entry
        staying = [reach.keeps[name] for name in situation.had if name in reach.keeps] if reach.keeps else []
        if not staying and not situation.excluded:
            return Candidates(members=reach.open, reasons=shared)
        members = sorted([*reach.open, *staying]) if staying else reach.open
        reasons = dict(shared)
        for candidate in staying:
            reasons[candidate.name] = reach.keep_reasons[candidate.name]
        for name, why in situation.excluded.items():
            if name in reasons:
                reasons[name] = Reason(rule="excluded", text=f"excluded: {why}", cluster=name)
        return Candidates(
            members=[candidate for candidate in members if candidate.name not in situation.excluded], reasons=reasons
        )

    def weights_of(self, scheduling: ReplicaScheduling, names: Sequence[str]) -> dict[str, int]:
        """Return weight of each named cluster: the greatest of the static entries that match it, 0 when none does."""
        weights = self._weights.get(id(scheduling))
        if weights is None:
            clusters = {cluster.name: cluster for cluster in self._clusters}
            weights = self._weights[id(scheduling)] = dict.fromkeys(clusters, 0)
            for entry in scheduling.static_weights:
                for name in entry.target.cluster_names or clusters:
                    if name in clusters and matches_cluster(entry.target, clusters[name])[0]:
                        weights[name] = max(weights[name], entry.weight)
        return {name: weights[name] for name in names}

    def _reach(self, gates: Iterable[_Gate], tiers: Iterable[tuple[int | None, str]]) -> _SharedReach:
        reached = _SharedReach([], {}, {}, {})
        for cluster, gate, (tier, why) in zip(self._clusters, gates, tiers, strict=True):
            if tier is None:
                reached.texts[cluster.name] = ("affinity", why)
                continue
            reached.texts[cluster.name] = (gate.rule, gate.text) if gate.rule else ("candidate", why)
            candidate = Candidate(cluster.name, tier, gate.takes_more, cluster.region)
            if not gate.rule:
                reached.open.append(candidate)
            elif gate.keeps:
                reached.keeps[cluster.name] = candidate
                reached.keep_reasons[cluster.name] = Reason(
                    rule="already-there",
                    text=f"already there, so it stays although it {gate.text}",
                    cluster=cluster.name,
                )
        return reached


def tier_of(cluster: Cluster, group: AffinityGroup) -> tuple[int | None, str]:
    """Return index of the first tier of the group that the cluster matches, with a text; None and why not."""
    why = ""
    for index, tier in enumerate(group.tiers):
        if tier.affinity is None:
            return index, "no affinity is declared, so every cluster is a candidate"
        matches, reason = matches_cluster(tier.affinity, cluster)
        if matches:
            return index, f"{tier.label}: {reason}" if tier.label else reason
        why = f"{why}; {tier.label}: {reason}" if why else f"{tier.label}: {reason}" if tier.label else reason
    return None, why


def _gate(policy: PropagationPolicy, gvk: GVK, cluster: Cluster, observation: ClusterObservation | None) -> _Gate:
    has = {"provider": bool(cluster.provider), "region": bool(cluster.region), "zone": bool(cluster.zones)}
    missing = next((c.by_field for c in policy.placement.spread if not has.get(c.by_field, True)), "")
    if missing:
        text = f"has no {missing}, which a spread constraint asks for"
        return _Gate(keeps=False, takes_more=False, rule="spread-property", text=text)
    if observation is not None and not observation.reachable and not tolerates(policy.placement.tolerations, NOT_READY):
        return _Gate(takes_more=False, rule="not-ready", text="cannot be reached: nothing new goes there")
    taint = untolerated(policy.placement.tolerations, cluster.taints)
    if taint is not None:
        label = f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"
        return _Gate(rule="taint", text=f"carries the taint {label}, which the policy does not tolerate")
    if observation is not None and gvk.api_version in observation.silent:
        text = f"gets no answer from the API server of {gvk.api_version}: nothing new goes there"
        return _Gate(takes_more=False, rule=API_SILENT, text=text)
    if observation is not None and not _serves(observation, gvk):
        others = sorted(one.api_version for one in observation.apis or () if one.group_kind == gvk.group_kind)
        instead = f", but {', '.join(others)}, which the store has to name" if others else ""
        return _Gate(rule=API_NOT_SERVED, text=f"does not serve {gvk.kind} ({gvk.api_version}){instead}")
    return _Gate()


def _serves(observation: ClusterObservation, gvk: GVK) -> bool:
    return gvk.api_version not in observation.silent and (observation.apis is None or gvk in observation.apis)


def keep_previous(
    situation: PlacementContext,
    candidates: Candidates,
    shortfall: Shortfall,
    targets: tuple[TargetCluster, ...],
    text: str,
    unplaced: int,
) -> Assignment:
    """Return the previous placement as far as it stays, with the text of the shortfall as its reason."""
    return Assignment(
        targets=targets,
        unplaced=unplaced,
        affinity_name=situation.group_in_use,
        reasons=(situation.reason(shortfall.code, text),),
        cluster_reasons=candidates.reasons,
        shortfalls=(shortfall,),
    )


def none_fits(candidates: Candidates) -> Shortfall:
    """Return that no cluster is a candidate, with those that lack nothing but the kind."""
    rules = (API_NOT_SERVED, API_SILENT)
    lacking = [reason for _, reason in sorted(candidates.reasons.items()) if reason.rule in rules]
    details = "; ".join(f"{reason.cluster} {reason.text}" for reason in lacking[:_NAMED_MAX])
    more = f"; and {len(lacking) - _NAMED_MAX} more" if len(lacking) > _NAMED_MAX else ""
    text = f"no cluster is a candidate: {details}{more}" if details else "no cluster is a candidate"
    return Shortfall(code="no-cluster-fits", text=text)


def untolerated(tolerations: Sequence[Toleration], taints: Iterable[Taint]) -> Taint | None:
    """Return the first NoSchedule or NoExecute taint that no toleration covers."""
    return next((t for t in taints if t.effect in KEEPS_OUT and not tolerates(tolerations, t)), None)


def tolerates(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    """Return whether it covers the taint. Source: Kubernetes: empty key with Exists: all; empty effect: all."""
    return any(
        (not toleration.effect or toleration.effect == taint.effect)
        and (not toleration.key or toleration.key == taint.key)
        and (toleration.operator == "Exists" or toleration.value == taint.value)
        for toleration in tolerations
    )
