"""Templates as they are sent to one cluster: pruned, with the assigned replicas, overrides and our marks.

Each distinct outcome (template, replicas, rules, terms of ownership) is rendered once and shared by all clusters that
have it.

Source: Karmada: replicas first, then overrides, then pruning; design: "Ownership marks", "Jobs", "Secrets".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from reconciler.interpreters.job import COMPLETIONS
from reconciler.interpreters.registry import Lookup, interpreter_for
from reconciler.interpreters.replicas import with_count
from reconciler.model.binding import Binding
from reconciler.model.fleet import Fleet, Template
from reconciler.model.plan import Manifest
from reconciler.model.policy import Division, PropagationPolicy
from reconciler.model.problem import Problem
from reconciler.model.refs import Identity
from reconciler.model.tree import JsonObject, dig, digest_of, with_value, without
from reconciler.stages.job_completions import completions
from reconciler.stages.marks import Owner, mark, strip_marks
from reconciler.stages.namespaces import NAMESPACE_FOLLOWS, bare_namespace
from reconciler.stages.override_apply import FieldOverride, Overridden, apply_rules
from reconciler.stages.override_select import OverrideIndex, SelectedRule

_JOB: Final = ("batch", "Job")


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderInputs:
    """What rendering rests on.

    `policies`: the policy that governs each bound template, its own or the one inherited from owners. `yielded`: what
    `scale_targets` gives. `fixed_completions`: completions that live parts of divided Jobs were created with.
    """

    fleet: Fleet
    bindings: Mapping[Identity, Binding]
    policies: Mapping[Identity, PropagationPolicy]
    overrides: OverrideIndex
    yielded: Mapping[Identity, frozenset[str]] = field(default_factory=dict)
    fixed_completions: Mapping[Identity, Mapping[str, int]] = field(default_factory=dict)
    lookup: Lookup = interpreter_for


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """A manifest, or None with the problems that prevent it. `trace`: which override set which field."""

    manifest: Manifest | None
    problems: tuple[Problem, ...] = ()
    trace: tuple[FieldOverride, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendering:
    """All manifests in the order of cluster and identity. `traces` holds those that overrides changed."""

    manifests: tuple[Manifest, ...] = ()
    problems: tuple[Problem, ...] = ()
    traces: Mapping[tuple[str, Identity], tuple[FieldOverride, ...]] = field(default_factory=dict)


class _Subject(NamedTuple):
    """What is the same for a template on all clusters."""

    template: Template
    rules: tuple[SelectedRule, ...]
    completions: Mapping[str, int]
    yielded: frozenset[str]


class _Outcome(NamedTuple):
    """A marked body with its digest and the owner that it names."""

    body: JsonObject
    digest: str
    owner: Owner


class RenderCache:
    """What has been worked out for one `RenderInputs`; it never changes an answer."""

    __slots__ = ("bodies", "outcomes", "subjects")

    def __init__(self) -> None:
        self.subjects: dict[Identity, _Subject] = {}
        self.bodies: dict[tuple[Identity, int | None, int | None, tuple[int, ...]], Overridden] = {}
        self.outcomes: dict[tuple[int, int | None, bool], _Outcome] = {}


def template_of(fleet: Fleet, identity: Identity) -> Template | None:
    """The template of the store, a bare Namespace where a Namespace has none, else None."""
    found = fleet.templates.get(identity)
    if found is None and identity[:2] == ("", "Namespace"):
        return bare_namespace(identity.name)
    return found


def render(
    inputs: RenderInputs, identity: Identity, cluster: str, replicas: int | None, cache: RenderCache
) -> Rendered:
    """The manifest of a bound template in one cluster with this many replicas assigned to it."""
    subject = cache.subjects.get(identity)
    if subject is None:
        subject = cache.subjects[identity] = _subject(inputs, identity)
    template, share = subject.template, subject.completions.get(cluster)
    rules = [rule for rule in subject.rules if rule.clusters is None or cluster in rule.clusters]
    key = (identity, replicas, share, tuple([rule.number for rule in rules]))
    overridden = cache.bodies.get(key)
    if overridden is None:
        overridden = cache.bodies[key] = _body(inputs, template, replicas, share, rules)
    problems = overridden.problems and tuple(replace(problem, cluster=cluster) for problem in overridden.problems)
    if overridden.body is None:
        return Rendered(manifest=None, problems=problems)
    outcome = _outcome(inputs, identity, cluster, replicas, overridden.body, cache)
    manifest = Manifest(
        cluster=cluster,
        gvk=template.gvk,
        identity=identity,
        body=outcome.body,
        digest=outcome.digest,
        source=template.source,
        policy=outcome.owner.policy,
        overrides=overridden.rules,
        replicas_yielded=cluster in subject.yielded,
    )
    return Rendered(manifest=manifest, problems=problems, trace=overridden.trace)


def render_all(inputs: RenderInputs, cache: RenderCache | None = None) -> Rendering:
    """Every bound template on every cluster of its binding."""
    cache = cache or RenderCache()
    manifests: list[Manifest] = []
    problems: list[Problem] = []
    traces: dict[tuple[str, Identity], tuple[FieldOverride, ...]] = {}
    for identity in sorted(inputs.bindings):
        for target in inputs.bindings[identity].targets:
            rendered = render(inputs, identity, target.cluster, target.replicas, cache)
            problems += rendered.problems
            if rendered.manifest is not None:
                manifests.append(rendered.manifest)
            if rendered.trace:
                traces[target.cluster, identity] = rendered.trace
    manifests.sort(key=lambda manifest: (manifest.cluster, manifest.identity))
    return Rendering(manifests=tuple(manifests), problems=tuple(sorted(problems)), traces=traces)


def owner_of(inputs: RenderInputs, identity: Identity, cluster: str, replicas: int | None) -> Owner:
    """The terms under which the object is ours: no policy for a Namespace that only follows what lives in it."""
    binding, policy = inputs.bindings.get(identity), inputs.policies.get(identity)
    if policy is None or _only_follows(binding, cluster):
        return Owner(policy=None)
    return Owner(
        policy=policy.ref,
        flavor=policy.flavor,
        keep=policy.keep,
        replicas=replicas,
        dependency=binding is not None and binding.is_dependency,
    )


def _only_follows(binding: Binding | None, cluster: str) -> bool:
    reason = binding.cluster_reasons.get(cluster) if binding else None
    return reason is not None and reason.rule == NAMESPACE_FOLLOWS


def _subject(inputs: RenderInputs, identity: Identity) -> _Subject:
    template = template_of(inputs.fleet, identity)
    assert template is not None, f"{identity} is bound and has no template"
    return _Subject(
        template=template,
        rules=inputs.overrides.rules_of(template),
        completions=_completions(inputs, template),
        yielded=inputs.yielded.get(identity, frozenset()),
    )


def _completions(inputs: RenderInputs, template: Template) -> Mapping[str, int]:
    """The split of a divided Job; empty for everything else."""
    identity = template.identity
    policy, binding = inputs.policies.get(identity), inputs.bindings.get(identity)
    if identity[:2] != _JOB or binding is None or policy is None:
        return {}
    if policy.placement.scheduling.division is Division.DUPLICATED:
        return {}
    return completions(template.body, binding.targets, inputs.fixed_completions.get(identity, {}))


def _body(
    inputs: RenderInputs,
    template: Template,
    replicas: int | None,
    share: int | None,
    rules: Sequence[SelectedRule],
) -> Overridden:
    """The body without marks: pruned, divided, overridden, and pruned of what overrides brought back."""
    interpreter = inputs.lookup(*template.identity[:2])
    body = _in_namespace(strip_marks(interpreter.sanitize(template.body)), template.identity.namespace)
    if replicas is not None:
        body = interpreter.with_replicas(body, replicas)
    if share is not None:
        body = with_count(body, COMPLETIONS, share)
    overridden = apply_rules(body, template.identity, rules, interpreter)
    if overridden.body is None or overridden.body is body:
        return overridden
    return replace(overridden, body=strip_marks(interpreter.sanitize(overridden.body)))


def _in_namespace(body: JsonObject, namespace: str) -> JsonObject:
    written = dig(body, "metadata", "namespace")
    if not namespace:
        return without(body, ("metadata", "namespace"))
    return body if written == namespace else with_value(body, ("metadata", "namespace"), namespace)


def _outcome(
    inputs: RenderInputs,
    identity: Identity,
    cluster: str,
    replicas: int | None,
    body: JsonObject,
    cache: RenderCache,
) -> _Outcome:
    # The cache keeps the body alive, so no other one can have its id.
    key = (id(body), replicas, identity.kind == "Namespace" and _only_follows(inputs.bindings.get(identity), cluster))
    outcome = cache.outcomes.get(key)
    if outcome is None:
        owner = owner_of(inputs, identity, cluster, replicas)
        marked = mark(body, inputs.fleet.settings.name, owner)
        outcome = cache.outcomes[key] = _Outcome(marked, digest_of(marked), owner)
    return outcome
