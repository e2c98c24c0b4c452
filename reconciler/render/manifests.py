"""Templates as they are sent to one cluster: pruned, with the assigned replicas, overrides and our marks.

Each distinct outcome (template, replicas, rules, terms of ownership) is rendered once and shared by all clusters that
have it.

Source: Karmada: replicas first, then overrides, then pruning; design#marks; design#jobs; design#string-data.

Each copy rendered from the active revision of its cluster.

Source: ADR 18: bodies and overrides are those of the revision; clusters, replicas and policy are those of HEAD.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from itertools import chain
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from reconciler.api.binding import Binding
from reconciler.api.content import digest_of
from reconciler.api.fleet import Fleet, Template
from reconciler.api.plan import Manifest
from reconciler.api.problem import Problem
from reconciler.api.refs import Identity
from reconciler.api.rollout_progress import Stays
from reconciler.containment import try_call
from reconciler.overrides import FieldOverride, OverrideIndex, apply_rules, are_quiet
from reconciler.placement import groups_of, tier_of
from reconciler.policy import ClaimTables, claim
from reconciler.render.body_check import not_there
from reconciler.render.declared_body import (
    Common,
    DeclaredBody,
    Groups,
    RenderCache,
    RenderInputs,
    RenderSubject,
    RenderTerms,
    known_subject,
    template_of,
)
from reconciler.render.outcome import fault_of, only_follows, outcome_of
from reconciler.render.signatures import render_inputs
from reconciler.scheduler import Schedule
from reconciler.templates import hook_of, images_of, is_run_of_hook, package_of


class Rendered(NamedTuple):
    """A manifest, or None with the problems that prevent it. `made_of`: what the manifest was made of."""

    manifest: Manifest | None
    problems: tuple[Problem, ...] = ()
    made_of: tuple[Common, DeclaredBody, RenderTerms] | None = None

    @property
    def trace(self) -> tuple[FieldOverride, ...]:
        """The override that set each field."""
        if self.made_of is None:
            return ()
        outcome, declared, terms = self.made_of
        if outcome.trace is not None or not terms.rules:
            return outcome.trace or ()
        body = declared.with_counts(terms.replicas, terms.share)
        return apply_rules(body, declared.template.identity, terms.rules, declared.interpreter).trace


class Rendering(Struct, frozen=True, kw_only=True):
    """All manifests in the order of cluster and identity."""

    manifests: tuple[Manifest, ...] = ()
    problems: tuple[Problem, ...] = ()


def render_copy(
    inputs: RenderInputs, identity: Identity, cluster: str, replicas: int | None, cache: RenderCache
) -> Rendered:
    """The manifest of a bound template in one cluster with this many replicas assigned to it; it never raises."""
    rendered, fault = try_call(_render, inputs, identity, cluster, replicas, cache)
    return rendered or Rendered(None, (fault_of(inputs.fleet, identity, fault, cluster),))


def _render(
    inputs: RenderInputs, identity: Identity, cluster: str, replicas: int | None, cache: RenderCache
) -> Rendered:
    subject = known_subject(inputs, identity, cache)
    terms = _terms(inputs, subject, cluster, replicas, cache)
    outcome = outcome_of(inputs, subject, terms, cache)
    problems = _problems(inputs, outcome, cluster)
    if outcome.shared is None:
        return Rendered(None, problems)
    manifest = Manifest(cluster, *outcome.shared, cluster in subject.yielded)
    return Rendered(manifest, problems, (outcome, subject.declared, terms))


def render_all(
    inputs: RenderInputs, cache: RenderCache | None = None, only: Collection[Identity] | None = None
) -> Rendering:
    """Every bound template, or those of `only`, on every cluster of its binding; it never raises."""
    cache = cache or RenderCache()
    by_cluster: dict[str, list[Manifest]] = defaultdict(list)
    problems: list[Problem] = []
    for identity in sorted(inputs.bindings if only is None else inputs.bindings.keys() & only):
        binding = inputs.bindings[identity]
        subject, fault = try_call(known_subject, inputs, identity, cache)
        groups = _groups(inputs, subject, binding, cache) if subject is not None else ()
        if subject is None:
            problems += (fault_of(inputs.fleet, identity, fault, cluster) for cluster, _ in binding.targets)
        for terms, clusters in groups:
            assert subject is not None, "without one there are no groups"
            outcome, fault = try_call(outcome_of, inputs, subject, terms, cache)
            if outcome is None:
                problems += (fault_of(inputs.fleet, identity, fault, cluster) for cluster in clusters)
                continue
            if outcome.problems or outcome.added:
                problems += (problem for name in clusters for problem in _problems(inputs, outcome, name))
            if outcome.shared is not None:
                gvk, _, content, source, policy, names = outcome.shared
                yielded = subject.yielded
                for cluster in clusters:
                    manifest = Manifest(cluster, gvk, identity, content, source, policy, names, cluster in yielded)
                    by_cluster[cluster].append(manifest)
    manifests = tuple(chain.from_iterable(by_cluster[cluster] for cluster in sorted(by_cluster)))
    return Rendering(manifests=manifests, problems=tuple(sorted(problems)))


def problems_in(inputs: RenderInputs, cache: RenderCache) -> tuple[Problem, ...]:
    """The problems that `render_all` would report, without making manifests."""
    found = (_problems(inputs, outcome, cluster) for cluster, outcome in _not_quiet(inputs, cache))
    return tuple(sorted(chain.from_iterable(found)))


def _problems(inputs: RenderInputs, outcome: Common, cluster: str) -> tuple[Problem, ...]:
    """Return the problems of a rendering in one cluster."""
    found = outcome.problems and tuple(replace(problem, cluster=cluster) for problem in outcome.problems)
    return (*found, *not_there(outcome.added, inputs.bindings, inputs.makers, cluster)) if outcome.added else found


def managed_in(inputs: RenderInputs, cache: RenderCache) -> Mapping[str, int]:
    """Return the number of manifests of `render_all` for each cluster: guards compare deletions with it."""
    managed = Counter(cluster for binding in inputs.bindings.values() for cluster, _ in binding.targets)
    managed.subtract(cluster for cluster, outcome in _not_quiet(inputs, cache) if outcome.shared is None)
    return managed


def _not_quiet(inputs: RenderInputs, cache: RenderCache) -> Iterator[tuple[str, Common]]:
    """Yield all renderings that overrides or a definition of the store may have problems with, by cluster.

    An object that cannot be rendered has problems and no manifest.
    """
    for identity, binding in inputs.bindings.items():
        found, fault = try_call(lambda *of: tuple(_outcomes(*of)), inputs, identity, binding, cache)
        if found is None:
            for cluster, _ in binding.targets:
                yield cluster, Common(None, (fault_of(inputs.fleet, identity, fault, cluster),))
        else:
            yield from found


def _outcomes(
    inputs: RenderInputs, identity: Identity, binding: Binding, cache: RenderCache
) -> Iterator[tuple[str, Common]]:
    template = template_of(inputs.fleet, identity)
    assert template is not None, f"{identity} is bound and has no template"
    of_template = inputs.overrides.rules_of(template)
    is_defined = bool(inputs.definitions) and identity[:2] in inputs.definitions
    quiet = {id(()): not is_defined}
    for cluster, replicas in binding.targets if of_template or is_defined else ():
        rules = inputs.overrides.rules_on(of_template, cluster)
        is_quiet = quiet.get(id(rules))
        if is_quiet is None:
            is_plain = not is_defined and template.sealed is None
            is_quiet = is_plain and are_quiet(rules, images_of(template, inputs.interpreters))
            quiet[id(rules)] = is_quiet
        if not is_quiet:
            subject = known_subject(inputs, identity, cache)
            terms = _terms(inputs, subject, cluster, replicas, cache)
            yield cluster, outcome_of(inputs, subject, terms, cache)


def _groups(inputs: RenderInputs, subject: RenderSubject, binding: Binding, cache: RenderCache) -> Groups:
    """The targets of a binding by their terms. Templates that are placed and overridden alike share them."""
    if subject.completions or binding.identity.kind == "Namespace" or is_run_of_hook(subject.template):
        return _grouped(inputs, subject, binding, cache)
    same = (id(binding.targets), id(subject.rules))
    known = cache.groups_of_same.get(same)
    if known is None:
        key = (binding.targets, id(subject.rules))
        known = cache.groups.get(key)
        if known is None:
            known = cache.groups[key] = _grouped(inputs, subject, binding, cache)
        cache.groups_of_same[same] = known
    return known


def _grouped(inputs: RenderInputs, subject: RenderSubject, binding: Binding, cache: RenderCache) -> Groups:
    groups: dict[tuple[int | None, int | None, int, bool, str], tuple[RenderTerms, list[str]]] = {}
    for cluster, replicas in binding.targets:
        terms = _terms(inputs, subject, cluster, replicas, cache)
        groups.setdefault(terms.key, (terms, []))[1].append(cluster)
    return tuple([(terms, tuple(clusters)) for terms, clusters in groups.values()])


def _terms(
    inputs: RenderInputs, subject: RenderSubject, cluster: str, replicas: int | None, cache: RenderCache
) -> RenderTerms:
    identity = subject.template.identity
    share = subject.completions.get(cluster) if subject.completions else None
    rules = inputs.overrides.rules_on(subject.rules, cluster) if subject.rules else ()
    follows = identity.kind == "Namespace" and only_follows(inputs.bindings.get(identity), cluster)
    release = _release_of(inputs, cache, subject.template, cluster)
    key = (replicas, share, id(rules), follows, release)
    return RenderTerms(replicas, share, rules, follows, release, key)


_FIRST: Final = "first"
"""The release of a hook that runs with the first one alone."""


def _release_of(inputs: RenderInputs, cache: RenderCache, template: Template, cluster: str) -> str:
    """Return the release of a hook in a cluster; empty: the template is no hook.

    It is a digest of what the templates of its package are there. Replicas do not count, nor does where ticks place
    them: only the store makes a release. Source: ADR 26.
    """
    hook = hook_of(template.annotations)
    if hook is None or not is_run_of_hook(template):
        return ""
    if hook.is_first_only:
        return _FIRST
    key = (package_of(template.source.path), cluster)
    known = cache.releases.get(key)
    if known is None:
        known = cache.releases[key] = _release_in(inputs, cache, *key)
    return known


def _release_in(inputs: RenderInputs, cache: RenderCache, package: str, cluster: str) -> str:
    members = cache.packages.get(package)
    if members is None:
        if not cache.by_package:
            for identity, template in inputs.fleet.templates.items():
                cache.by_package.setdefault(package_of(template.source.path), {})[identity] = template
        tables, mine = ClaimTables(), cache.by_package[package]
        claim(replace(inputs.fleet, templates=mine), tables)
        members = cache.packages[package] = tuple((mine[each], tables.policies.rows.get(each)) for each in mine)
    document = inputs.fleet.clusters[cluster]
    parts = {
        str(template.identity): _member_digest(inputs, cache, template, cluster)
        for template, policy in members
        if (
            policy is None
            or any(tier_of(document, group)[0] is not None for group in groups_of(policy, by_capacity=True))
        )
    }
    return digest_of(parts)


def _member_digest(inputs: RenderInputs, cache: RenderCache, template: Template, cluster: str) -> str:
    """Return the digest of a template's body in a cluster, with one replica."""
    subject = known_subject(inputs, template.identity, cache)
    rules = inputs.overrides.rules_on(subject.rules, cluster) if subject.rules else ()
    key = (template.identity, id(rules))
    known = cache.digests.get(key)
    if known is None:
        body = subject.declared.with_counts(1 if subject.interpreter.replicas_path else None, None)
        if rules:
            body = apply_rules(body, template.identity, rules, subject.interpreter).body or body
        known = cache.digests[key] = digest_of(body)
    return known


