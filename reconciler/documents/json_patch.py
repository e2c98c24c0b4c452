"""RFC 6902 patches, compiled once and applied copy on write.

Only add, replace and remove exist in overrides. Consecutive operations whose paths do not touch each other become one
tree of steps, so that each container on the way is copied once; an operation that meets the path of an earlier one, or
that shifts the items of a list which others index, begins a new tree.

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
_PLAIN_INDEX: Final = regex(r"0|[1-9]\d{0,8}", re.ASCII)


class _Miss:
    """The answer of a walk that did not find its place; distinct from every JSON value."""

    __slots__ = ()


_MISS: Final = _Miss()


class PatchFault(NamedTuple):
    """The first operation that does not apply: its index among those compiled, and why."""

    operation: int
    message: str


class _Operation(NamedTuple):
    number: int
    operator: OverrideOperator
    tokens: tuple[str, ...]
    value: Json


_Trie = dict[str, Any]
"""Token to a trie below it, or to the operation that ends there."""


class CompiledPatch(Struct, frozen=True):
    """Operations in groups; those of one group are independent. `fault`: a path that is no JSON pointer."""

    groups: tuple[tuple[tuple[_Operation, ...], _Trie], ...]
    fault: PatchFault | None = None

    def apply(self, tree: Json) -> Json | PatchFault:
        """Return the patched tree; untouched parts are shared with the original, which is never written into."""
        if self.fault is not None:
            return self.fault
        for operations, trie in self.groups:
            patched = _walk(trie, tree)
            if patched is _MISS:
                return _first_fault(operations, tree)
            tree = patched
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
    return CompiledPatch(tuple(_groups(compiled)))


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
    """A container of the same items that is ours to write into."""
    if isinstance(tree, list):
        return tree[:]
    return tree.copy() if tree.__class__ is dict else dict(tree)


_GROUP_MAX: Final = 64
"""The check of an operation covers all in its group, so thousands in one group would take minutes."""


def _groups(operations: list[_Operation]) -> Iterable[tuple[tuple[_Operation, ...], _Trie]]:
    members: list[_Operation] = []
    trie: _Trie = {}
    for operation in operations:
        if members and (len(members) >= _GROUP_MAX or not _fits(trie, operation)):
            yield tuple(members), trie
            members, trie = [], {}
        members.append(operation)
        _insert(trie, operation)
    if members:
        yield tuple(members), trie


_ROOT: Final = ""
"""The only key of the trie of an operation on the whole document; it has no tokens, so no other key can clash."""


def _insert(trie: _Trie, operation: _Operation) -> None:
    for token in operation.tokens[:-1]:
        trie = trie.setdefault(token, {})
    trie[operation.tokens[-1] if operation.tokens else _ROOT] = operation


def _fits(trie: _Trie, operation: _Operation) -> bool:
    """Return whether the operation is independent of all in the trie: applied in any order they give the same."""
    if not operation.tokens or any(isinstance(below, _Operation) and not below.tokens for below in trie.values()):
        return False
    node: Any = trie
    for depth, token in enumerate(operation.tokens):
        if isinstance(node, _Operation):
            return False
        is_last = depth == len(operation.tokens) - 1
        others = [key for key in node if key != token]
        if others and (_may_alias(token) or any(_may_alias(key) for key in others)):
            return False
        if is_last:
            shifts = operation.operator is not OverrideOperator.REPLACE and bool(_INDEX.fullmatch(token))
            return token not in node and not (others and shifts)
        if any(_shifts(node[key]) for key in others):
            return False
        if token not in node:
            return True
        node = node[token]
    return True


def _shifts(below: Any) -> bool:
    """Return whether this is an operation that moves the later items, if its container is a list."""
    if not isinstance(below, _Operation) or below.operator is OverrideOperator.REPLACE:
        return False
    return bool(_INDEX.fullmatch(below.tokens[-1]))


def _may_alias(token: str) -> bool:
    """Return whether the token could be a second name of a list item: `-`, `-1`, `01`."""
    return token == _END or (bool(_INDEX.fullmatch(token)) and not _PLAIN_INDEX.fullmatch(token))


def _walk(trie: _Trie, tree: Json) -> Json:
    """The tree with every operation of the trie applied, `_MISS` when one does not apply."""
    if isinstance(tree, dict):
        copy: Any = tree.copy()
    elif isinstance(tree, list):
        copy = tree[:]
    elif isinstance(tree, Mapping):
        copy = dict(tree)
    else:
        return _on_root(trie)
    for token, below in trie.items():
        if isinstance(below, dict):
            step = _step(copy, token)
            if step is None:
                return _MISS
            patched = _walk(below, copy[step])
            if patched is _MISS:
                return _MISS
            copy[step] = patched
        elif not below.tokens:
            return _on_root(trie)
        elif not _finish(copy, token, below):
            return _MISS
    return copy


def _on_root(trie: _Trie) -> Json:
    """The value of an operation on the whole document, which only add and replace are."""
    operation = trie.get(_ROOT)
    if not isinstance(operation, _Operation) or operation.tokens or operation.operator is OverrideOperator.REMOVE:
        return _MISS
    return operation.value


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
    """The step that a token takes in this container, None when there is nothing."""
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


def _first_fault(operations: tuple[_Operation, ...], tree: Json) -> PatchFault:
    for operation in operations:
        trie: _Trie = {}
        _insert(trie, operation)
        patched = _walk(trie, tree)
        if patched is _MISS:
            return PatchFault(operation.number, _why(operation, tree))
        tree = patched
    raise AssertionError("operations that fail together fail one by one")


def _why(operation: _Operation, tree: Json) -> str:
    """Return the fault with its place: called only after an operation has failed."""
    what = f"{operation.operator} {pointer_text(operation.tokens) or 'the whole object'}"
    if not operation.tokens:
        return f"{what}: it cannot be removed"
    parent = resolve(tree, operation.tokens[:-1])
    if isinstance(parent, str):
        return f"{what}: {parent}"
    for step in parent:
        tree = tree[step]
    token, at = operation.tokens[-1], pointer_text(operation.tokens[:-1])
    if isinstance(tree, list) and operation.operator is OverrideOperator.ADD and _INDEX.fullmatch(token):
        return f"{what}: {at} has {len(tree)} items, so an item can be inserted at 0 to {len(tree)} or appended with -"
    return f"{what}: {_why_not_there(tree, token, at)}"


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
