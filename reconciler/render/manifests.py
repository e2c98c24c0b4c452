"""Templates as they are sent to one cluster: pruned, with the assigned replicas, overrides and our marks.

Each distinct outcome is rendered once, from the active revision of its clusters; clusters, replicas and policy are
those of HEAD (ADR 18). Source: Karmada: replicas, overrides, pruning; design#marks; design#jobs; design#string-data.
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
from reconciler.api.fleet import Template
from reconciler.api.plan import Manifest
from reconciler.api.problem import Problem
from reconciler.api.refs import Identity
from reconciler.api.rollout_progress import NothingWritten
from reconciler.containment import try_call
from reconciler.overrides import FieldOverride, apply_rules, are_quiet
from reconciler.placement import groups_of, tier_of
from reconciler.policy import ClaimTables, claim
from reconciler.render.body_check import not_there
from reconciler.render.declared_body import (
    Common,
    DeclaredBody,
    Groups,
    RenderSubject,
    RenderTables,
    RenderTerms,
    template_of,
)
from reconciler.render.outcome import fault_of, only_follows, outcome_of
from reconciler.templates import hook_of, images_of, is_run_of_hook, package_of


class Rendered(NamedTuple):
    """A manifest, or None with the problems that prevent it. `made_of`: what the manifest was made of."""

    manifest: Manifest | None
    problems: tuple[Problem, ...] = ()
    made_of: tuple[Common, DeclaredBody, RenderTerms] | None = None

    @property
    def trace(self) -> tuple[FieldOverride, ...]:
        """Return the override that set each field."""
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


def render_copy(tables: RenderTables, identity: Identity, cluster: str, replicas: int | None) -> Rendered:
    """Return the manifest of a bound template in one cluster with these replicas; it never raises."""
    rendered, fault = try_call(_render, tables, identity, cluster, replicas)
    return rendered or Rendered(None, (fault_of(tables.schedule.fleet, identity, fault, cluster),))


def _render(tables: RenderTables, identity: Identity, cluster: str, replicas: int | None) -> Rendered:
    subject = tables.subject(identity)
    terms = _terms(tables, subject, cluster, replicas)
    outcome = outcome_of(tables, subject, terms)
    problems = _problems(tables, outcome, cluster)
    if outcome.shared is None:
        return Rendered(None, problems)
    manifest = Manifest(cluster, *outcome.shared, cluster in subject.yielded)
    return Rendered(manifest, problems, (outcome, subject.declared, terms))


def render_in_force(tables: RenderTables, identity: Identity, cluster: str, replicas: int | None) -> Rendered:
    """Return the manifest of a template's active revision in a cluster; None without a problem: it stays as it is."""
    staging = tables.schedule.staging
    source = staging.of(identity, cluster) if staging is not None else None
    if isinstance(source, NothingWritten):
        return Rendered(None)
    if source is not None:
        if id(source) not in tables.older:
            head = tables.schedule.fleet
            named = replace(source, settings=head.settings, clusters=head.clusters)
            older = RenderTables(replace(tables.schedule, fleet=named), tables.fixed_completions)
            tables.older[id(source)] = source, older
        tables = tables.older[id(source)][1]
    return render_copy(tables, identity, cluster, replicas)


def render_all(tables: RenderTables, only: Collection[Identity] | None = None) -> Rendering:
    """Return every bound template, or those of `only`, on every cluster of its binding; it never raises."""
    bindings, fleet = tables.schedule.bindings, tables.schedule.fleet
    by_cluster: dict[str, list[Manifest]] = defaultdict(list)
    problems: list[Problem] = []
    for identity in sorted(bindings if only is None else bindings.keys() & only):
        binding = bindings[identity]
        subject, fault = try_call(tables.subject, identity)
        groups = _groups(tables, subject, binding) if subject is not None else ()
        if subject is None:
            problems += (fault_of(fleet, identity, fault, cluster) for cluster, _ in binding.targets)
        for terms, clusters in groups:
            assert subject is not None, "without one there are no groups"
            outcome, fault = try_call(outcome_of, tables, subject, terms)
            if outcome is None:
                problems += (fault_of(fleet, identity, fault, cluster) for cluster in clusters)
                continue
            if outcome.problems or outcome.added:
                problems += (problem for name in clusters for problem in _problems(tables, outcome, name))
            if outcome.shared is not None:
                gvk, _, content, source, policy, names = outcome.shared
                yielded = subject.yielded
                for cluster in clusters:
                    manifest = Manifest(cluster, gvk, identity, content, source, policy, names, cluster in yielded)
                    by_cluster[cluster].append(manifest)
    manifests = tuple(chain.from_iterable(by_cluster[cluster] for cluster in sorted(by_cluster)))
    return Rendering(manifests=manifests, problems=tuple(sorted(problems)))


def problems_in(tables: RenderTables) -> tuple[Problem, ...]:
    """Return the problems that `render_all` would report, without making manifests."""
    problems = (_problems(tables, outcome, cluster) for cluster, outcome in _not_quiet(tables))
    return tuple(sorted(chain.from_iterable(problems)))


def _problems(tables: RenderTables, outcome: Common, cluster: str) -> tuple[Problem, ...]:
    problems = outcome.problems and tuple(replace(problem, cluster=cluster) for problem in outcome.problems)
    return (*problems, *not_there(outcome.added, tables.schedule, cluster)) if outcome.added else problems


