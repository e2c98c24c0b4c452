"""The override rules for a template on a cluster, in their order.

Source: Karmada: all ClusterOverridePolicies come before the OverridePolicies of the namespace; within each class the
less precise selector comes first (so that the most precise is applied last and wins), then the smaller name; the
rules of a policy keep their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from msgspec import Struct

from reconciler.api.clusters import Cluster
from reconciler.api.fleet import Template
from reconciler.api.policies import (
    CommandOverrider,
    FieldOverrider,
    ImageOverrider,
    MapOverrider,
    OverridePolicy,
    OverrideRule,
)
from reconciler.api.refs import PolicyRef
from reconciler.documents import CompiledPatch, compile_patch
from reconciler.policy import Match, PolicyIndex, best_matches, matching_clusters

_ORDER: Final = (
    ("imageOverrider", "image"),
    ("commandOverrider", "command"),
    ("argsOverrider", "args"),
    ("labelsOverrider", "labels"),
    ("annotationsOverrider", "annotations"),
    ("fieldOverrider", "field"),
)
"""Overriders as policies name them, and as the model and the changed field are called, in the order of application."""


class OverriderStep(NamedTuple):
    """One overrider of a rule: its name in the rule (`imageOverrider[0]`), the field of the model that holds it."""

    name: str
    field: str
    overrider: ImageOverrider | CommandOverrider | MapOverrider | FieldOverrider


class SelectedRule(Struct, frozen=True, kw_only=True):
    """A rule with its place in its policy. `clusters` None: every cluster. `number` names it within one index."""

    number: int
    policy: PolicyRef
    index: int
    rule: OverrideRule
    clusters: frozenset[str] | None
    label: str
    """Its name in reports: `OverridePolicy demo/web rule 0`."""
    steps: tuple[OverriderStep, ...]
    plaintext: CompiledPatch

    def is_for(self, cluster: str) -> bool:
        """Return whether the rule targets a cluster."""
        return self.clusters is None or cluster in self.clusters


class OverrideIndex:
    """Override policies, found by kind and compiled once. Its caches never change a result."""

    def __init__(self, overrides: Iterable[OverridePolicy], clusters: Mapping[str, Cluster]) -> None:
        self._policies = PolicyIndex(overrides)
        self._clusters = tuple(clusters[name] for name in sorted(clusters))
        self._rules: dict[int, tuple[SelectedRule, ...]] = {}
        # The index of policies makes each match once and keeps it, so that its id stays its own.
        self._by_matches: dict[tuple[int, ...], tuple[SelectedRule, ...]] = {}
        self._joined: dict[tuple[int, ...], tuple[SelectedRule, ...]] = {}
        self._by_cluster: dict[tuple[int, str], tuple[SelectedRule, ...]] = {}
        self._same: dict[tuple[int, ...], tuple[SelectedRule, ...]] = {}
        self._total = 0

    def rules_of(self, template: Template) -> tuple[SelectedRule, ...]:
        """Return a template's rules in order of application, on any cluster; equal policies give one tuple."""
        matches = self._policies.matches(template)
        if not matches:
            return ()
        ids = tuple(map(id, matches))
        known = self._by_matches.get(ids)
        if known is None:
            ranked = sorted(best_matches(matches), key=_rank)
            key = tuple([id(match.policy) for match in ranked])
            if key not in self._joined:
                self._joined[key] = tuple([rule for match in ranked for rule in self._compiled(match.policy)])
            known = self._by_matches[ids] = self._joined[key]
        return known

    def rules_on(self, rules: tuple[SelectedRule, ...], cluster: str) -> tuple[SelectedRule, ...]:
        """Return those of `rules`, as `rules_of` gave them, that apply on a cluster. Equal answers are one tuple."""
        if not rules:
            return ()
        key = (id(rules), cluster)
        chosen = self._by_cluster.get(key)
        if chosen is None:
            chosen = tuple([rule for rule in rules if rule.is_for(cluster)])
            chosen = self._by_cluster[key] = self._same.setdefault(tuple([rule.number for rule in chosen]), chosen)
        return chosen

    def _compiled(self, policy: OverridePolicy) -> tuple[SelectedRule, ...]:
        known = self._rules.get(id(policy))
        if known is None:
            known = tuple([self._compile(policy, index, rule) for index, rule in enumerate(policy.rules)])
            self._rules[id(policy)] = known
        return known

    def _compile(self, policy: OverridePolicy, index: int, rule: OverrideRule) -> SelectedRule:
        self._total += 1
        return SelectedRule(
            number=self._total,
            policy=policy.ref,
            index=index,
            rule=rule,
            clusters=None if rule.target is None else frozenset(matching_clusters(rule.target, self._clusters)),
            label=f"{policy.ref} rule {index}",
            # plaintext, which comes after all of them, is not among them
            steps=tuple(
                OverriderStep(f"{name}[{number}]", field, overrider)
                for name, field in _ORDER
                for number, overrider in enumerate(getattr(rule.overriders, field))
            ),
            plaintext=compile_patch(rule.overriders.plaintext),
        )


def _rank(match: Match[OverridePolicy]) -> tuple[bool, int, str, str]:
    """Return the order of policies; two API groups may share names: then the place in the store decides."""
    return (not match.policy.is_cluster_scoped, match.score, match.policy.ref.name, str(match.policy.source))
