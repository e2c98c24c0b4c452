"""Run a coroutine from a command."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


def run(work: Coroutine[Any, Any, Result]) -> Result:
    """Run the coroutine and return its result.

    The result does not pass through `asyncio.run`: when it puts the signal handler back, Python 3.11 writes out the
    finished task with its result, which for a whole round takes longer than the round.
    """
    # Imported here: completing a word, and commands that ask no cluster, need not wait for it.
    import asyncio

    results: list[Result] = []

    async def boxed() -> None:
        results.append(await work)

    asyncio.run(boxed())
    return results[0]
