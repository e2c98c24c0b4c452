"""The override rules of a template on a cluster, applied one after another, with the rule that set each field.

Source: Karmada: all ClusterOverridePolicies come before the OverridePolicies of the namespace; within each class the
less precise selector comes first (so that the most precise is applied last and wins), then the smaller name; the
rules of a policy keep their order. Within a rule: image, command, args, labels, annotations, field, plaintext; every
overrider sees the result of the ones before; the first that fails stops the object on that cluster. Unlike there,
identity cannot change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from msgspec import Struct

from reconciler.api.clusters import Cluster
from reconciler.api.content import JsonObject
from reconciler.api.fleet import Fleet, Template
from reconciler.api.policies import (
    CommandOverrider,
    FieldOverrider,
    ImageOverrider,
    MapOverrider,
    OverridePolicy,
    OverrideRule,
)
from reconciler.api.problem import Problem, Severity, Source, dotted
from reconciler.api.refs import Identity, PolicyRef
from reconciler.documents import CompiledPatch, compile_patch, pointer_tokens
from reconciler.kinds.body_fields import REPLICAS
from reconciler.kinds.interpreter import Interpreter
from reconciler.kinds.jobs import PARALLELISM
from reconciler.kinds.registry import Registry
from reconciler.overrides.overriders import (
    IDENTITY_FAULT,
    BodyEdit,
    EditFault,
    changed_identity,
    changed_quietly,
    containers_of,
    edit_field,
    edit_images,
    edit_list,
    edit_map,
    edit_plaintext,
)
from reconciler.policy import Match, PolicyIndex, best_matches, matching_clusters
from reconciler.templates import may_be_refused

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
    return (not match.policy.ref.is_cluster_scoped, match.score, match.policy.ref.name, str(match.policy.source))


class FieldOverride(NamedTuple):
    """The overrider that set a field: `path` as people write it, `overrider` as `plaintext[1]`."""

    path: str
    policy: PolicyRef
    rule: int
    overrider: str
    source: Source


class Overridden(NamedTuple):
    """A body after its rules. `body` None: one failed, and the error among `problems` names it.

    `rules` name those that changed something; `trace` is in the order of application, so of two entries with one path
    the later has won. `problems` carry no cluster: an outcome is shared by all clusters with the same rules.
    """

    body: JsonObject | None
    rules: tuple[str, ...] = ()
    trace: tuple[FieldOverride, ...] = ()
    problems: tuple[Problem, ...] = ()


def apply_rules(
    body: JsonObject, identity: Identity, rules: Iterable[SelectedRule], interpreter: Interpreter
) -> Overridden:
    """Return the body with the rules applied in order; it is never written into."""
    names: list[str] = []
    trace: list[FieldOverride] = []
    problems: list[Problem] = []
    for rule in rules:
        before = body
        for overrider, source, edit in _run(rule, body, interpreter):
            if not isinstance(edit, BodyEdit) or changed_identity(body, edit.body):
                fault = edit if isinstance(edit, EditFault) else IDENTITY_FAULT
                problems.append(_problem(rule, overrider, source, identity, fault, Severity.ERROR))
                return Overridden(body=None, problems=tuple(problems))
            body = edit.body
            if edit.warnings:
                faults = [EditFault(*warning) for warning in edit.warnings]
                problems += [_problem(rule, overrider, source, identity, fault, Severity.WARNING) for fault in faults]
            paths = map(_written, edit.changed)
            trace += [FieldOverride(path, rule.policy, rule.index, overrider, source) for path in paths]
        if body is not before and body != before:
            names.append(rule.label)
    return Overridden(body, tuple(names), tuple(trace), tuple(problems))


def apply_quiet_rules(body: JsonObject, rules: Iterable[SelectedRule], interpreter: Interpreter) -> JsonObject:
    """Return the body with rules applied that cannot fail or cause remarks (`are_quiet`)."""
    for rule in rules:
        for _, field, overrider in rule.steps:
            edit = _edit(body, field, overrider, interpreter)
            assert isinstance(edit, BodyEdit), "quiet rules do not fail"
            body = edit.body
    return body


def _run(
    rule: SelectedRule, body: JsonObject, interpreter: Interpreter
) -> Iterator[tuple[str, Source, BodyEdit | EditFault]]:
    """Yield the overriders of a rule in order, each with its edit of the body before it, up to the first that fails."""
    for name, field, overrider in rule.steps:
        edit = _edit(body, field, overrider, interpreter)
        yield name, overrider.source, edit
        if isinstance(edit, EditFault):
            return
        body = edit.body
    operations = rule.rule.overriders.plaintext
    if operations:
        for number, edit in edit_plaintext(body, rule.plaintext, operations):
            yield f"plaintext[{number}]", operations[number].source, edit


def _edit(
    body: JsonObject,
    field: str,
    overrider: ImageOverrider | CommandOverrider | MapOverrider | FieldOverrider,
    interpreter: Interpreter,
) -> BodyEdit | EditFault:
    match overrider:
        case ImageOverrider():
            return edit_images(body, overrider, interpreter)
        case CommandOverrider():
            return edit_list(body, overrider, field, containers_of(body, interpreter))
        case MapOverrider():
            return edit_map(body, overrider, field)
        case FieldOverrider():
            return edit_field(body, overrider)


def _problem(
    rule: SelectedRule, overrider: str, source: Source, identity: Identity, fault: EditFault, severity: Severity
) -> Problem:
    what = "cannot be applied to" if severity is Severity.ERROR else "on"
    return Problem(
        source=source,
        path=f"spec.overrideRules[{rule.index}].overriders.{overrider}",
        code=fault.code,
        message=f"{rule.label} {overrider} {what} {identity}: {fault.message}",
        severity=severity,
    )


# Thousands of objects are changed at the same few places.
_written = lru_cache(maxsize=1024)(dotted)


def may_add_fields(rules: tuple[SelectedRule, ...]) -> bool:
    """Return whether the rules could write a field that was pruned from the body, as images and commands cannot."""
    written = (rule.rule.overriders for rule in rules)
    return any(each.labels or each.annotations or each.field or each.plaintext for each in written)


def are_quiet(rules: tuple[SelectedRule, ...], images: tuple[str, ...] | None) -> bool:
    """Return whether the rules apply to a body with these images without faults or remarks: nearly all do.

    False if unknown. Labels and annotations of the usual form can always be set. Images are checked as they are, so
    only the first overrider of all may change them. `images` None: unknown.
    """
    for number, rule in enumerate(rules):
        if rule.rule.overriders.plaintext:
            return False
        for place, (_, field, overrider) in enumerate(rule.steps):
            if isinstance(overrider, MapOverrider):
                if any(may_be_refused(field, key, value) for key, value in overrider.values):
                    return False
                continue
            if number or place or images is None or not isinstance(overrider, ImageOverrider):
                return False
            if changed_quietly(images, overrider) is None:
                return False
    return True


def changing_quietly(rules: tuple[SelectedRule, ...], images: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Return the names of quiet rules that change something; None: not known without applying them."""
    if len(rules) != 1 or images is None:
        return None
    rule = rules[0]
    if len(rule.steps) != 1 or rule.rule.overriders.plaintext:
        return None
    overrider = rule.steps[0].overrider
    changes = changed_quietly(images, overrider) if isinstance(overrider, ImageOverrider) else None
    return None if changes is None else (rule.label,) if changes else ()


