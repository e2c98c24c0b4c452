"""The edit of a body by each overrider, or the reason of its failure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from reconciler.api.content import Json, JsonObject, Step, dig, with_value
from reconciler.api.policies import (
    CommandOverrider,
    FieldOverrider,
    ImageComponent,
    ImageOverrider,
    MapOverrider,
    OverrideOperator,
    PatchOperation,
)
from reconciler.documents import CompiledPatch, PatchFault, compile_patch, pointer_tokens, resolve, with_value_at
from reconciler.kinds.interpreter import Interpreter
from reconciler.kinds.pod_template import SPEC_TEMPLATE, PodKind
from reconciler.kinds.registry import GENERIC
from reconciler.regex import regex
from reconciler.templates import ImageFault, override_image, parse_image, replaces_registry
from reconciler.yaml import EmbeddedTextFault, read_embedded, write_embedded

_IDENTITY: Final = (("apiVersion",), ("kind",), ("metadata", "name"), ("metadata", "namespace"))


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
    """Return the first field by which the two are different objects; empty: none. Source: design#fixed-identity."""
    if before is after:
        return ()
    is_same = before.get("metadata") is after.get("metadata") and before.get("kind") is after.get("kind")
    if is_same and before.get("apiVersion") is after.get("apiVersion"):
        return ()
    return next((field for field in _IDENTITY if dig(before, *field) != dig(after, *field)), ())


def edit_list(
    body: JsonObject, overrider: CommandOverrider, field: str, containers: tuple[tuple[Step, ...], ...]
) -> BodyEdit:
    """Return the body with strings added to, or taken out of, `command` or `args` of the named container.

    Source: Karmada: commandOverrider and argsOverrider; unlike there, init containers and CronJob take part. A missing
    container is no error: one policy may select several workloads.
    """
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
    """Return the body with other labels or annotations; only `add` sets absent keys. Source: Karmada."""
    written = dig(body, "metadata", field)
    current = written if isinstance(written, Mapping) else {}
    wanted = dict(current)
    for key, value in overrider.values:
        if overrider.operator is OverrideOperator.REMOVE:
            wanted.pop(key, None)
        elif overrider.operator is OverrideOperator.ADD or key in current:
            wanted[key] = value
    if wanted == current:
        return BodyEdit(body)
    keys = sorted(key for key in {*current, *wanted} if current.get(key) != wanted.get(key))
    changed: tuple[tuple[Step, ...], ...] = tuple(("metadata", field, key) for key in keys)
    return BodyEdit(with_value(body, ("metadata", field), wanted), changed)


def edit_field(body: JsonObject, overrider: FieldOverrider) -> BodyEdit | EditFault:
    """Return the body with the text at fieldPath parsed, patched and, if changed, written. Source: Karmada."""
    located = _text_at(body, overrider.field_path, "fieldPath")
    if isinstance(located, EditFault):
        return located
    steps, text = located
    try:
        value = read_embedded(text, overrider.syntax)
    except EmbeddedTextFault as error:
        # A parser's message may quote the text, and a value of a Secret must not get out.
        why = "" if body.get("kind") == "Secret" else f": {error}"
        message = (
            f"the text at {overrider.field_path} is no {overrider.syntax}{why}; correct it, or the syntax named here"
        )
        return EditFault("embedded-text-unreadable", message)
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


def _text_at(body: JsonObject, pointer: str, what: str) -> tuple[tuple[Step, ...], str] | EditFault:
    """Return the text that a JSON pointer leads to, with its steps. `what`: the field with the pointer."""
    tokens = pointer_tokens(pointer)
    assert tokens is not None, "the reader of the policy refused other texts"
    steps = resolve(body, tokens)
    if isinstance(steps, str):
        message = f"{what} {pointer}: {steps}; correct it, or select only objects that have it"
        return EditFault("override-path-missing", message)
    text = dig(body, *steps)
    if not isinstance(text, str):
        return EditFault("override-not-a-string", f"{what} {pointer} leads to something that is no text; correct it")
    return steps, text


_END: Final = "-"
_INDEX: Final = regex(r"-?\d{1,9}", re.ASCII)


def edit_plaintext(
    body: JsonObject, compiled: CompiledPatch, operations: tuple[PatchOperation, ...]
) -> Iterator[tuple[int, BodyEdit | EditFault]]:
    """Yield each operation's edit with the final body, or the first failure. Source: RFC 6902; Karmada: plaintext."""
    patched = compiled.apply(body)
    if isinstance(patched, PatchFault):
        message = patched.message
        if body.get("kind") == "Secret" and operations[patched.operation].path.startswith("/stringData"):
            # The path of the file is not that of the rendered object.
            message += "; stringData is folded into data, in base64, before overrides are applied: write /data"
        yield patched.operation, EditFault("override-path-missing", message)
        return
    if not isinstance(patched, dict):
        yield len(operations) - 1, IDENTITY_FAULT
        return
    identity = changed_identity(body, patched)
    if identity:
        # Of two paths one is above the other.
        tokens = [pointer_tokens(operation.path) or () for operation in operations]
        touching = (number for number, path in enumerate(tokens) if path[: len(identity)] == identity[: len(path)])
        yield next(touching, 0), IDENTITY_FAULT
        return
    for number, operation in enumerate(operations):
        steps = _steps(patched, pointer_tokens(operation.path) or ())
        is_new = operation.operator is OverrideOperator.REMOVE or dig(body, *steps) != dig(patched, *steps)
        yield number, BodyEdit(patched, (steps,) if is_new else ())