_NOTHING = Rendered(None)


class Renderer:
    """Renders the copies of one schedule. The results of each revision are kept by itself."""

    __slots__ = ("_older", "_schedule", "head")

    def __init__(
        self, schedule: Schedule, fixed_completions: Mapping[Identity, Mapping[str, int]] | None = None
    ) -> None:
        """`fixed_completions`: by cluster the completions that live parts of divided Jobs were created with."""
        self._schedule = schedule
        self.head = (render_inputs(schedule, fixed_completions), RenderCache())
        self._older: dict[int, tuple[Fleet, RenderInputs, RenderCache]] = {}
        """By the identity of the revision's fleet, which is kept here."""

    def __call__(self, identity: Identity, cluster: str, replicas: int | None) -> Rendered:
        """The manifest of a bound template in a cluster. None without a problem: it stays as it is there."""
        staging = self._schedule.staging
        source = staging.of(identity, cluster) if staging is not None else None
        if isinstance(source, Stays):
            return _NOTHING
        inputs, cache = self.head if source is None else self._at(source)
        return render_copy(inputs, identity, cluster, replicas, cache)

    def _at(self, fleet: Fleet) -> tuple[RenderInputs, RenderCache]:
        known = self._older.get(id(fleet))
        if known is None:
            head = self.head[0]
            named = replace(fleet, settings=head.fleet.settings, clusters=head.fleet.clusters)
            inputs = replace(head, fleet=named, overrides=OverrideIndex(fleet.overrides, head.fleet.clusters))
            known = self._older[id(fleet)] = (fleet, inputs, RenderCache())
        return known[1:]
