"""Parts of a placement that do nothing: ignored weights and spread constraints, affinities that match no cluster."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.model.fleet import Fleet
from reconciler.model.policy import Division, PropagationPolicy
from reconciler.model.problem import Problem, Severity, Source
from reconciler.stages.claims import matching_clusters
from reconciler.stages.lint.clusters import affinities_of

_WEIGHTS = "spec.placement.replicaScheduling.weightPreference"
_WHY_IGNORED = {
    Division.DUPLICATED: "replicaSchedulingType is Duplicated: every cluster gets all replicas",
    Division.AGGREGATED: "replicaDivisionPreference is Aggregated: free capacity decides",
    Division.DYNAMIC: "dynamicWeight is set: free capacity decides",
}


def candidate_clusters(fleet: Fleet, policy: PropagationPolicy) -> frozenset[str]:
    """Names of the clusters that some affinity of a policy matches: every cluster when it has none."""
    clusters = tuple(fleet.clusters.values())
    affinities = [affinity for _, affinity in affinities_of(policy)]
    if not affinities:
        return frozenset(fleet.clusters)
    return frozenset(name for affinity in affinities for name in matching_clusters(affinity, clusters))


def lint_placement(fleet: Fleet) -> Iterator[Problem]:
    """Yield warnings about placements. Checks that need clusters are left out when the store declares none."""
    for policy in fleet.propagation:
        yield from _spread(policy)
        yield from _failover(policy)
        scheduling = policy.placement.scheduling
        if scheduling.static_weights and scheduling.division is not Division.STATIC:
            message = f"staticWeightList is ignored: {_WHY_IGNORED[scheduling.division]}; take one of the two out"
            path = f"{_WEIGHTS}.staticWeightList"
            yield _warning(scheduling.static_weights[0].source, path, "weights-ignored", message)
        if fleet.clusters:
            yield from _affinities(fleet, policy)
            if scheduling.static_weights and scheduling.division is Division.STATIC:
                yield from _static_weights(fleet, policy)


def _affinities(fleet: Fleet, policy: PropagationPolicy) -> Iterator[Problem]:
    clusters = tuple(fleet.clusters.values())
    for path, affinity in affinities_of(policy):
        if not matching_clusters(affinity, clusters):
            message = "no cluster of the store matches this; check names, labels and exclusions"
            yield _warning(affinity.source, path, "affinity-matches-nothing", message)


def _static_weights(fleet: Fleet, policy: PropagationPolicy) -> Iterator[Problem]:
    """Karmada: a candidate without a weight gets nothing, unless no candidate has one: then every weight is 1."""
    candidates = candidate_clusters(fleet, policy)
    weights = policy.placement.scheduling.static_weights
    clusters = tuple(fleet.clusters.values())
    weighed: set[str] = set()
    for index, weight in enumerate(weights):
        matching = frozenset(matching_clusters(weight.target, clusters))
        weighed |= matching & candidates
        outside = sorted(matching - candidates)
        if matching and not matching & candidates:
            message = f"the weight is ignored: {', '.join(outside)} is outside the cluster affinity; add it there"
            path = f"{_WEIGHTS}.staticWeightList[{index}]"
            yield _warning(weight.source, path, "weight-outside-affinity", message)
    source, path = weights[0].source, f"{_WEIGHTS}.staticWeightList"
    if candidates and not weighed:
        message = (
            "no weight is for a cluster of the affinity, so every cluster weighs 1; write weights for these clusters"
        )
        yield _warning(source, path, "weights-all-outside", message)
    elif candidates - weighed:
        without = ", ".join(sorted(candidates - weighed))
        message = (
            f"without a weight these clusters of the affinity get nothing: {without}; add a weight, or exclude them"
        )
        yield _warning(source, path, "cluster-without-weight", message)


def _spread(policy: PropagationPolicy) -> Iterator[Problem]:
    """Karmada: static weights take every candidate; only cluster and region select, the rest demands a property."""
    placement = policy.placement
    for index, constraint in enumerate(placement.spread):
        path = f"spec.placement.spreadConstraints[{index}]"
        if constraint.by_label:
            message = "spreading by a label is not supported: it selects nothing; use spreadByField cluster or region"
            yield _warning(constraint.source, path, "spread-by-label", message)
        elif constraint.by_field in ("zone", "provider"):
            message = (
                f"a constraint on {constraint.by_field} only demands that a cluster has one; its groups are not "
                "counted, use cluster or region"
            )
            yield _warning(constraint.source, path, "spread-not-counted", message)
    if not placement.spread or placement.scheduling.division is not Division.STATIC:
        return
    if placement.scheduling.has_weight_preference and not placement.scheduling.static_weights:
        return
    message = "static weights take every cluster of the affinity and ignore spread constraints; use dynamicWeight"
    yield _warning(placement.spread[0].source, "spec.placement.spreadConstraints", "spread-ignored", message)


def _failover(policy: PropagationPolicy) -> Iterator[Problem]:
    """Karmada refuses failover without propagateDeps; here it is a warning (design#failover)."""
    if policy.application_failover is not None and not policy.propagate_deps:
        message = (
            "after a failover the workload may miss what it refers to in the new cluster; set propagateDeps: true, "
            "or distribute its ConfigMaps, Secrets and volumes everywhere by policy"
        )
        source = policy.application_failover.source
        yield _warning(source, "spec.failover.application", "failover-without-dependencies", message)


def _warning(source: Source, path: str, code: str, message: str) -> Problem:
    return Problem(source=source, path=path, code=code, message=message, severity=Severity.WARNING)