def _steps(tree: Json, tokens: tuple[str, ...]) -> tuple[Step, ...]:
    """Return the tokens as steps; `-` and indexes of lists become the index that they have now."""
    steps: list[Step] = []
    for token in tokens:
        step: Step = token
        if isinstance(tree, list) and (token == _END or _INDEX.fullmatch(token)):
            index = -1 if token == _END else int(token)
            step = index if index >= 0 else max(0, len(tree) + index)
        steps.append(step)
        tree = dig(tree, step)
    return tuple(steps)


_OWNERS_OF_PODS: Final = ("DaemonSet", "Deployment", "Job", "ReplicaSet", "StatefulSet")
_BY_KIND_NAME: Final = dict[str, Interpreter](dict.fromkeys(_OWNERS_OF_PODS, SPEC_TEMPLATE), Pod=PodKind(path=()))
"""Kinds of other groups (of OpenKruise, say) with the pods at the path of the built-in kind of that name."""


def containers_of(body: JsonObject, interpreter: Interpreter) -> tuple[tuple[Step, ...], ...]:
    """Return steps to the containers and init containers of a body."""
    return _interpreter_for(body, interpreter).containers(body)


def edit_images(body: JsonObject, overrider: ImageOverrider, interpreter: Interpreter) -> BodyEdit | EditFault:
    """Return the body with one image overrider applied. Each overrider reads the image that the one before has left.

    Source: "PropagationPolicy and OverridePolicy": without a predicate all images of the resource; Karmada skips init
    containers and CronJob there, and matches kinds by name alone whatever their group.
    """
    if overrider.predicate:
        located = _text_at(body, overrider.predicate, "predicate")
        return located if isinstance(located, EditFault) else _edit(body, (located,), overrider)
    interpreter = _interpreter_for(body, interpreter)
    if interpreter is GENERIC:
        message = f"it is not known where a {body.get('kind')} has its images, so none was changed; use a predicate"
        return BodyEdit(body, warnings=(("images-unknown", message),))
    return _edit(body, interpreter.images(body), overrider)


def changed_quietly(images: tuple[str, ...], overrider: ImageOverrider) -> bool | None:
    """Return whether `edit_images` would change one of a body's images; None: it may cause a remark."""
    if overrider.predicate:
        return None
    changes = False
    replaces = overrider.component is ImageComponent.REGISTRY and overrider.operator is OverrideOperator.REPLACE
    for image in images:
        quickly = replaces_registry(image, overrider.value) if replaces else None
        if quickly is not None:
            changes = changes or quickly
            continue
        result = override_image(image, overrider.component, overrider.operator, overrider.value)
        if isinstance(result, ImageFault) or _run_together(image, result, overrider):
            return None
        changes = changes or result != image
    return changes


def _interpreter_for(body: JsonObject, interpreter: Interpreter) -> Interpreter:
    """Return the interpreter of the kind, else one by its name alone."""
    return _BY_KIND_NAME.get(str(body.get("kind")), GENERIC) if interpreter is GENERIC else interpreter


def _edit(
    body: JsonObject, images: tuple[tuple[tuple[Step, ...], str], ...], overrider: ImageOverrider
) -> BodyEdit | EditFault:
    changed: list[tuple[Step, ...]] = []
    warnings: list[tuple[str, str]] = []
    is_secret = body.get("kind") == "Secret"
    for steps, image in images:
        result = override_image(image, overrider.component, overrider.operator, overrider.value)
        if isinstance(result, ImageFault):
            why = "a value of a Secret is no image" if is_secret else result.message
            return EditFault("image-illegal", f"{why}; correct the overrider, or select only what it fits")
        if result != image:
            body = with_value_at(body, steps, result)
            changed.append(steps)
            warnings += _run_together(image, result, overrider)
    return BodyEdit(body, tuple(changed), tuple(warnings))


def _run_together(image: str, result: str, overrider: ImageOverrider) -> list[tuple[str, str]]:
    """Return the warning for a registry appended to another: `add` is plain concatenation, as in Karmada."""
    if overrider.component is not ImageComponent.REGISTRY or overrider.operator is not OverrideOperator.ADD:
        return []
    before = parse_image(image)
    if before is None or not before.registry or not overrider.value[:1].isalnum():
        return []
    message = f"add appends to the registry that is there: {image} became {result}; replace sets another registry"
    return [("image-registry-appended", message)]
