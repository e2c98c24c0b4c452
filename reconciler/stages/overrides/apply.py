"""Applies override rules to a body, one after another, and records which rule set which field.

Source: Karmada: within a rule image, command, args, labels, annotations, field, plaintext; every overrider sees the
result of the ones before; the first that fails stops the object on that cluster. Unlike there, identity cannot change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from reconciler.interpreters.base import Interpreter
from reconciler.model.override import CommandOverrider, FieldOverrider, ImageOverrider, MapOverrider
from reconciler.model.problem import Problem, Severity, Source, dotted
from reconciler.model.refs import Identity, PolicyRef
from reconciler.model.tree import JsonObject
from reconciler.stages.overrides.edit import IDENTITY_FAULT, Edit, EditFault, changed_identity
from reconciler.stages.overrides.fields import edit_field
from reconciler.stages.overrides.images import containers_of, edit_images
from reconciler.stages.overrides.lists import edit_list
from reconciler.stages.overrides.maps import edit_map
from reconciler.stages.overrides.plaintext import edit_plaintext
from reconciler.stages.overrides.select import SelectedRule


class FieldOverride(NamedTuple):
    """Which overrider set a field: `path` as people write it, `overrider` as `plaintext[1]`."""

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
    """The body with the rules applied in order; it is never written into."""
    names: list[str] = []
    trace: list[FieldOverride] = []
    problems: list[Problem] = []
    for rule in rules:
        before = body
        for overrider, source, edit in _run(rule, body, interpreter):
            if not isinstance(edit, Edit) or changed_identity(body, edit.body):
                fault = edit if isinstance(edit, EditFault) else IDENTITY_FAULT
                problems.append(_problem(rule, overrider, source, identity, fault, Severity.ERROR))
                return Overridden(body=None, problems=tuple(problems))
            body = edit.body
            if edit.warnings:
                faults = [EditFault(*warning) for warning in edit.warnings]
                problems += [_problem(rule, overrider, source, identity, said, Severity.WARNING) for said in faults]
            trace += [
                FieldOverride(_written(steps), rule.policy, rule.index, overrider, source) for steps in edit.changed
            ]
        if body is not before and body != before:
            names.append(rule.label)
    return Overridden(body, tuple(names), tuple(trace), tuple(problems))


def apply_quiet_rules(body: JsonObject, rules: Iterable[SelectedRule], interpreter: Interpreter) -> JsonObject:
    """Return the body with rules applied that cannot fail or cause remarks (`are_quiet`)."""
    for rule in rules:
        for _, field, overrider in rule.steps:
            edit = _edit(body, field, overrider, interpreter)
            assert isinstance(edit, Edit), "quiet rules do not fail"
            body = edit.body
    return body


def _run(
    rule: SelectedRule, body: JsonObject, interpreter: Interpreter
) -> Iterator[tuple[str, Source, Edit | EditFault]]:
    """Yield the overriders of a rule in order, each with its edit of the body before it.

    It ends after the first that fails.
    """
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
) -> Edit | EditFault:
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
