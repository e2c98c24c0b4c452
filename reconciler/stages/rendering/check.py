"""Whether what is rendered fits the schema of its kind, asked only where it may not.

A template of a built-in kind was judged when it was parsed, and names, images, labels and commands are texts that fit
anywhere. So only the operations of plaintext overriders can do harm there, which is asked once for each rule and kind;
one that could has its outcome judged as a whole, since a later operation may have mended it. Objects of a kind whose
definition is in the store are judged as they are rendered.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from reconciler.model.fleet import Template
from reconciler.model.problem import Problem, dotted
from reconciler.model.refs import GVK
from reconciler.model.tree import JsonObject
from reconciler.stages.overrides import FieldOverride, SelectedRule
from reconciler.stages.rendering.override_references import may_refer
from reconciler.stages.schemas import Schema, SchemaFault, body_faults, builtin_schema, may_not_fit, schema_of_crd


class RenderCheck:
    """What is known of kinds and rules of one rendering; it never changes an answer."""

    __slots__ = ("_defined", "_doubtful", "_referring")

    def __init__(self) -> None:
        self._defined: dict[GVK, Schema | None] = {}
        self._doubtful: dict[tuple[int, GVK], bool] = {}
        self._referring: dict[int, bool] = {}

    def defined(self, gvk: GVK, definition: Template | None) -> Schema | None:
        """The schema that the store's own definition of a kind gives; None for every other kind."""
        if definition is None:
            return None
        if gvk not in self._defined:
            self._defined[gvk] = schema_of_crd(definition.body, gvk.version)
        return self._defined[gvk]

    def problems(
        self,
        body: JsonObject,
        template: Template,
        rules: Iterable[SelectedRule],
        trace: Iterable[FieldOverride],
        defined: Schema | None,
    ) -> tuple[Problem, ...]:
        """What does not fit in a rendered body, each with the override that made it, or else with the template."""
        schema = defined or builtin_schema(template.gvk)
        if schema is None or (defined is None and not self._are_doubtful(rules, template.gvk, schema)):
            return ()
        written = {override.path: override for override in trace}
        return tuple(_problem(fault, template, written) for fault in body_faults(schema.root, body))

    def may_refer(self, rules: Iterable[SelectedRule]) -> bool:
        """Whether a rule could make an object refer to something that its template does not."""
        return any(self._rule_may_refer(rule) for rule in rules)

    def _rule_may_refer(self, rule: SelectedRule) -> bool:
        if rule.number not in self._referring:
            self._referring[rule.number] = any(map(may_refer, rule.rule.overriders.plaintext))
        return self._referring[rule.number]

    def _are_doubtful(self, rules: Iterable[SelectedRule], gvk: GVK, schema: Schema) -> bool:
        for rule in rules:
            operations = rule.rule.overriders.plaintext
            if not operations:
                continue
            key = (rule.number, gvk)
            if key not in self._doubtful:
                self._doubtful[key] = any(may_not_fit(schema.root, operation) for operation in operations)
            if self._doubtful[key]:
                return True
        return False


def _problem(fault: SchemaFault, template: Template, written: Mapping[str, FieldOverride]) -> Problem:
    """`written`: by the path of a field the override that wrote it last."""
    where = dotted(fault.steps)
    above = (dotted(fault.steps[:depth]) for depth in range(len(fault.steps), -1, -1))
    override = next((written[path] for path in above if path in written), None)
    if override is None:
        message = f"{template.identity}: {fault.message}"
        return Problem(source=template.source, path=where, code=fault.code, message=message)
    name = f"{override.policy} rule {override.rule} {override.overrider}"
    return Problem(
        source=override.source,
        path=f"spec.overrideRules[{override.rule}].overriders.{override.overrider}",
        code=fault.code,
        message=f"{name} makes {template.identity} unfit: {where}: {fault.message}",
    )
