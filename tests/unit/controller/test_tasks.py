"""Work beside a block: it ends with the block, and the block with it where it fails."""

from __future__ import annotations

import ast
import asyncio
from pathlib import Path

import pytest

from reconciler.controller import tasks
from reconciler.controller.tasks import beside
from reconciler.errors import JournalError


async def fails() -> None:
    await asyncio.sleep(0)
    raise JournalError("no room left")


async def goes_on(seen: list[str] | None = None) -> None:
    try:
        await asyncio.Event().wait()
    finally:
        if seen is not None:
            seen.append("ended")


async def test_a_block_is_broken_off_where_work_beside_it_fails() -> None:
    seen: list[str] = []
    with pytest.raises(JournalError, match="no room left"):
        async with asyncio.timeout(60), beside({"0": fails(), "1": goes_on(seen), "2": fails()}):
            await asyncio.Event().wait()
    assert seen == ["ended"]
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0, "whoever goes on after it is not cancelled"


async def test_a_block_that_is_cancelled_is_cancelled() -> None:
    seen: list[str] = []

    async def block() -> None:
        async with beside({"0": goes_on(seen)}):
            await asyncio.Event().wait()

    task = asyncio.create_task(block())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen == ["ended"]


async def test_a_block_that_is_cancelled_while_work_fails_is_cancelled() -> None:
    begun = asyncio.Event()

    async def late() -> None:
        await begun.wait()
        raise JournalError("no room left")

    async def block() -> None:
        async with beside({"0": late()}):
            await asyncio.Event().wait()

    task = asyncio.create_task(block())
    await asyncio.sleep(0)
    begun.set()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_the_exception_of_a_block_is_its_own() -> None:
    with pytest.raises(KeyError):
        async with beside({"0": goes_on()}):
            raise KeyError


async def test_work_that_is_done_disturbs_nobody() -> None:
    async def done() -> None:
        pass

    async with beside({"0": done(), "1": goes_on()}):
        await asyncio.sleep(0.01)


async def test_work_that_fails_at_its_end_is_past() -> None:
    async def fails_at_its_end() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise JournalError("too late")

    async with beside({"0": fails_at_its_end()}):
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.01)


def test_every_task_is_named_in_one_table() -> None:
    """The table says when each begins and ends."""
    named = set[str]()
    for path in Path(tasks.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            assert ast.unparse(node.func) != "asyncio.create_task" or path.name == "tasks.py", f"{path} starts a task"
            if ast.unparse(node.func) == "start":
                named.add(first_words(node.args[1]))
            elif ast.unparse(node.func) == "beside" and isinstance(node.args[0], ast.Dict):
                named.update(first_words(key) for key in node.args[0].keys if key is not None)
    assert len(named) > 10
    assert [name for name in sorted(named) if f"`{name}" not in (tasks.__doc__ or "")] == []


def first_words(name: ast.expr) -> str:
    """The name of a task up to what differs between tasks of its kind; empty: all of it does."""
    found = name.values[0] if isinstance(name, ast.JoinedStr) else name
    return str(found.value) if isinstance(found, ast.Constant) else ""
