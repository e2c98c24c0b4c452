"""Cluster names that are undeclared, doubled, or both included and excluded; problems of the layouts of Rollouts."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterator

from reconciler.api.fleet import Fleet
from reconciler.api.policies import ClusterAffinity, PropagationPolicy
from reconciler.api.problem import Problem, warning
from reconciler.fleet import why_nameless
from reconciler.rollouts import RolloutSelection, lay_out

_UNKNOWN_MAX = 20
"""So many unknown names of one list get a line of their own."""


def affinities_of(policy: PropagationPolicy) -> Iterator[tuple[str, ClusterAffinity]]:
    """Every affinity of a placement with its field path: the single one, the groups, their overflow tiers."""
    placement = policy.placement
    if placement.affinity is not None:
        yield "spec.placement.clusterAffinity", placement.affinity
    for index, term in enumerate(placement.terms):
        path = f"spec.placement.clusterAffinities[{index}]"
        yield path, term.affinity
        for tier, overflow in enumerate(term.overflow):
            yield f"{path}.overflowAffinities[{tier}]", overflow.affinity


def _of_lease(fleet: Fleet) -> Iterator[Problem]:
    ha = fleet.settings.ha
    if ha is None or ha.cluster in fleet.clusters:
        return
    near = difflib.get_close_matches(ha.cluster, fleet.clusters, 1)
    meant = f"; did you mean {near[0]}?" if near else ""
    message = f"no document declares the cluster {ha.cluster}, so nobody can lead{meant}"
    yield Problem(source=ha.source, path="spec.ha.cluster", code="lease-cluster-unknown", message=message)


def _all_affinities(fleet: Fleet) -> Iterator[tuple[str, ClusterAffinity]]:
    for policy in fleet.propagation:
        yield from affinities_of(policy)
        for index, weight in enumerate(policy.placement.scheduling.static_weights):
            base = "spec.placement.replicaScheduling.weightPreference.staticWeightList"
            yield f"{base}[{index}].targetCluster", weight.target
    for override in fleet.overrides:
        for index, rule in enumerate(override.rules):
            if rule.target is not None:
                yield f"spec.overrideRules[{index}].targetCluster", rule.target


def lint_clusters(fleet: Fleet) -> Iterator[Problem]:
    """Errors of a store without Fleet or Cluster documents, and warnings about cluster names in policies."""
    if not fleet.settings.name:
        yield Problem(source=fleet.settings.source, code="no-fleet", message=why_nameless(fleet))
    if not fleet.clusters and fleet.templates:
        message = "the store declares no cluster, so nothing is placed anywhere; add a Cluster document for each member"
        yield Problem(source=fleet.settings.source, code="no-clusters", message=message)
    yield from _of_lease(fleet)
    for path, affinity in _all_affinities(fleet):
        yield from _in_list(fleet, affinity, f"{path}.clusterNames", affinity.cluster_names)
        yield from _in_list(fleet, affinity, f"{path}.exclude", affinity.exclude)
        for name in sorted(set(affinity.cluster_names) & set(affinity.exclude)):
            message = f"{name} is both included and excluded, so it is excluded; keep one of the two"
            yield warning(affinity.source, path, "cluster-included-and-excluded", message)
    for policy in fleet.propagation:
        for name in policy.suspension.clusters:
            if fleet.clusters and name not in fleet.clusters:
                path = "spec.suspension.dispatchingOnClusters.clusterNames"
                yield warning(policy.source, path, "cluster-unknown", _unknown(fleet, name))


def _in_list(fleet: Fleet, affinity: ClusterAffinity, path: str, names: tuple[str, ...]) -> Iterator[Problem]:
    for name, count in sorted(Counter(names).items()):
        if count > 1:
            message = f"{name} stands {count} times in one list; once is enough"
            yield warning(affinity.source, path, "cluster-repeated", message)
    unknown = sorted(set(names) - fleet.clusters.keys()) if fleet.clusters else []
    for name in unknown[:_UNKNOWN_MAX]:
        yield warning(affinity.source, path, "cluster-unknown", _unknown(fleet, name))
    if len(unknown) > _UNKNOWN_MAX:
        message = f"no Cluster document declares {len(unknown) - _UNKNOWN_MAX:,} more of the names in this list"
        yield warning(affinity.source, path, "cluster-unknown", message)


def _unknown(fleet: Fleet, name: str) -> str:
    close = difflib.get_close_matches(name, sorted(fleet.clusters), n=1)
    tip = f"did you mean {close[0]}?" if close else "add a Cluster document for it, or take the name out"
    return f"no Cluster document declares {name}; {tip}"


def lint_rollouts(fleet: Fleet, selection: RolloutSelection) -> Iterator[Problem]:
    """Yield the problems of the layouts of all Rollouts, and of their selections."""
    for rollout in fleet.rollouts:
        yield from lay_out(rollout, fleet.clusters).problems
    yield from selection.problems
