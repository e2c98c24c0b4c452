"""The rendering of a template on clusters with the same terms: made once, and shared by all of them.

Source: Karmada: replicas first, then overrides, then pruning; design#marks; design#string-data.
"""

from __future__ import annotations

from functools import partial

from reconciler.model.binding import Binding
from reconciler.model.content import Content, Unmade
from reconciler.model.problem import Severity
from reconciler.model.refs import PolicyRef
from reconciler.model.tree import JsonObject
from reconciler.stages.dependencies import NAMESPACE_FOLLOWS
from reconciler.stages.overrides import (
    FieldOverride,
    apply_quiet_rules,
    apply_rules,
    changing_quietly,
    may_add_fields,
)
from reconciler.stages.ownership import Owner, mark, strip_marks, written_terms
from reconciler.stages.rendering.declared_body import DeclaredBody
from reconciler.stages.rendering.override_references import AddedReference, added_references
from reconciler.stages.rendering.revealed import touched_ciphertext
from reconciler.stages.rendering.subject import Common, RenderCache, RenderInputs, Subject, Terms
from reconciler.stages.sealed import with_stand_ins


def outcome_of(inputs: RenderInputs, subject: Subject, terms: Terms, cache: RenderCache) -> Common:
    """Return the rendering on every cluster with these terms. Exceptions of an installed interpreter pass through."""
    known = subject.outcomes.get(terms.key)
    if known is None:
        is_plain = not terms.rules and subject.defined is None
        names = () if is_plain else changing_quietly(terms.rules, subject.images)
        if names is not None:
            known = _unmade(inputs, subject, terms, names, cache)
        else:
            known = _overridden(inputs, subject, terms, cache)
        subject.outcomes[terms.key] = known
    return known


def _unmade(inputs: RenderInputs, subject: Subject, terms: Terms, names: tuple[str, ...], cache: RenderCache) -> Common:
    """Return a lazy rendering: it cannot fail or cause remarks, so the body is made on first use.

    `names`: of the rules that change something.
    """
    template = subject.template
    policy, written = _owner(subject, terms, cache)
    content = Unmade(make=partial(_made, subject.declared, terms, inputs.fleet.settings.name, written))
    return Common((template.gvk, template.identity, content, template.source, policy, names), trace=None)


def _made(declared: DeclaredBody, terms: Terms, fleet: str, written: str) -> JsonObject:
    body = declared.with_counts(terms.replicas, terms.share)
    return mark(apply_quiet_rules(body, terms.rules, declared.interpreter), fleet, written)


def trace_of(outcome: Common, declared: DeclaredBody, terms: Terms) -> tuple[FieldOverride, ...]:
    """Which override set which field."""
    if outcome.trace is not None or not terms.rules:
        return outcome.trace or ()
    body = declared.with_counts(terms.replicas, terms.share)
    return apply_rules(body, declared.template.identity, terms.rules, declared.interpreter).trace


def _overridden(inputs: RenderInputs, subject: Subject, terms: Terms, cache: RenderCache) -> Common:
    template, interpreter = subject.template, subject.interpreter
    declared = subject.declared.with_counts(terms.replicas, terms.share)
    body, names, trace, problems = apply_rules(declared, template.identity, terms.rules, interpreter)
    if body is None:
        return Common(None, problems, trace)
    if touched := touched_ciphertext(template, declared, body, trace):
        return Common(None, (*problems, *touched), trace)
    if may_add_fields(terms.rules):  # What must never be sent may be there again.
        body = strip_marks(interpreter.sanitize(body))
    judged = body if template.sealed is None else with_stand_ins(body)
    unfit = cache.check.problems(judged, template, terms.rules, trace, subject.defined)
    problems = (*problems, *unfit)
    if any(problem.severity is Severity.ERROR for problem in unfit):
        return Common(None, problems, trace)
    policy, written = _owner(subject, terms, cache)
    added: tuple[AddedReference, ...] = ()
    if cache.check.may_refer(terms.rules):
        added = added_references(template.identity, declared, body, trace, interpreter)
    content = Content(tree=mark(body, inputs.fleet.settings.name, written))
    return Common((template.gvk, template.identity, content, template.source, policy, names), problems, trace, added)


def _owner(subject: Subject, terms: Terms, cache: RenderCache) -> tuple[PolicyRef | None, str]:
    """Return the owning policy, and the terms in the marks.

    No policy for a Namespace that only follows its objects.
    """
    policy = subject.policy
    key = (id(policy), terms.replicas, subject.is_dependency, terms.follows)
    known = cache.owners.get(key)
    if known is None:
        owner = Owner(policy=None)
        if policy is not None and not terms.follows:
            owner = Owner(policy.ref, policy.flavor, policy.keep, terms.replicas, subject.is_dependency)
        known = cache.owners[key] = (owner.policy, written_terms(owner))
    return known


def only_follows(binding: Binding | None, cluster: str) -> bool:
    """Return whether a Namespace is in a cluster only for its objects."""
    reason = binding.cluster_reasons.get(cluster) if binding else None
    return reason is not None and reason.rule == NAMESPACE_FOLLOWS
