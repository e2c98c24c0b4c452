"""The rendering of a template on clusters with the same terms: made once, and shared by all of them.

Source: Karmada: replicas first, then overrides, then pruning; design#marks; design#string-data.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from reconciler.api.binding import Binding
from reconciler.api.content import Content, JsonObject, dig
from reconciler.api.fleet import Fleet, Template
from reconciler.api.problem import NOWHERE, Problem, Severity
from reconciler.api.refs import Identity, PolicyRef
from reconciler.containment import internal_error
from reconciler.overrides import FieldOverride, apply_quiet_rules, apply_rules, changing_quietly, may_add_fields
from reconciler.ownership import DirectiveEffect, OwnershipRecord, has_effect, mark, strip_marks, written_terms
from reconciler.render.body_check import added_references, body_problems, caused_by
from reconciler.render.declared_body import Common, DeclaredBody, RenderSubject, RenderTables, RenderTerms
from reconciler.scheduler import NAMESPACE_FOLLOWS
from reconciler.secrets import disturbed, with_stand_ins

OVERRIDDEN_CIPHERTEXT: Final = "sops-override"


class LazyContent(Content, eq=False, array_like=True):
    """Content that is made when first read: most of a fleet is scheduled and neither printed nor compared."""

    source: tuple[DeclaredBody, RenderTerms, str, str] | None = None

    def body(self) -> JsonObject:
        """Return the tree, made now if need be."""
        if self.tree is None:
            source = self.source
            # It has no source any more when another thread was quicker, and has put the tree in its place before.
            if source is not None:
                declared, terms, fleet, written = source
                body = declared.with_counts(terms.replicas, terms.share)
                body = apply_quiet_rules(body, terms.rules, declared.interpreter)
                self.tree = mark(body, fleet, written, terms.release)
            self.source = None
        assert self.tree is not None, "content is made of something"
        return self.tree


def outcome_of(tables: RenderTables, subject: RenderSubject, terms: RenderTerms) -> Common:
    """Return the rendering on every cluster with these terms. Exceptions of an installed interpreter pass through."""
    known = subject.outcomes.get(terms.key)
    if known is None:
        is_plain = not terms.rules and subject.defined is None
        names = () if is_plain else changing_quietly(terms.rules, subject.images)
        if names is not None:
            # A lazy rendering: it cannot fail or cause remarks, so the body is made on first use. `names`: of the rules
            # that change something.
            template = subject.template
            # Rules that may add a directive are never quiet.
            policy, written = _owner(tables, subject, terms, template.annotations)
            content = LazyContent(source=(subject.declared, terms, tables.schedule.fleet.settings.name, written))
            known = Common((template.gvk, template.identity, content, template.source, policy, names), trace=None)
        else:
            known = _overridden(tables, subject, terms)
        subject.outcomes[terms.key] = known
    return known


def _overridden(tables: RenderTables, subject: RenderSubject, terms: RenderTerms) -> Common:
    template, interpreter = subject.template, subject.declared.interpreter
    declared = subject.declared.with_counts(terms.replicas, terms.share)
    body, names, trace, problems = apply_rules(declared, template.identity, terms.rules, interpreter)
    if body is None:
        return Common(None, problems, trace)
    if touched := touched_ciphertext(template, declared, body, trace):
        return Common(None, (*problems, *touched), trace)
    if may_add_fields(terms.rules):  # What must never be sent may be there again.
        body = strip_marks(interpreter.sanitize(body))
    judged = body if template.sealed is None else with_stand_ins(body)
    unfit = body_problems(tables, judged, template, terms.rules, trace, subject.defined)
    problems = (*problems, *unfit)
    if any(problem.severity is Severity.ERROR for problem in unfit):
        return Common(None, problems, trace)
    policy, written = _owner(tables, subject, terms, dig(body, "metadata", "annotations") or {})
    added = added_references(tables, subject, terms, declared, body, trace)
    content = Content(tree=mark(body, tables.schedule.fleet.settings.name, written, terms.release))
    return Common((template.gvk, template.identity, content, template.source, policy, names), problems, trace, added)


def _owner(
    tables: RenderTables, subject: RenderSubject, terms: RenderTerms, annotations: Mapping[str, str]
) -> tuple[PolicyRef | None, str]:
    """Return the owning policy (None for a Namespace that only follows its objects), and the terms in the marks."""
    policy = subject.policy
    keeps = has_effect({"annotations": annotations}, DirectiveEffect.KEEP)
    key = (id(policy), terms.replicas, subject.is_dependency, terms.follows, keeps)
    known = tables.owners.get(key)
    if known is None:
        owner = OwnershipRecord(policy=None)
        if policy is not None and not terms.follows:
            owner = OwnershipRecord(
                policy.ref, policy.flavor, policy.keep or keeps, terms.replicas, subject.is_dependency
            )
        known = tables.owners[key] = (owner.policy, written_terms(owner))
    return known


def only_follows(binding: Binding | None, cluster: str) -> bool:
    """Return whether a Namespace is in a cluster only for its objects."""
    reason = binding.cluster_reasons.get(cluster) if binding else None
    return reason is not None and reason.rule == NAMESPACE_FOLLOWS


def fault_of(fleet: Fleet, identity: Identity, fault: Exception | None, cluster: str = "") -> Problem:
    """Return the problem, at the template if there is one. `cluster` is empty when it concerns all of them."""
    assert fault is not None, "without a fault there is nothing to tell"
    template = fleet.templates.get(identity)
    source = template.source if template is not None else NOWHERE
    consequence = "it is left as it is there" if cluster else "it is left as it is in the clusters"
    return internal_error(fault, source, str(identity), consequence, cluster)


def touched_ciphertext(
    template: Template, declared: JsonObject, body: JsonObject, trace: Iterable[FieldOverride]
) -> tuple[Problem, ...]:
    """Return the problem of overrides that change, move or remove an encrypted value, which nobody could review."""
    leaf = disturbed(declared, body) if template.sealed is not None else None
    if leaf is None:
        return ()
    path = ".".join(leaf[0])
    written = list(trace)
    override = next((one for one in written if path.startswith(one.path) or one.path.startswith(path)), None)
    override = override or (written[-1] if written else None)
    if override is None:
        message = f"{template.identity}: an override changes {path}, which is encrypted"
        return (Problem(source=template.source, path=path, code=OVERRIDDEN_CIPHERTEXT, message=message),)
    message = f"changes {path} of {template.identity}, which is encrypted; leave it out of the override"
    return (caused_by(override, OVERRIDDEN_CIPHERTEXT, message),)