class SentReplicas(NamedTuple):
    """The override rules that may set the replicas of a workload, with all that they are applied to."""

    template: Template
    interpreter: Interpreter
    overrides: OverrideIndex
    rules: tuple[SelectedRule, ...]

    def sent(self, cluster: str, assigned: int) -> int:
        """Return the replicas that are sent to a cluster with this assigned number."""
        chosen = self.overrides.rules_on(self.rules, cluster)
        if not chosen:
            return assigned
        body = self.interpreter.with_replicas(self.template.body, assigned)
        applied = apply_rules(body, self.template.identity, chosen, self.interpreter)
        replicas = self.interpreter.demand(applied.body).replicas if applied.body is not None else None
        return assigned if replicas is None else replicas


def of_replicas(overrides: Iterable[OverridePolicy]) -> tuple[OverridePolicy, ...]:
    """Return the override policies that may set replicas."""
    return tuple(
        policy
        for policy in overrides
        if any(
            tokens == place[: len(tokens)]
            for rule in policy.rules
            for one in rule.overriders.plaintext
            if (tokens := pointer_tokens(one.path)) is not None
            for place in (REPLICAS, PARALLELISM)
        )
    )


class ReplicaOverrides:
    """The override policies that may set replicas, ready to apply. Source: design#overridden-replicas."""

    def __init__(self, fleet: Fleet, interpreters: Registry) -> None:
        self._fleet, self._interpreters = fleet, interpreters
        policies = of_replicas(fleet.overrides)
        self._index = OverrideIndex(policies, fleet.clusters) if policies else None

    def of(self, identity: Identity) -> SentReplicas | None:
        """Return what may set the replicas of a workload; None: they are sent as assigned."""
        if self._index is None:
            return None
        template = self._fleet.templates[identity]
        rules = self._index.rules_of(template)
        return SentReplicas(template, self._interpreters.of(*identity[:2]), self._index, rules) if rules else None
