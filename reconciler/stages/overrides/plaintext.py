"""plaintext: one JSON patch of all operations of a rule.

Source: "PropagationPolicy and OverridePolicy", plaintext (RFC 6902); Karmada: plaintext.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from reconciler.model.override import OverrideOperator, PatchOperation
from reconciler.model.tree import Json, JsonObject, Step, dig
from reconciler.regex import regex
from reconciler.stages.overrides.edit import IDENTITY_FAULT, Edit, EditFault, changed_identity
from reconciler.stages.patches import CompiledPatch, PatchFault, pointer_tokens

_END: Final = "-"
_INDEX: Final = regex(r"-?\d{1,9}", re.ASCII)


def edit_plaintext(
    body: JsonObject, compiled: CompiledPatch, operations: tuple[PatchOperation, ...]
) -> Iterator[tuple[int, Edit | EditFault]]:
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
        yield number, Edit(patched, (steps,) if is_new else ())


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
