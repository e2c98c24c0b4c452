"""State that tasks of the service share. Source: design#clusters-are-a-value.

A task that has names from a container, and awaits, may find another container afterwards. So what is handed from one
task to another is frozen through and through; and where an object keeps something that changes, its coroutines neither
go through it while they await, nor look a name up in it that they have from before an await.
"""

from __future__ import annotations

import ast
import collections
import re
import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import reconciler.controller
from reconciler.api.content import Content
from reconciler.controller.cluster_reads.read_clusters import ReadExtent
from reconciler.controller.inbox import ClusterChanged, PendingWork
from reconciler.controller.loop_state import State
from reconciler.controller.retries.workers import ApplyResult
from reconciler.controller.round.apply_plan import WriteContext
from reconciler.controller.vitals.service_vitals import StatusSnapshot
from reconciler.kube import MemberClusters

ROOT = Path(reconciler.controller.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
SHARED = (State, ReadExtent, WriteContext, ApplyResult, StatusSnapshot, PendingWork, ClusterChanged)
"""The records that the loop gives to rounds, late readings, polls, lanes and pages, and that they send to it."""
MUTABLE = (dict, list, set, bytearray, collections.defaultdict, collections.Counter, collections.deque)
SAYS_THE_SAME = {Content}
"""A value that is unpacked when it is first looked at, and says the same before and after."""
CONTAINERS = {"dict", "list", "set", "defaultdict", "Counter", "deque", "OrderedDict"}
TO_LOOK = {"items", "values", "keys"}


def parts_of(hint: Any) -> Iterator[Any]:
    """The types that an annotation is made of; what a function is given is not kept in it."""
    origin = typing.get_origin(hint)
    if origin is collections.abc.Callable:
        return
    yield origin if origin not in (None, typing.Union, types.UnionType) else hint
    for part in typing.get_args(hint):
        yield from parts_of(part)


def reached_from(root: type) -> dict[type, str]:
    """Each type that a value holds, and where."""
    found, left = {root: root.__name__}, [root]
    while left:
        owner = left.pop()
        if not (isinstance(owner, type) and issubclass(owner, msgspec.Struct)):
            continue
        for name, hint in typing.get_type_hints(owner).items():
            for part in parts_of(hint):
                if isinstance(part, type) and part not in found:
                    found[part] = f"{owner.__name__}.{name}"
                    left.append(part)
    return found


@pytest.mark.parametrize("root", SHARED, ids=lambda root: root.__name__)
def test_what_tasks_share_is_frozen_through_and_through(root: type) -> None:
    found = reached_from(root)
    assert len(found) > 3, "nothing was looked at"
    thawed = [
        f"{where}: {kind.__name__}"
        for kind, where in found.items()
        if kind in MUTABLE or (issubclass(kind, msgspec.Struct) and not kind.__struct_config__.frozen)
        if kind not in SAYS_THE_SAME
    ]
    assert not thawed


def test_clusters_are_a_value() -> None:
    members = MemberClusters(typing.cast("Any", None), typing.cast("Any", None))
    assert not [name for name in dir(members) if name in ("update", "pop", "clear", "__setitem__", "__delitem__")]
    with pytest.raises(AttributeError):
        members.failed = {}  # type: ignore[misc]


class Watched(typing.NamedTuple):
    """A coroutine of a class, and the attributes of it that hold a container which changes."""

    where: str
    function: ast.AsyncFunctionDef
    kept: frozenset[str]


def coroutines(file: Path) -> Iterator[Watched]:
    for owner in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(owner, ast.ClassDef):
            kept = frozenset(kept_by(owner))
            for function in owner.body:
                if isinstance(function, ast.AsyncFunctionDef):
                    yield Watched(f"{file.relative_to(ROOT)} {owner.name}.{function.name}", function, kept)


def kept_by(owner: ast.ClassDef) -> Iterator[str]:
    """Attributes that `__init__` says to be a container that changes."""
    for node in ast.walk(owner):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Attribute):
            kind = node.annotation.value if isinstance(node.annotation, ast.Subscript) else node.annotation
            if isinstance(kind, ast.Name) and kind.id in CONTAINERS:
                yield node.target.attr


def attribute_of(node: ast.expr) -> str | None:
    """`name` of `self.name`, and of `self.name.items()`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in TO_LOOK:
        node = node.func.value
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
        return node.attr
    return None


def within(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what it does itself: a function that it defines is another one."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.AsyncFunctionDef | ast.FunctionDef | ast.Lambda):
            yield child
            yield from within(child)


def awaits(node: ast.AST) -> list[int]:
    """The lines on which it awaits."""
    return [found.lineno for found in within(node) if isinstance(found, ast.Await | ast.AsyncWith | ast.AsyncFor)]


def torn(watched: Watched) -> Iterator[str]:
    """Yield where a coroutine may find another container than it began with."""
    first = min(awaits(watched.function), default=10**9)
    for node in within(watched.function):
        if isinstance(node, ast.For) and attribute_of(node.iter) in watched.kept and awaits(node):
            yield f"{watched.where}:{node.lineno} goes through {attribute_of(node.iter)} while it awaits"
        if not (isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load)):
            continue
        if attribute_of(node.value) in watched.kept and node.lineno > first:
            yield f"{watched.where}:{node.lineno} looks a name up in {attribute_of(node.value)} after an await"


def test_no_coroutine_rests_on_a_container_that_changes_over_an_await() -> None:
    found = [watched for file in FILES for watched in coroutines(file)]
    assert sum(bool(watched.kept) for watched in found) > 30, "nothing was looked at"
    assert [where for watched in found for where in torn(watched)] == []


def test_no_transaction_of_the_journal_is_open_over_an_await() -> None:
    """Another task would write into it, and a cancelled one leave half of it."""
    opened = [
        (file, node)
        for file in FILES
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.With) and "transaction(" in ast.unparse(ast.Tuple([i.context_expr for i in node.items]))
    ]
    assert len(opened) > 5, "nothing was looked at"
    assert [f"{file.relative_to(ROOT)}:{node.lineno}" for file, node in opened if awaits(node)] == []


def test_only_the_loop_publishes_its_state() -> None:
    """Steps return a state; tasks beside the loop see the last one that it published."""
    publishing = {str(file.relative_to(ROOT)) for file in FILES if "_published.publish(" in file.read_text("utf-8")}
    owning = {
        str(file.relative_to(ROOT)) for file in FILES if re.search(r"\bPublished\(State\(", file.read_text("utf-8"))
    }
    assert publishing == owning == {"loop.py"}
