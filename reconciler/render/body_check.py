"""Validation of rendered objects by the rules of templates, only if an override may have broken one.

Templates were validated when parsed. Whether an overrider can do harm is checked once for each rule and kind; results
are validated as a whole, and objects of a kind that the store defines as rendered. Source: design#judged-alike.
References that overrides add are not followed (as in Karmada), but told of if nothing brings their target.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec.structs import replace

from reconciler.api.content import Json, JsonObject, Step
from reconciler.api.demand import DependencyRef
from reconciler.api.fleet import Template
from reconciler.api.policies import MapOverrider, OverrideOperator, PatchOperation
from reconciler.api.problem import Document, Problem, Severity, dotted
from reconciler.api.refs import GVK, Identity
from reconciler.documents import Findings, Schema, builtin_schema, may_not_fit, pointer_tokens
from reconciler.overrides import FieldOverride, SelectedRule
from reconciler.render.declared_body import RenderSubject, RenderTables, RenderTerms
from reconciler.scheduler import Schedule, may_be_missing
from reconciler.templates import has_rules_of_its_own, judge, may_be_refused


def body_problems(
    tables: RenderTables,
    body: JsonObject,
    template: Template,
    rules: Iterable[SelectedRule],
    trace: Iterable[FieldOverride],
    defined: Schema | None,
) -> tuple[Problem, ...]:
    """Return the problems of a rendered body, each with the override to blame; the template's own are known."""
    schema = defined or builtin_schema(template.gvk)
    if defined is None and not _are_doubtful(tables, rules, template.gvk, schema):
        return ()
    findings = Findings(Document(path="", line=0, body=body, locate=lambda steps: 0))
    judge(template.gvk, body, findings, defined)
    written = {override.path: override for override in trace}
    # A template of a built-in kind passed when it was parsed: an override is to blame.
    last = next(reversed(written.values()), None) if defined is None else None
    problems = (
        _problem(problem, steps, template, written, last)
        for problem, steps in zip(findings.problems, findings.places, strict=True)
    )
    return tuple(problem for problem in problems if problem is not None)


def _are_doubtful(tables: RenderTables, rules: Iterable[SelectedRule], gvk: GVK, schema: Schema | None) -> bool:
    """Return whether a rule could turn a valid object into an invalid one."""
    for rule in rules:
        key = (rule.number, gvk)
        if key not in tables.doubtful:
            entries = (
                (field, *entry)
                for _, field, overrider in rule.steps
                if isinstance(overrider, MapOverrider)
                for entry in overrider.values
            )
            tables.doubtful[key] = any(may_be_refused(*entry) for entry in entries) or any(
                _may_break(operation, gvk, schema) for operation in rule.rule.overriders.plaintext
            )
        if tables.doubtful[key]:
            return True
    return False


def _may_break(operation: PatchOperation, gvk: GVK, schema: Schema | None) -> bool:
    """Return whether a patch operation could break a rule. Texts for images and variables, and counts, break none."""
    if schema is not None and may_not_fit(schema.root, operation):
        return True
    tokens = pointer_tokens(operation.path) or ()
    value = operation.value
    if tokens[:1] == ("metadata",):
        is_entry = len(tokens) == 3 and tokens[1] in ("labels", "annotations")
        is_removed = operation.operator is OverrideOperator.REMOVE
        return not is_removed and (not is_entry or may_be_refused(tokens[1], tokens[2], value))
    if not has_rules_of_its_own(gvk.group_kind):
        return False
    is_text = isinstance(value, str) and tokens[-1:] in (("image",), ("value",))
    is_count = tokens == ("spec", "replicas") and isinstance(value, int) and 0 <= value < 2**31
    return operation.operator is OverrideOperator.REMOVE or not (is_text or is_count)


def _problem(
    problem: Problem,
    steps: tuple[Step, ...],
    template: Template,
    written: Mapping[str, FieldOverride],
    last: FieldOverride | None,
) -> Problem | None:
    """Return the problem at the override that wrote the field, else `last`; None: the template has it already."""
    where = dotted(steps)
    above = (dotted(steps[:depth]) for depth in range(len(steps), -1, -1))
    override = next((written[path] for path in above if path in written), None)
    if override is None and problem.severity is not Severity.ERROR:
        return None
    override = override or last
    if override is None:
        message = f"{template.identity}: {problem.message}"
        return replace(problem, source=template.source, path=where, message=message)
    message = f"makes {template.identity} unfit: {where}: {problem.message}"
    return caused_by(override, problem.code, message, severity=problem.severity)


