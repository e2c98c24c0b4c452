"""Templates as they are sent to one cluster: pruned, with the assigned replicas, overrides and our marks.

Each distinct outcome (template, replicas, rules, terms of ownership) is rendered once and shared by all clusters that
have it.

Source: Karmada: replicas first, then overrides, then pruning; design#marks; design#jobs; design#string-data.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from itertools import chain
from typing import Final, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.containment import contained
from reconciler.interpreters.base import Interpreter
from reconciler.interpreters.jobs.job import is_single_run
from reconciler.interpreters.registry import Registry
from reconciler.model.binding import Binding, TargetCluster
from reconciler.model.content import Content, Unmade
from reconciler.model.fleet import Fleet, Template
from reconciler.model.plan import Manifest
from reconciler.model.policy import Division, PropagationPolicy
from reconciler.model.problem import Problem, Source
from reconciler.model.refs import GVK, Identity, PolicyRef
from reconciler.model.tree import JsonObject
from reconciler.stages.decision import WORK_QUEUE, completions
from reconciler.stages.dependencies import NAMESPACE_FOLLOWS, NO_MAKERS, Makers, bare_namespace
from reconciler.stages.overrides import (
    FieldOverride,
    OverrideIndex,
    SelectedRule,
    apply_rules,
    are_quiet,
    may_add_fields,
)
from reconciler.stages.ownership import Owner, mark, strip_marks, written_terms
from reconciler.stages.rendering.check import RenderCheck
from reconciler.stages.rendering.declared_body import DeclaredBody
from reconciler.stages.rendering.faults import fault_of
from reconciler.stages.rendering.override_references import AddedReference, added_references, not_there
from reconciler.stages.rendering.revealed import touched_ciphertext
from reconciler.stages.schemas import Schema
from reconciler.stages.sealed import with_stand_ins

_JOB: Final = ("batch", "Job")


class RenderInputs(Struct, frozen=True, kw_only=True):
    """What rendering rests on.

    `policies`: the policy that governs each bound template, its own or the one inherited from owners. `yielded`: what
    `scale_targets` gives. `fixed_completions`: completions that live parts of divided Jobs were created with.
    `definitions`: the CustomResourceDefinition of each custom kind of the store. `makers`: what templates make.
    """

    fleet: Fleet
    bindings: Mapping[Identity, Binding]
    policies: Mapping[Identity, PropagationPolicy]
    overrides: OverrideIndex
    interpreters: Registry
    yielded: Mapping[Identity, frozenset[str]] = field(default_factory=dict)
    fixed_completions: Mapping[Identity, Mapping[str, int]] = field(default_factory=dict)
    definitions: Mapping[tuple[str, str], Identity] = field(default_factory=dict)
    makers: Makers = NO_MAKERS


class Rendered(NamedTuple):
    """A manifest, or None with the problems that prevent it. `trace`: which override set which field."""

    manifest: Manifest | None
    problems: tuple[Problem, ...] = ()
    trace: tuple[FieldOverride, ...] = ()


class Rendering(Struct, frozen=True, kw_only=True):
    """All manifests in the order of cluster and identity."""

    manifests: tuple[Manifest, ...] = ()
    problems: tuple[Problem, ...] = ()


class _Terms(NamedTuple):
    """What decides how a template is rendered on a cluster: clusters with the same terms get the same.

    `share`: completions of a divided Job. `rules`: as `OverrideIndex.rules_on` gave them. `follows`: it is a Namespace
    that is there for what lives in it alone. `key`: all of them; rules are told apart by identity, as they are hashed
    slowly.
    """

    replicas: int | None
    share: int | None
    rules: tuple[SelectedRule, ...]
    follows: bool
    key: tuple[int | None, int | None, int, bool]


class _Common(NamedTuple):
    """What clusters with the same terms have in common.

    `shared`: the manifest but for its cluster and for who owns its replicas; None when a rule failed. `problems` and
    `trace` are those of `Overridden`. `added`: what overrides alone refer to.
    """

    shared: tuple[GVK, Identity, Content, Source, PolicyRef | None, tuple[str, ...]] | None
    problems: tuple[Problem, ...] = ()
    trace: tuple[FieldOverride, ...] = ()
    added: tuple[AddedReference, ...] = ()


class _Subject(Struct):
    """What is the same for a template on all clusters, and the outcomes so far."""

    template: Template
    interpreter: Interpreter
    declared: DeclaredBody
    rules: tuple[SelectedRule, ...]
    completions: Mapping[str, int]
    yielded: frozenset[str]
    defined: Schema | None
    """Of a kind that the store defines."""
    outcomes: dict[tuple[int | None, int | None, int, bool], _Common] = field(default_factory=dict)
    """By the key of the terms."""


_Groups = tuple[tuple[_Terms, tuple[str, ...]], ...]


class RenderCache:
    """What has been worked out for one `RenderInputs`; it never changes an answer."""

    __slots__ = ("check", "groups", "owners", "subjects")

    def __init__(self) -> None:
        self.check = RenderCheck()
        self.subjects: dict[Identity, _Subject] = {}
        self.groups: dict[tuple[tuple[TargetCluster, ...], int], _Groups] = {}
        """The targets of a binding by their terms, by the targets and the id of the rules of the template."""
        self.owners: dict[tuple[int, int | None, bool, bool], tuple[PolicyRef | None, str]] = {}
        """Owners and the terms that marks state, by the id of the policy and what `_owner` rests on besides."""


def template_of(fleet: Fleet, identity: Identity) -> Template | None:
    """The template of the store, a bare Namespace where a Namespace has none, else None."""
    found = fleet.templates.get(identity)
    if found is None and identity[:2] == ("", "Namespace"):
        return bare_namespace(identity.name)
    return found


def render(
    inputs: RenderInputs, identity: Identity, cluster: str, replicas: int | None, cache: RenderCache
) -> Rendered:
    """The manifest of a bound template in one cluster with this many replicas assigned to it; it never raises."""
    rendered, fault = contained(_render, inputs, identity, cluster, replicas, cache)
    return rendered or Rendered(None, (fault_of(inputs.fleet, identity, fault, cluster),))


def _render(
    inputs: RenderInputs, identity: Identity, cluster: str, replicas: int | None, cache: RenderCache
) -> Rendered:
    subject = _known_subject(inputs, identity, cache)
    outcome = _outcome(inputs, subject, _terms(inputs, subject, cluster, replicas), cache)
    shared, _, trace, _ = outcome
    problems = _problems(inputs, outcome, cluster)
    if shared is None:
        return Rendered(None, problems)
    return Rendered(Manifest(cluster, *shared, cluster in subject.yielded), problems, trace)


def render_all(
    inputs: RenderInputs, cache: RenderCache | None = None, only: Collection[Identity] | None = None
) -> Rendering:
    """Every bound template, or those of `only`, on every cluster of its binding; it never raises."""
    cache = cache or RenderCache()
    by_cluster: dict[str, list[Manifest]] = defaultdict(list)
    problems: list[Problem] = []
    for identity in sorted(inputs.bindings if only is None else inputs.bindings.keys() & only):
        binding = inputs.bindings[identity]
        subject, fault = contained(_known_subject, inputs, identity, cache)
        groups = _groups(inputs, subject, binding, cache) if subject is not None else ()
        if subject is None:
            problems += (fault_of(inputs.fleet, identity, fault, cluster) for cluster, _ in binding.targets)
        for terms, clusters in groups:
            assert subject is not None, "without one there are no groups"
            outcome, fault = contained(_outcome, inputs, subject, terms, cache)
            if outcome is None:
                problems += (fault_of(inputs.fleet, identity, fault, cluster) for cluster in clusters)
                continue
            if outcome.problems or outcome.added:
                problems += (problem for name in clusters for problem in _problems(inputs, outcome, name))
            if outcome.shared is not None:
                for cluster in clusters:
                    by_cluster[cluster].append(Manifest(cluster, *outcome.shared, cluster in subject.yielded))
    manifests = tuple(chain.from_iterable(by_cluster[cluster] for cluster in sorted(by_cluster)))
    return Rendering(manifests=manifests, problems=tuple(sorted(problems)))


def problems_in(inputs: RenderInputs, cache: RenderCache) -> tuple[Problem, ...]:
    """The problems that `render_all` would report, without making manifests."""
    found = (_problems(inputs, outcome, cluster) for cluster, outcome in _not_quiet(inputs, cache))
    return tuple(sorted(chain.from_iterable(found)))


def _problems(inputs: RenderInputs, outcome: _Common, cluster: str) -> tuple[Problem, ...]:
    """What is to be said of an outcome in one cluster."""
    found = outcome.problems and tuple(replace(problem, cluster=cluster) for problem in outcome.problems)
    return (*found, *not_there(outcome.added, inputs.bindings, inputs.makers, cluster)) if outcome.added else found


def managed_in(inputs: RenderInputs, cache: RenderCache) -> Mapping[str, int]:
    """How many manifests `render_all` would make for each cluster: what guards compare deletions with."""
    managed = Counter(cluster for binding in inputs.bindings.values() for cluster, _ in binding.targets)
    managed.subtract(cluster for cluster, outcome in _not_quiet(inputs, cache) if outcome.shared is None)
    return managed


def _not_quiet(inputs: RenderInputs, cache: RenderCache) -> Iterator[tuple[str, _Common]]:
    """What becomes of everything that overrides or a definition of the store may say something about, by cluster.

    What cannot be made at all has problems and nothing to be sent.
    """
    for identity, binding in inputs.bindings.items():
        found, fault = contained(lambda *of: tuple(_outcomes(*of)), inputs, identity, binding, cache)
        if found is None:
            for cluster, _ in binding.targets:
                yield cluster, _Common(None, (fault_of(inputs.fleet, identity, fault, cluster),))
        else:
            yield from found


def _outcomes(
    inputs: RenderInputs, identity: Identity, binding: Binding, cache: RenderCache
) -> Iterator[tuple[str, _Common]]:
    template = template_of(inputs.fleet, identity)
    assert template is not None, f"{identity} is bound and has no template"
    of_template = inputs.overrides.rules_of(template)
    is_defined = bool(inputs.definitions) and identity[:2] in inputs.definitions
    interpreter, quiet = inputs.interpreters.of(*identity[:2]), {id(()): not is_defined}
    for cluster, replicas in binding.targets if of_template or is_defined else ():
        rules = inputs.overrides.rules_on(of_template, cluster)
        is_quiet = quiet.get(id(rules))
        if is_quiet is None:
            is_plain = not is_defined and template.sealed is None
            is_quiet = quiet[id(rules)] = is_plain and are_quiet(rules, template.body, interpreter)
        if not is_quiet:
            subject = _known_subject(inputs, identity, cache)
            terms = _terms(inputs, subject, cluster, replicas)
            yield cluster, _outcome(inputs, subject, terms, cache)


def _owner(inputs: RenderInputs, identity: Identity, terms: _Terms, cache: RenderCache) -> tuple[PolicyRef | None, str]:
    """Whose the object is, and the terms that its marks state.

    No policy for a Namespace that only follows what lives in it.
    """
    binding, policy = inputs.bindings.get(identity), inputs.policies.get(identity)
    is_dependency = binding is not None and binding.is_dependency
    key = (id(policy), terms.replicas, is_dependency, terms.follows)
    known = cache.owners.get(key)
    if known is None:
        owner = Owner(policy=None)
        if policy is not None and not terms.follows:
            owner = Owner(policy.ref, policy.flavor, policy.keep, terms.replicas, is_dependency)
        known = cache.owners[key] = (owner.policy, written_terms(owner))
    return known


def only_follows(binding: Binding | None, cluster: str) -> bool:
    """Whether a Namespace is in a cluster for what lives in it alone."""
    reason = binding.cluster_reasons.get(cluster) if binding else None
    return reason is not None and reason.rule == NAMESPACE_FOLLOWS


def _known_subject(inputs: RenderInputs, identity: Identity, cache: RenderCache) -> _Subject:
    subject = cache.subjects.get(identity)
    if subject is None:
        subject = cache.subjects[identity] = _subject(inputs, identity, cache)
    return subject


def _subject(inputs: RenderInputs, identity: Identity, cache: RenderCache) -> _Subject:
    template = template_of(inputs.fleet, identity)
    assert template is not None, f"{identity} is bound and has no template"
    interpreter = inputs.interpreters.of(*identity[:2])
    return _Subject(
        template=template,
        interpreter=interpreter,
        declared=DeclaredBody(template, interpreter),
        rules=inputs.overrides.rules_of(template),
        completions=_completions(inputs, template),
        yielded=inputs.yielded.get(identity, frozenset()),
        defined=cache.check.defined(template.gvk, _definition_of(inputs, identity)),
    )


def _definition_of(inputs: RenderInputs, identity: Identity) -> Template | None:
    found = inputs.definitions.get(identity[:2]) if inputs.definitions else None
    return inputs.fleet.templates.get(found) if found is not None else None


def _completions(inputs: RenderInputs, template: Template) -> Mapping[str, int]:
    """The split of a divided Job, and parts that are work queues already; empty for everything else."""
    identity = template.identity
    if identity[:2] != _JOB:
        return {}
    policy, binding = inputs.policies.get(identity), inputs.bindings.get(identity)
    if binding is None or policy is None:
        return {}
    fixed = inputs.fixed_completions.get(identity, {})
    if is_single_run(template.body):
        return {cluster: share for cluster, share in fixed.items() if share == WORK_QUEUE}
    if policy.placement.scheduling.division is Division.DUPLICATED:
        return {}
    return completions(template.body, binding.targets, fixed)


def _groups(inputs: RenderInputs, subject: _Subject, binding: Binding, cache: RenderCache) -> _Groups:
    """The targets of a binding by their terms. Templates that are placed and overridden alike share them."""
    if subject.completions or binding.identity.kind == "Namespace":
        return _grouped(inputs, subject, binding)
    key = (binding.targets, id(subject.rules))
    known = cache.groups.get(key)
    if known is None:
        known = cache.groups[key] = _grouped(inputs, subject, binding)
    return known


def _grouped(inputs: RenderInputs, subject: _Subject, binding: Binding) -> _Groups:
    groups: dict[tuple[int | None, int | None, int, bool], tuple[_Terms, list[str]]] = {}
    for cluster, replicas in binding.targets:
        terms = _terms(inputs, subject, cluster, replicas)
        groups.setdefault(terms.key, (terms, []))[1].append(cluster)
    return tuple([(terms, tuple(clusters)) for terms, clusters in groups.values()])


def _terms(inputs: RenderInputs, subject: _Subject, cluster: str, replicas: int | None) -> _Terms:
    identity = subject.template.identity
    share = subject.completions.get(cluster) if subject.completions else None
    rules = inputs.overrides.rules_on(subject.rules, cluster) if subject.rules else ()
    follows = identity.kind == "Namespace" and only_follows(inputs.bindings.get(identity), cluster)
    key = (replicas, share, id(rules), follows)
    return _Terms(replicas, share, rules, follows, key)


def _outcome(inputs: RenderInputs, subject: _Subject, terms: _Terms, cache: RenderCache) -> _Common:
    known = subject.outcomes.get(terms.key)
    if known is None:
        make = _overridden if terms.rules or subject.defined is not None else _as_declared
        known = subject.outcomes[terms.key] = make(inputs, subject, terms, cache)
    return known


def _as_declared(inputs: RenderInputs, subject: _Subject, terms: _Terms, cache: RenderCache) -> _Common:
    """Without override rules nothing can fail, so that the body is made when somebody looks at it."""
    template, declared, fleet = subject.template, subject.declared, inputs.fleet.settings.name
    policy, written = _owner(inputs, template.identity, terms, cache)

    def make() -> JsonObject:
        return mark(declared.with_counts(terms.replicas, terms.share), fleet, written)

    return _Common((template.gvk, template.identity, Unmade(make=make), template.source, policy, ()))


def _overridden(inputs: RenderInputs, subject: _Subject, terms: _Terms, cache: RenderCache) -> _Common:
    template, interpreter = subject.template, subject.interpreter
    declared = subject.declared.with_counts(terms.replicas, terms.share)
    body, names, trace, problems = apply_rules(declared, template.identity, terms.rules, interpreter)
    if body is None:
        return _Common(None, problems, trace)
    if touched := touched_ciphertext(template, declared, body, trace):
        return _Common(None, (*problems, *touched), trace)
    if may_add_fields(terms.rules):  # What must never be sent may be there again.
        body = strip_marks(interpreter.sanitize(body))
    judged = body if template.sealed is None else with_stand_ins(body)
    unfit = cache.check.problems(judged, template, terms.rules, trace, subject.defined)
    if unfit:
        return _Common(None, (*problems, *unfit), trace)
    policy, written = _owner(inputs, template.identity, terms, cache)
    added: tuple[AddedReference, ...] = ()
    if cache.check.may_refer(terms.rules):
        added = added_references(template.identity, declared, body, trace, interpreter)
    content = Content(tree=mark(body, inputs.fleet.settings.name, written))
    return _Common((template.gvk, template.identity, content, template.source, policy, names), problems, trace, added)
