"""RFC 6902 patches, compiled once and applied copy on write.

Only add, replace and remove exist in overrides.

Source: RFC 6902; Karmada: `-` appends, negative indexes count from the end (an add at -1 appends), `01` reads as 1,
replace and remove of a missing value and any operation below one are errors.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from msgspec import Struct

from reconciler.api.content import Json, Step
from reconciler.api.policies import OverrideOperator, PatchOperation
from reconciler.regex import regex
from reconciler.yaml import MAX_DEPTH

_INDEX: Final = regex(r"-?\d{1,9}", re.ASCII)
_END: Final = "-"
"""The place after the last item of a list."""


class PatchFault(NamedTuple):
    """The first operation that does not apply: its index among those compiled, and why."""

    operation: int
    message: str


class _Operation(NamedTuple):
    number: int
    operator: OverrideOperator
    tokens: tuple[str, ...]
    value: Json


class CompiledPatch(Struct, frozen=True):
    """Operations in their order. `fault`: a path that is no JSON pointer."""

    operations: tuple[_Operation, ...]
    fault: PatchFault | None = None

    def apply(self, tree: Json) -> Json | PatchFault:
        """Return the patched tree; untouched parts are shared with the original, which is never written into."""
        if self.fault is not None:
            return self.fault
        own: dict[int, Any] = {}
        for operation in self.operations:
            if not operation.tokens and operation.operator is not OverrideOperator.REMOVE:
                tree = operation.value
                continue
            top = _writable(tree, own)
            if not _apply(operation, top, own):
                return PatchFault(operation.number, _why(operation, tree))
            tree = top
        return tree


def compile_patch(operations: Iterable[PatchOperation]) -> CompiledPatch:
    """The operations ready to be applied any number of times."""
    compiled: list[_Operation] = []
    for number, operation in enumerate(operations):
        if operation.path.count("/") > MAX_DEPTH:
            # Values are no deeper either, so however many are piled up, the tree can be written as JSON (254 levels).
            return CompiledPatch((), PatchFault(number, f"its path has more than {MAX_DEPTH} steps"))
        tokens = pointer_tokens(operation.path)
        if tokens is None:
            fault = PatchFault(number, f"{operation.path!r} is no JSON pointer; it begins with a slash")
            return CompiledPatch((), fault)
        compiled.append(_Operation(number, operation.operator, tokens, operation.value))
    return CompiledPatch(tuple(compiled))


def pointer_tokens(pointer: str) -> tuple[str, ...] | None:
    """The unescaped tokens of a JSON pointer (RFC 6901); the empty pointer has none. None when it is no pointer."""
    if not pointer:
        return ()
    if not pointer.startswith("/"):
        return None
    return tuple(token.replace("~1", "/").replace("~0", "~") for token in pointer[1:].split("/"))


def resolve(tree: Json, tokens: tuple[str, ...]) -> tuple[Step, ...] | str:
    """Return the steps to an existing place; else the missing step and its place, in words."""
    steps: list[Step] = []
    for depth, token in enumerate(tokens):
        step = _step(tree, token)
        if step is None:
            return _why_not_there(tree, token, pointer_text(tokens[:depth]))
        steps.append(step)
        tree = tree[step]
    return tuple(steps)


def pointer_text(tokens: Iterable[str]) -> str:
    """The tokens as a JSON pointer."""
    return "".join("/" + token.replace("~", "~0").replace("/", "~1") for token in tokens)


def with_value_at(tree: Json, steps: tuple[Step, ...], value: Json) -> Json:
    """The tree with a value at existing steps (a last key may be new); copy on write along the path."""
    if not steps:
        return value
    top = here = _copied(tree)
    for step in steps[:-1]:
        below = here[step]
        below = here[step] = below.copy() if below.__class__ in _PLAIN else _copied(below)
        here = below
    here[steps[-1]] = value
    return top


_PLAIN: Final = (dict, list)


def _copied(tree: Json) -> Any:
    if isinstance(tree, list):
        return tree[:]
    return tree.copy() if tree.__class__ is dict else dict(tree)


def _writable(tree: Json, own: dict[int, Any]) -> Any:
    """Return a container that is ours to write into, which is among `own`, by id; None: it is no container."""
    if id(tree) in own:
        return tree
    if tree.__class__ not in _PLAIN and not isinstance(tree, Mapping | list):
        return None
    copy = tree.copy() if tree.__class__ in _PLAIN else _copied(tree)
    own[id(copy)] = copy
    return copy


def _apply(operation: _Operation, here: Any, own: dict[int, Any]) -> bool:
    """Apply an operation below a container that is ours; False when it does not apply, or there is none."""
    for token in operation.tokens[:-1]:
        step = _step(here, token)
        if step is None:
            return False
        below = _writable(here[step], own)
        if below is None:
            return False
        here[step] = here = below
    return bool(operation.tokens) and here is not None and _finish(here, operation.tokens[-1], operation)


def _finish(copy: Any, token: str, operation: _Operation) -> bool:
    """Apply the last step of an operation to a container that is ours; False when it does not apply."""
    is_addition = operation.operator is OverrideOperator.ADD
    if is_addition and isinstance(copy, list):
        index = len(copy) if token == _END else _index(token, len(copy) + 1)
        if index is not None:
            copy.insert(index, operation.value)
        return index is not None
    place = token if is_addition else _step(copy, token)
    if place is None:
        return False
    if operation.operator is OverrideOperator.REMOVE:
        del copy[place]
    else:
        copy[place] = operation.value
    return True


def _step(tree: Json, token: str) -> Step | None:
    if isinstance(tree, Mapping):
        return token if token in tree else None
    return _index(token, len(tree)) if isinstance(tree, list) else None


def _index(token: str, length: int) -> int | None:
    """Return the index from 0; negative ones count from the end. None if invalid or out of range."""
    if not _INDEX.fullmatch(token):
        return None
    index = int(token)
    if index < 0:
        index += length
    return index if 0 <= index < length else None


def _why(operation: _Operation, tree: Json) -> str:
    """Return the fault with its place: called only after an operation has failed."""
    what = f"{operation.operator} {pointer_text(operation.tokens) or 'the whole object'}"
    if not operation.tokens:
        return f"{what}: it cannot be removed"
    depth, last = 0, len(operation.tokens) - 1
    while depth < last and (step := _step(tree, operation.tokens[depth])) is not None:
        tree, depth = tree[step], depth + 1
    token, at = operation.tokens[depth], pointer_text(operation.tokens[:depth])
    is_addition = operation.operator is OverrideOperator.ADD
    if depth == last and isinstance(tree, list) and is_addition and _INDEX.fullmatch(token):
        return f"{what}: {at} has {len(tree)} items, so an item can be inserted at 0 to {len(tree)} or appended with -"
    if not isinstance(tree, Mapping):
        remedy = "correct the path"
    elif operation.operator is OverrideOperator.REMOVE:
        remedy = "take the operation out, or select only objects that have it"
    else:
        parent = pointer_text(operation.tokens[: depth + 1])
        remedy = "correct the path, or write add" if depth == last else f"add {parent} in an operation before this one"
    return f"{what}: {_why_not_there(tree, token, at)}; {remedy}"


def _why_not_there(tree: Json, token: str, at: str) -> str:
    where = at or "the object"
    if isinstance(tree, list):
        if _INDEX.fullmatch(token):
            return f"{where} has no item {token}; it has {len(tree)}"
        return f"{where} is a list, and {token!r} is no index"
    if isinstance(tree, Mapping):
        return f"there is no {pointer_text((token,))[1:]!r} in {where}"
    return f"{where} has no fields and no items"


def operation_fault(operator: OverrideOperator, path: str, value: Json) -> str:
    """Return the fault of a JSON Patch operation (RFC 6902), as the end of a sentence; empty if it is valid.

    An operation on the whole document is legal there, and none of an override.
    """
    import jsonpatch  # noqa: PLC0415 - it takes as long as a whole small command, and few stores have patches

    operation = {"op": str(operator), "path": path, "value": value}
    try:
        jsonpatch.JsonPatch([operation])
    except jsonpatch.JsonPointerException as refused:
        if "escape" in str(refused):
            return "~ stands before 0 or 1 only: ~0 is a tilde, ~1 a slash"
        return "it begins with a slash, as in /spec/replicas"
    except jsonpatch.JsonPatchException as refused:
        return str(refused)
    return "" if path else "it is empty, which is the whole object"