def managed_in(tables: RenderTables) -> Mapping[str, int]:
    """Return the number of manifests of `render_all` for each cluster: guards compare deletions with it."""
    managed = Counter(cluster for binding in tables.schedule.bindings.values() for cluster, _ in binding.targets)
    managed.subtract(cluster for cluster, outcome in _not_quiet(tables) if outcome.shared is None)
    return managed


def _not_quiet(tables: RenderTables) -> Iterator[tuple[str, Common]]:
    """Yield by cluster all renderings that overrides or the store's definitions may have problems with."""
    for identity, binding in tables.schedule.bindings.items():
        outcomes, fault = try_call(lambda *of: tuple(_outcomes(*of)), tables, identity, binding)
        if outcomes is None:
            for cluster, _ in binding.targets:
                yield cluster, Common(None, (fault_of(tables.schedule.fleet, identity, fault, cluster),))
        else:
            yield from outcomes


def _outcomes(tables: RenderTables, identity: Identity, binding: Binding) -> Iterator[tuple[str, Common]]:
    schedule = tables.schedule
    template = template_of(schedule.fleet, identity)
    assert template is not None, f"{identity} is bound and has no template"
    of_template = tables.overrides.rules_of(template)
    is_defined = identity[:2] in schedule.definitions
    quiet = {id(()): not is_defined}
    for cluster, replicas in binding.targets if of_template or is_defined else ():
        rules = tables.overrides.rules_on(of_template, cluster)
        is_quiet = quiet.get(id(rules))
        if is_quiet is None:
            is_plain = not is_defined and template.sealed is None
            is_quiet = is_plain and are_quiet(rules, images_of(template, schedule.interpreters))
            quiet[id(rules)] = is_quiet
        if not is_quiet:
            subject = tables.subject(identity)
            yield cluster, outcome_of(tables, subject, _terms(tables, subject, cluster, replicas))


def _groups(tables: RenderTables, subject: RenderSubject, binding: Binding) -> Groups:
    """Return the targets of a binding by their terms. Templates that are placed and overridden alike share them."""
    if subject.completions or binding.identity.kind == "Namespace" or is_run_of_hook(subject.template):
        return _grouped(tables, subject, binding)
    same = (id(binding.targets), id(subject.rules))
    known = tables.groups_of_same.get(same)
    if known is None:
        key = (binding.targets, id(subject.rules))
        known = tables.groups.get(key)
        if known is None:
            known = tables.groups[key] = _grouped(tables, subject, binding)
        tables.groups_of_same[same] = known
    return known


def _grouped(tables: RenderTables, subject: RenderSubject, binding: Binding) -> Groups:
    groups: dict[tuple[int | None, int | None, int, bool, str], tuple[RenderTerms, list[str]]] = {}
    for cluster, replicas in binding.targets:
        terms = _terms(tables, subject, cluster, replicas)
        groups.setdefault(terms.key, (terms, []))[1].append(cluster)
    return tuple([(terms, tuple(clusters)) for terms, clusters in groups.values()])


def _terms(tables: RenderTables, subject: RenderSubject, cluster: str, replicas: int | None) -> RenderTerms:
    identity = subject.template.identity
    share = subject.completions.get(cluster) if subject.completions else None
    rules = tables.overrides.rules_on(subject.rules, cluster) if subject.rules else ()
    follows = identity.kind == "Namespace" and only_follows(tables.schedule.bindings.get(identity), cluster)
    release = _release_of(tables, subject.template, cluster)
    key = (replicas, share, id(rules), follows, release)
    return RenderTerms(replicas, share, rules, follows, release, key)


_FIRST: Final = "first"
"""The release of a hook that runs with the first one alone."""


def _release_of(tables: RenderTables, template: Template, cluster: str) -> str:
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
    known = tables.releases.get(key)
    if known is None:
        known = tables.releases[key] = _release_in(tables, *key)
    return known


def _release_in(tables: RenderTables, package: str, cluster: str) -> str:
    members = tables.packages.get(package)
    if members is None:
        if not tables.by_package:
            for identity, template in tables.schedule.fleet.templates.items():
                tables.by_package.setdefault(package_of(template.source.path), {})[identity] = template
        claims, mine = ClaimTables(), tables.by_package[package]
        claim(replace(tables.schedule.fleet, templates=mine), claims)
        members = tables.packages[package] = tuple((mine[each], claims.policies.rows.get(each)) for each in mine)
    document = tables.schedule.fleet.clusters[cluster]
    parts = {
        str(template.identity): _member_digest(tables, template, cluster)
        for template, policy in members
        if (
            policy is None
            or any(tier_of(document, group)[0] is not None for group in groups_of(policy, by_capacity=True))
        )
    }
    return digest_of(parts)


def _member_digest(tables: RenderTables, template: Template, cluster: str) -> str:
    """Return the digest of a template's body in a cluster, with one replica."""
    subject = tables.subject(template.identity)
    rules = tables.overrides.rules_on(subject.rules, cluster) if subject.rules else ()
    key = (template.identity, id(rules))
    known = tables.digests.get(key)
    if known is None:
        body = subject.declared.with_counts(1 if subject.declared.interpreter.replicas_path else None, None)
        if rules:
            body = apply_rules(body, template.identity, rules, subject.declared.interpreter).body or body
        known = tables.digests[key] = digest_of(body)
    return known
