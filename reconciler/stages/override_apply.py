"""Applies override rules to a body, one after another, and records which rule set which field.

Source: Karmada: within a rule image, command, args, labels, annotations, field, plaintext; every overrider sees what
the ones before have done; the first that fails stops the object on that cluster. Unlike there, identity cannot change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from reconciler.interpreters.base import Interpreter
from reconciler.model.document import dotted
from reconciler.model.override import CommandOverrider, FieldOverrider, ImageOverrider, MapOverrider, Overriders
from reconciler.model.problem import Problem, Severity, Source
from reconciler.model.refs import Identity, PolicyRef
from reconciler.model.tree import JsonObject, Step
from reconciler.stages.override_edit import IDENTITY_FAULT, Edit, EditFault, changed_identity
from reconciler.stages.override_fields import edit_field
from reconciler.stages.override_images import containers_of, edit_images
from reconciler.stages.override_lists import edit_list
from reconciler.stages.override_maps import edit_map
from reconciler.stages.override_plaintext import edit_plaintext
from reconciler.stages.override_select import SelectedRule

_ORDER: Final = (
    ("imageOverrider", "image"),
    ("commandOverrider", "command"),
    ("argsOverrider", "args"),
    ("labelsOverrider", "labels"),
    ("annotationsOverrider", "annotations"),
    ("fieldOverrider", "field"),
)
"""Overriders as policies name them, and as the model and the changed field are called, in the order of application."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldOverride:
    """Which overrider set a field: `path` as people write it, `overrider` as `plaintext[1]`."""

    path: str
    policy: PolicyRef
    rule: int
    overrider: str
    source: Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Overridden:
    """A body after its rules. `body` None: one failed, and the error among `problems` says which.

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
        for applied in _run(rule, body, interpreter):
            edit = applied.edit
            if isinstance(edit, Edit) and changed_identity(body, edit.body):
                edit = IDENTITY_FAULT
            if isinstance(edit, EditFault):
                problems.append(_problem(rule, applied, identity, edit, Severity.ERROR))
                return Overridden(body=None, problems=tuple(problems))
            body = edit.body
            problems += (
                _problem(rule, applied, identity, EditFault(*warning), Severity.WARNING) for warning in edit.warnings
            )
            trace += (_trace(rule, applied, steps) for steps in edit.changed)
        if body is not before and body != before:
            names.append(rule.label)
    return Overridden(body=body, rules=tuple(names), trace=tuple(trace), problems=tuple(problems))


class _Applied(NamedTuple):
    """One overrider with what it did to the body that the one before has left."""

    overrider: str
    source: Source
    edit: Edit | EditFault


def _run(rule: SelectedRule, body: JsonObject, interpreter: Interpreter) -> Iterator[_Applied]:
    """The overriders of a rule in order; it ends after the first that fails."""
    overriders: Overriders = rule.rule.overriders
    for name, field in _ORDER:
        for number, overrider in enumerate(getattr(overriders, field)):
            edit = _edit(body, field, overrider, interpreter)
            yield _Applied(f"{name}[{number}]", overrider.source, edit)
            if isinstance(edit, EditFault):
                return
            body = edit.body
    if overriders.plaintext:
        for number, edit in edit_plaintext(body, rule.plaintext, overriders.plaintext):
            yield _Applied(f"plaintext[{number}]", overriders.plaintext[number].source, edit)


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
    rule: SelectedRule, applied: _Applied, identity: Identity, fault: EditFault, severity: Severity
) -> Problem:
    what = "cannot be applied to" if severity is Severity.ERROR else "on"
    return Problem(
        source=applied.source,
        path=f"spec.overrideRules[{rule.index}].overriders.{applied.overrider}",
        code=fault.code,
        message=f"{rule.label} {applied.overrider} {what} {identity}: {fault.message}",
        severity=severity,
    )


def _trace(rule: SelectedRule, applied: _Applied, steps: tuple[Step, ...]) -> FieldOverride:
    return FieldOverride(
        path=dotted(steps),
        policy=rule.policy,
        rule=rule.index,
        overrider=applied.overrider,
        source=applied.source,
    )
