"""The edits of a body by each overrider.

The edit of a body by one overrider, or the reason of its failure.

commandOverrider and argsOverrider: strings appended to, or taken out of, a list of one container.

Source: Karmada: commandOverrider and argsOverrider; unlike there, init containers and CronJob take part. A container of
that name that is not there is no error: one policy may select several workloads.

labelsOverrider and annotationsOverrider: entries of the object's own metadata.

Source: Karmada: add creates the map and sets entries; replace and remove leave absent keys alone.

fieldOverrider: a patch of the JSON or YAML that a string field holds.

Source: Karmada: fieldOverrider: fieldPath must hold a string; it is parsed, patched and written again.

plaintext: one JSON patch of all operations of a rule.

Source: "PropagationPolicy and OverridePolicy", plaintext (RFC 6902); Karmada: plaintext.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from reconciler.api.policies import CommandOverrider, FieldOverrider, MapOverrider, OverrideOperator, PatchOperation
from reconciler.api.tree import Json, JsonObject, Step, dig, with_value
from reconciler.documents import CompiledPatch, PatchFault, compile_patch, pointer_tokens, resolve, with_value_at
from reconciler.regex import regex
from reconciler.yaml import EmbeddedTextFault, read_embedded, write_embedded

_IDENTITY: Final[tuple[tuple[str, ...], ...]] = (
    ("apiVersion",),
    ("kind",),
    ("metadata", "name"),
    ("metadata", "namespace"),
)


class BodyEdit(NamedTuple):
    """The new body, the steps of its changes, and warnings as (code, message)."""

    body: JsonObject
    changed: tuple[tuple[Step, ...], ...] = ()
    warnings: tuple[tuple[str, str], ...] = ()


class EditFault(NamedTuple):
    """The reason why the overrider cannot be applied."""

    code: str
    message: str


IDENTITY_FAULT: Final = EditFault(
    "override-of-identity",
    "apiVersion, kind, metadata.name and metadata.namespace say which object this is, and an override must not change "
    "them; write another template",
)


def changed_identity(before: JsonObject, after: JsonObject) -> tuple[str, ...]:
    """The first field in which the two name different objects; empty when they name one (Karmada does not look).

    Source: design#fixed-identity.
    """
    if before is after:
        return ()
    is_same = before.get("metadata") is after.get("metadata") and before.get("kind") is after.get("kind")
    if is_same and before.get("apiVersion") is after.get("apiVersion"):
        return ()
    return next((field for field in _IDENTITY if dig(before, *field) != dig(after, *field)), ())


def edit_list(
    body: JsonObject, overrider: CommandOverrider, field: str, containers: tuple[tuple[Step, ...], ...]
) -> BodyEdit:
    """The body with `command` or `args` of the named container changed."""
    changed: list[tuple[Step, ...]] = []
    for steps in containers:
        container = dig(body, *steps)
        if container.get("name") != overrider.container:
            continue
        written = container.get(field)
        current = written if isinstance(written, list) else []
        if overrider.operator is OverrideOperator.ADD:
            wanted = [*current, *overrider.values]
        else:
            wanted = [value for value in current if value not in overrider.values]
        if wanted != current:
            body = with_value_at(body, (*steps, field), wanted)
            changed.append((*steps, field))
    return BodyEdit(body, tuple(changed))


def edit_map(body: JsonObject, overrider: MapOverrider, field: str) -> BodyEdit:
    """The body with `metadata.labels` or `metadata.annotations` changed."""
    written = dig(body, "metadata", field)
    current = written if isinstance(written, Mapping) else {}
    wanted = dict(current)
    for key, value in overrider.values:
        if overrider.operator is OverrideOperator.ADD or (
            overrider.operator is OverrideOperator.REPLACE and key in current
        ):
            wanted[key] = value
        elif overrider.operator is OverrideOperator.REMOVE:
            wanted.pop(key, None)
    if wanted == current:
        return BodyEdit(body)
    keys = sorted(key for key in {*current, *wanted} if current.get(key) != wanted.get(key))
    changed: tuple[tuple[Step, ...], ...] = tuple(("metadata", field, key) for key in keys)
    return BodyEdit(with_value(body, ("metadata", field), wanted), changed)


def edit_field(body: JsonObject, overrider: FieldOverrider) -> BodyEdit | EditFault:
    """The body with one text patched; a patch that changes nothing leaves the text as it was written."""
    where = f"fieldPath {overrider.field_path}"
    tokens = pointer_tokens(overrider.field_path)
    if tokens is None:
        return EditFault("pointer-illegal", f"{where} is no JSON pointer")
    steps = resolve(body, tokens)
    if isinstance(steps, str):
        return EditFault("override-path-missing", f"{where}: {steps}")
    text = dig(body, *steps)
    if not isinstance(text, str):
        return EditFault("override-not-a-string", f"{where} leads to something that is no text")
    try:
        value = read_embedded(text, overrider.syntax)
    except EmbeddedTextFault as error:
        # A parser's message may quote the text, and a value of a Secret must not get out.
        why = "" if body.get("kind") == "Secret" else f": {error}"
        return EditFault(
            "embedded-text-unreadable", f"the text at {overrider.field_path} is no {overrider.syntax}{why}"
        )
    patched = compile_patch(overrider.operations).apply(value)
    if isinstance(patched, PatchFault):
        return EditFault("override-path-missing", f"in the text at {overrider.field_path}, {patched.message}")
    if patched == value:
        return BodyEdit(body)
    try:
        written = write_embedded(patched, overrider.syntax)
    except EmbeddedTextFault as error:
        return EditFault("embedded-text-unreadable", f"the text at {overrider.field_path} cannot be written: {error}")
    return BodyEdit(with_value_at(body, steps, written), (steps,))


_END: Final = "-"
_INDEX: Final = regex(r"-?\d{1,9}", re.ASCII)


def edit_plaintext(
    body: JsonObject, compiled: CompiledPatch, operations: tuple[PatchOperation, ...]
) -> Iterator[tuple[int, BodyEdit | EditFault]]:
    """Yield the edit of each operation, with its number, or the first one that fails.

    The operations are applied together; each edit carries the final body.
    """
    patched = compiled.apply(body)
    if isinstance(patched, PatchFault):
        yield patched.operation, EditFault("override-path-missing", patched.message + _hint(body, operations, patched))
        return
    if not isinstance(patched, dict):
        yield len(operations) - 1, IDENTITY_FAULT
        return
    identity = changed_identity(body, patched)
    if identity:
        touching = (number for number, operation in enumerate(operations) if _meets(operation.path, identity))
        yield next(touching, 0), IDENTITY_FAULT
        return
    for number, operation in enumerate(operations):
        steps = _steps(patched, pointer_tokens(operation.path) or ())
        is_new = operation.operator is OverrideOperator.REMOVE or dig(body, *steps) != dig(patched, *steps)
        yield number, BodyEdit(patched, (steps,) if is_new else ())


def _steps(tree: Json, tokens: tuple[str, ...]) -> tuple[Step, ...]:
    """The tokens as steps; `-` and indexes of lists become the index that they have now."""
    steps: list[Step] = []
    for token in tokens:
        step: Step = token
        if isinstance(tree, list) and (token == _END or _INDEX.fullmatch(token)):
            index = -1 if token == _END else int(token)
            step = index if index >= 0 else max(0, len(tree) + index)
        steps.append(step)
        tree = dig(tree, step)
    return tuple(steps)


def _meets(path: str, field: tuple[str, ...]) -> bool:
    """Return whether an operation on the path changes the field: one is above the other."""
    tokens = pointer_tokens(path) or ()
    return tokens[: len(field)] == field[: len(tokens)]


def _hint(body: JsonObject, operations: tuple[PatchOperation, ...], fault: PatchFault) -> str:
    """Return a hint if the path of the file is not the path of the rendered object."""
    if body.get("kind") == "Secret" and operations[fault.operation].path.startswith("/stringData"):
        return "; stringData is folded into data, in base64, before overrides are applied: write /data"
    return ""