def caused_by(
    override: FieldOverride, code: str, message: str, *, severity: Severity = Severity.ERROR, cluster: str = ""
) -> Problem:
    """Return a problem that an override causes. `message`: what it does, after its name."""
    return Problem(
        source=override.source,
        path=f"spec.overrideRules[{override.rule}].overriders.{override.overrider}",
        code=code,
        message=f"{override.policy} rule {override.rule} {override.overrider} {message}",
        severity=severity,
        cluster=cluster,
    )


_REFERRING: Final = frozenset({
    "backendRef", "backendRefs", "caCertificateRefs", "certificateRefs", "claimName", "clientCertificateRef",
    "configMap", "configMapKeyRef", "configMapRef", "extensionRef", "generatorRef", "imagePullSecrets", "issuerRef",
    "keystores", "nodePublishSecretRef", "parametersRef", "parentRefs", "provider", "secret", "secretKeyRef",
    "secretName", "secretProviderClass", "secretRef", "secretStoreRef", "serviceAccount", "serviceAccountName",
    "storeRef", "vaultAuthRef", "vaultConnectionRef",
})  # fmt: skip
"""Fields under which something is referred to by its name."""


def may_refer(operation: PatchOperation) -> bool:
    """Return whether an operation could add a reference: checked before any body is read."""
    if operation.operator is OverrideOperator.REMOVE:
        return False
    tokens = pointer_tokens(operation.path) or ()
    return not _REFERRING.isdisjoint(tokens) or not _REFERRING.isdisjoint(_keys(operation.value))


def added_references(
    tables: RenderTables, subject: RenderSubject, terms: RenderTerms, declared: JsonObject, body: JsonObject,
    trace: Iterable[FieldOverride],
) -> tuple[tuple[Identity, DependencyRef, FieldOverride], ...]:  # fmt: skip
    """Return the references of a rendered body that its template lacks, by target, with the override that adds them."""
    for rule in terms.rules:
        if rule.number not in tables.referring:
            tables.referring[rule.number] = any(map(may_refer, rule.rule.overriders.plaintext))
    if not any(tables.referring[rule.number] for rule in terms.rules):
        return ()
    owner, interpreter = subject.template.identity, subject.declared.interpreter
    known = {ref.identity for ref in interpreter.dependencies(declared)}
    added = [ref for ref in interpreter.dependencies(body) if ref.identity not in known and not may_be_missing(ref)]
    last_first = list(trace)[::-1]
    # Of the overrides that wrote the field or something above it, the last.
    writers = ((ref, [one for one in last_first if f"{ref.path}.".startswith((f"{one.path}.", f"{one.path}["))])
               for ref in added)  # fmt: skip
    return tuple((owner, ref, overrides[0]) for ref, overrides in writers if overrides)


def not_there(
    references: Iterable[tuple[Identity, DependencyRef, FieldOverride]], schedule: Schedule, cluster: str
) -> Iterator[Problem]:
    """Yield a warning for each reference to something that neither goes to the cluster nor is made there."""
    for owner, ref, override in references:
        makers, bindings = schedule.makers.of.get(ref.identity, ()), schedule.bindings
        sources = (ref.identity, *(maker.identity for maker in makers if maker.is_whole))
        if any(cluster in bindings[source].clusters for source in sources if source in bindings):
            continue
        message = (
            f"makes {owner} refer to {ref.identity}, which does not go to that cluster: what an override adds does not "
            "travel with the object; let a policy bring it there, or make sure that the cluster has it"
        )
        yield caused_by(override, "reference-does-not-travel", message, severity=Severity.WARNING, cluster=cluster)


def _keys(value: Json) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, below in value.items():
            yield key
            yield from _keys(below)
    elif isinstance(value, list):
        for item in value:
            yield from _keys(item)
