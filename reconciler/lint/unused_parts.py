"""Parts of policies that do nothing, and StatefulSets that their volumes keep where they are."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import chain
from typing import Final

from reconciler.api.content import Json
from reconciler.api.fleet import Fleet
from reconciler.api.policies import (
    ClusterAffinity,
    CommandOverrider,
    Division,
    FieldOverrider,
    ImageOverrider,
    MapOverrider,
    OverrideOperator,
    OverridePolicy,
    Overriders,
    PatchOperation,
    PropagationPolicy,
)
from reconciler.api.problem import Problem, hint, warning
from reconciler.api.refs import Identity, PolicyRef
from reconciler.documents import pointer_tokens, resolve
from reconciler.kinds.registry import Registry
from reconciler.lint.claims import lint_selectors
from reconciler.overrides import OverrideIndex, SelectedRule, apply_rules
from reconciler.policy import Claims, PolicyIndex, matching_clusters
from reconciler.scheduler import is_descheduled
from reconciler.templates import claims_of, images_of

_NAMES_MAX = 10
_WEIGHTS = "spec.placement.replicaScheduling.weightPreference"
_WHY_IGNORED = {
    Division.DUPLICATED: "replicaSchedulingType is Duplicated: every cluster gets all replicas",
    Division.AGGREGATED: "replicaDivisionPreference is Aggregated: free capacity decides",
    Division.DYNAMIC: "dynamicWeight is set: free capacity decides",
}


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
        if policy.application_failover is not None and not policy.propagate_deps:
            # Karmada refuses it (design#failover).
            message = (
                "after a failover the workload may miss what it refers to in the new cluster; set propagateDeps: true, "
                "or distribute its ConfigMaps, Secrets and volumes everywhere by policy"
            )
            source = policy.application_failover.source
            yield warning(source, "spec.failover.application", "failover-without-dependencies", message)
        scheduling = policy.placement.scheduling
        if scheduling.static_weights and scheduling.division is not Division.STATIC:
            message = f"staticWeightList is ignored: {_WHY_IGNORED[scheduling.division]}; take one of the two out"
            path = f"{_WEIGHTS}.staticWeightList"
            yield warning(scheduling.static_weights[0].source, path, "weights-ignored", message)
        if fleet.clusters:
            for path, affinity in affinities_of(policy):
                if not matching_clusters(affinity, tuple(fleet.clusters.values())):
                    message = "no cluster of the store matches this; check names, labels and exclusions"
                    yield warning(affinity.source, path, "affinity-matches-nothing", message)
            if scheduling.static_weights and scheduling.division is Division.STATIC:
                yield from _static_weights(fleet, policy)


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
        if matching and candidates and not matching & candidates:
            message = f"the weight is ignored: {', '.join(outside)} is outside the cluster affinity; add it there"
            path = f"{_WEIGHTS}.staticWeightList[{index}]"
            yield warning(weight.source, path, "weight-outside-affinity", message)
    source, path = weights[0].source, f"{_WEIGHTS}.staticWeightList"
    if candidates and not weighed:
        message = (
            "no weight is for a cluster of the affinity, so every cluster weighs 1; write weights for these clusters"
        )
        yield warning(source, path, "weights-all-outside", message)
    elif candidates - weighed:
        without = ", ".join(sorted(candidates - weighed))
        message = (
            f"without a weight these clusters of the affinity get nothing: {without}; add a weight, or exclude them"
        )
        yield warning(source, path, "cluster-without-weight", message)


def _spread(policy: PropagationPolicy) -> Iterator[Problem]:
    """Karmada: static weights take every candidate; only cluster and region select, the rest demands a property."""
    placement = policy.placement
    for index, constraint in enumerate(placement.spread):
        path = f"spec.placement.spreadConstraints[{index}]"
        if constraint.by_label:
            message = "spreading by a label is not supported: it selects nothing; use spreadByField cluster or region"
            yield warning(constraint.source, path, "spread-by-label", message)
        elif constraint.by_field in ("zone", "provider"):
            message = (
                f"a constraint on {constraint.by_field} only demands that a cluster has one; its groups are not "
                "counted, use cluster or region"
            )
            yield warning(constraint.source, path, "spread-not-counted", message)
    if not placement.spread or placement.scheduling.division is not Division.STATIC:
        return
    if placement.scheduling.has_weight_preference and not placement.scheduling.static_weights:
        return
    message = "static weights take every cluster of the affinity and ignore spread constraints; use dynamicWeight"
    yield warning(placement.spread[0].source, "spec.placement.spreadConstraints", "spread-ignored", message)


def lint_overrides(fleet: Fleet, claims: Claims, interpreters: Registry) -> Iterator[Problem]:
    """Warnings about override policies."""
    yield from _idle(fleet, interpreters)
    selected, selecting = _selected(fleet)
    rules = [rule for policy in fleet.overrides for rule in policy.rules]
    added = [{"containers": one.value} for rule in rules for one in rule.overriders.plaintext]
    places = {policy.ref: candidate_clusters(fleet, policy) for policy in fleet.propagation}
    yield from lint_selectors(fleet, fleet.overrides, selecting, "override-selects-nothing")
    for policy in fleet.overrides:
        yield from _itself(policy)
        identities = selected.get(policy.ref, set())
        if identities and any(rule.overriders.command or rule.overriders.args for rule in policy.rules):
            bodies = [*(fleet.templates[identity].body for identity in identities), *added]
            yield from _containers(policy, set(chain.from_iterable(map(_names_of_containers, bodies))))
        owners = {claims.claims[identity].policy for identity in identities if identity in claims.claims}
        # An unclaimed template may follow an owner to any cluster, so its overrides cannot be checked.
        if fleet.clusters and identities and all(identity in claims.claims for identity in identities):
            yield from _targets(fleet, policy, frozenset().union(*(places[ref] for ref in owners)))


def _selected(fleet: Fleet) -> tuple[dict[PolicyRef, set[Identity]], dict[PolicyRef, set[int]]]:
    """By override policy: the templates that it selects, and its selectors that select any."""
    index = PolicyIndex(fleet.overrides)
    selected: dict[PolicyRef, set[Identity]] = {}
    selecting: dict[PolicyRef, set[int]] = {}
    for template in fleet.templates.values():
        for match in index.matches(template):
            selected.setdefault(match.policy.ref, set()).add(template.identity)
            if match.selector is not None:
                selecting.setdefault(match.policy.ref, set()).add(match.selector)
    return selected, selecting


def _itself(policy: OverridePolicy) -> Iterator[Problem]:
    if not policy.selectors:
        where = f"in {policy.ref.namespace}" if policy.ref.namespace else "in every namespace, and cluster-scoped ones"
        message = f"without resourceSelectors this overrides every template {where}; list them if that is not meant"
        yield hint(policy.source, "spec.resourceSelectors", "override-of-everything", message)
    if not policy.rules:
        message = "there are no overrideRules, so nothing is overridden; write a rule, or take the policy out"
        yield warning(policy.source, "spec.overrideRules", "override-without-rules", message)
    for index, rule in enumerate(policy.rules):
        if rule.overriders == Overriders():
            message = "the rule has no overriders, so it changes nothing; write one, or take the rule out"
            yield warning(rule.source, f"spec.overrideRules[{index}]", "rule-without-overriders", message)


def _targets(fleet: Fleet, policy: OverridePolicy, places: frozenset[str]) -> Iterator[Problem]:
    """Yield rules for clusters that no selected object may be placed in."""
    clusters = tuple(fleet.clusters.values())
    for index, rule in enumerate(policy.rules):
        if rule.target is None:
            continue
        targets = frozenset(matching_clusters(rule.target, clusters))
        path = f"spec.overrideRules[{index}].targetCluster"
        if not targets:
            message = "no cluster of the store matches this, so the rule never applies; check names and labels"
            yield warning(rule.source, path, "override-targets-nothing", message)
        elif not targets & places:
            named = ", ".join(sorted(targets))
            message = (
                f"nothing that this policy selects may go to {named}, so the rule never applies; check both policies"
            )
            yield warning(rule.source, path, "override-targets-nothing", message)


def _containers(policy: OverridePolicy, named: Collection[str]) -> Iterator[Problem]:
    """Yield overriders of containers that no selected object has, and no override may have added."""
    for index, rule in enumerate(policy.rules):
        for field in ("command", "args"):
            for number, one in enumerate(getattr(rule.overriders, field)):
                if one.container not in named:
                    path = f"spec.overrideRules[{index}].overriders.{field}Overrider[{number}].containerName"
                    message = f"nothing that is selected has a container {one.container!r}, so nothing changes"
                    names = f"; there are {', '.join(sorted(named)[:_NAMES_MAX])}" if named else ""
                    yield warning(one.source, path, "override-without-container", f"{message}{names}")


def _names_of_containers(value: Json) -> Iterator[str]:
    """Yield names of containers, wherever a kind has its pods."""
    for key, below in value.items() if isinstance(value, Mapping) else ():
        for item in below if isinstance(below, list) else (below,):
            if key in ("containers", "initContainers") and isinstance(item, Mapping):
                yield str(item.get("name"))
            else:
                yield from _names_of_containers(item)


def _idle(fleet: Fleet, interpreters: Registry) -> Iterator[Problem]:
    """Yield overriders that change none of the objects that they are applied to, whichever cluster these are for."""
    index = OverrideIndex(fleet.overrides, fleet.clusters)
    by_rules: dict[int, dict[int, tuple[SelectedRule, ...]]] = {}
    idle: dict[tuple[PolicyRef, int, str], Problem] = {}
    changing: set[tuple[PolicyRef, int, str]] = set()
    settled: set[int] = set()
    for template in fleet.templates.values():
        rules, interpreter = index.rules_of(template), interpreters.of(*template.identity[:2])
        if id(rules) not in by_rules:
            on_clusters = [index.rules_on(rules, cluster) for cluster in fleet.clusters]
            by_rules[id(rules)] = {id(chosen): chosen for chosen in on_clusters}
        for chosen in by_rules[id(rules)].values():
            if settled.issuperset(rule.number for rule in chosen):
                continue
            applied = apply_rules(interpreter.sanitize(template.body), template.identity, chosen, interpreter)
            names = set(_names_of_containers(applied.body or {}))
            sent = interpreter.sanitize(applied.body or {})
            changed = {(one.policy, one.rule, one.overrider) for one in applied.trace}
            for rule in chosen:
                patches = rule.rule.overriders.plaintext
                steps = ((step.name, step.overrider) for step in rule.steps)
                overriders = chain(steps, ((f"plaintext[{number}]", patch) for number, patch in enumerate(patches)))
                keys = {(rule.policy, rule.index, name): one for name, one in overriders}
                for key, one in keys.items():
                    tokens = pointer_tokens(one.path) or () if isinstance(one, PatchOperation) else ()
                    # The body has the place, and what is sent of the body has not.
                    dropped = [isinstance(resolve(side, tokens), str) for side in (applied.body, sent)] == [False, True]
                    # The replicas of a cluster are not those of the template.
                    is_count = isinstance(one, PatchOperation) and one.path.startswith(_COUNTS)
                    if applied.problems or is_count or (key in changed and not dropped):
                        changing.add(key)
                    elif key not in idle and not (isinstance(one, CommandOverrider) and one.container not in names):
                        why = _DROPPED if dropped else _why_idle(one, bool(images_of(template, interpreters)))
                        tell = hint if why == _SAME else warning
                        message = f"it changes no object that it selects, such as {template.identity}: {why}"
                        path = f"spec.overrideRules[{rule.index}].overriders.{key[2]}"
                        idle[key] = tell(one.source, path, "override-without-effect", message)
                if changing.issuperset(keys):
                    settled.add(rule.number)
    yield from (problem for key, problem in idle.items() if key not in changing)


_COUNTS: Final = ("/spec/replicas", "/spec/parallelism", "/spec/completions")
_DROPPED: Final = "clusters write this field, so that it is not sent; take it out"
_SAME: Final = "it is so already; correct the value, or take it out"


def _why_idle(
    overrider: ImageOverrider | CommandOverrider | MapOverrider | FieldOverrider | PatchOperation, has_images: bool
) -> str:
    if isinstance(overrider, ImageOverrider) and not overrider.predicate and not has_images:
        return "it has no images; select workloads"
    if isinstance(overrider, MapOverrider) and overrider.operator is not OverrideOperator.ADD:
        return "it has none of these keys; correct them, or write add to set them"
    return _SAME


def lint_volumes(fleet: Fleet, claims: Claims) -> Iterator[Problem]:
    """A hint for each StatefulSet with volume claims that ticks would move if it had none."""
    policies = {policy.ref: policy for policy in fleet.propagation}
    for identity, claim in claims.claims.items():
        policy = policies[claim.policy]
        if identity[:2] != ("apps", "StatefulSet"):
            continue
        if not is_descheduled(identity, policy) and policy.application_failover is None:
            continue
        template = fleet.templates[identity]
        names = ", ".join(claims_of(identity, template.body))
        if names:
            message = (
                f"{identity} has volume claims ({names}), which stay in their cluster: descheduling leaves it where it "
                f"is, and a failover by {claim.policy} is held until a person confirms it"
            )
            yield hint(template.source, "spec.volumeClaimTemplates", "volumes-stay", message)
