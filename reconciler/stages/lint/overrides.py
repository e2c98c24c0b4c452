"""Overrides that never apply, change nothing, or apply to everything."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.model.fleet import Fleet
from reconciler.model.override import OverridePolicy, Overriders
from reconciler.model.problem import Problem, Severity, Source
from reconciler.model.refs import Identity, PolicyRef
from reconciler.stages.claims import Claims, PolicyIndex, matching_clusters
from reconciler.stages.lint.placement import candidate_clusters
from reconciler.stages.lint.unread import may_be_unread


def lint_overrides(fleet: Fleet, claims: Claims) -> Iterator[Problem]:
    """Warnings about override policies."""
    selected, selecting = _selected(fleet)
    places = {policy.ref: candidate_clusters(fleet, policy) for policy in fleet.propagation}
    for policy in fleet.overrides:
        yield from _itself(policy)
        yield from _selectors(fleet, policy, selecting.get(policy.ref, set()))
        identities = selected.get(policy.ref, set())
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
        yield _problem(policy.source, "spec.resourceSelectors", "override-of-everything", message, Severity.HINT)
    if not policy.rules:
        message = "there are no overrideRules, so nothing is overridden; write a rule, or take the policy out"
        yield _problem(policy.source, "spec.overrideRules", "override-without-rules", message)
    for index, rule in enumerate(policy.rules):
        if rule.overriders == Overriders():
            message = "the rule has no overriders, so it changes nothing; write one, or take the rule out"
            yield _problem(rule.source, f"spec.overrideRules[{index}]", "rule-without-overriders", message)


def _selectors(fleet: Fleet, policy: OverridePolicy, selecting: set[int]) -> Iterator[Problem]:
    for index, selector in enumerate(policy.selectors):
        elsewhere = policy.ref.namespace and selector.namespace not in ("", policy.ref.namespace)
        if index not in selecting and not elsewhere and not may_be_unread(fleet, policy.ref, selector):
            what = f"{selector.api_version} {selector.kind}" + (f" {selector.name}" if selector.name else "")
            message = f"{what} selects nothing in this store; check apiVersion, kind, name and labels, or take it out"
            path = f"spec.resourceSelectors[{index}]"
            yield _problem(selector.source, path, "override-selects-nothing", message)


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
            yield _problem(rule.source, path, "override-targets-nothing", message)
        elif not targets & places:
            named = ", ".join(sorted(targets))
            message = (
                f"nothing that this policy selects may go to {named}, so the rule never applies; check both policies"
            )
            yield _problem(rule.source, path, "override-targets-nothing", message)


def _problem(source: Source, path: str, code: str, message: str, severity: Severity = Severity.WARNING) -> Problem:
    return Problem(source=source, path=path, code=code, message=message, severity=severity)
