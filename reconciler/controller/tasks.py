"""Tasks of the service: how they are started and ended, and which there are.

Everything runs in one event loop. A block that starts tasks with `beside` ends with them; a task that is started with
`start` is ended by its owner, which has a `close`. Work that computes for long goes to a thread with
`asyncio.to_thread`; its caller waits for it.

| task | begins | ends |
|---|---|---|
| `signs of life`, `end of the service` | with the service (`service.signals`) | with it |
| `orders`, `reloads`, `profiles`, `receivers` | when the journal is open (`service.serve_fleet`) | with the service |
| `telling of the full journal` | when it has no room (`service.serve_fleet`) | when it has again |
| `receiver NAME` | with `receivers` (`service.serve_fleet`): one a webhook, and one for the forge | with `receivers` |
| `event N`, `first of several` | where events are waited for | when the waiting ends |
| `campaign`, `store of a standby` | when a process stands by (`service.leadership`) | when it leads or ends |
| `lease` | when a process leads | when the Lease is lost, or the service ends |
| `handover`, `unread marks` | when a leader has taken over | when it leads no more |
| `store`, `away`, `kinds`, `pods`, `restores`, `polls`, `start` | with the control loop (`loop`) | with it |
| `stop of the loop` | with the control loop (`loop`) | when the loop is to end |
| `asking CLUSTER` | when it is away (`retries.kind_faults`) or silent (`reading.members`) | with the answer |
| `asking CLUSTER for KIND` | when the pause of a kind is over (`retries.kind_faults`) | with the answer |
| `reading CLUSTER` | in a round (`reading.late`) | with the answer; a later round takes it |
| `writing to CLUSTER` | when a round has changes for a cluster (`retries.workers`) | when all of them are answered |
| `entering CLUSTER` | when a stage of a Rollout begins there (`rollouts.entering`) | when its record is written |
| `watching CLUSTER KIND` | when a kind has a copy there (`watches.kind_watches`) | when it has none, or left |
| `listing CLUSTER`, `looking at CLUSTER` | when it is due, without watches (`watches.polls`) | with the answers |
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar

Value = TypeVar("Value")


def start(work: Coroutine[Any, Any, Value], name: str, ended: Callable[[], None] | None = None) -> asyncio.Task[Value]:
    """Start a task of the table above, and return it. `ended` is called when it has ended in any way."""
    task = asyncio.create_task(work, name=name)
    if ended is not None:
        task.add_done_callback(lambda _: ended())
    return task


@asynccontextmanager
async def either(*events: asyncio.Event) -> AsyncIterator[asyncio.Event]:
    """Yield an event that is set as soon as one of these is; setting it changes none of them."""
    joined = asyncio.Event()

    async def passed_on(event: asyncio.Event) -> None:
        await event.wait()
        joined.set()

    async with beside({f"event {number}": passed_on(event) for number, event in enumerate(events)}):
        for event in events:
            if event.is_set():
                joined.set()
        yield joined


@asynccontextmanager
async def beside(works: Mapping[str, Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
    """Work by the names of its tasks, which goes on until the block ends.

    Where one fails, the block is broken off and ends with that exception: nobody would notice that it goes on no more.
    """
    block = asyncio.current_task()
    assert block is not None, "it runs in a task"
    failed: list[BaseException] = []
    has_ended = False

    def look(task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (fault := task.exception()) is not None and not has_ended:
            failed.append(fault)
            if len(failed) == 1:
                block.cancel()

    tasks = [start(work, name) for name, work in works.items()]
    for task in tasks:
        task.add_done_callback(look)
    try:
        yield
    except asyncio.CancelledError:
        if not failed or block.uncancel():
            raise
        raise failed[0] from None
    finally:
        has_ended = True
        await ended(tasks)


async def ended(tasks: Iterable[asyncio.Future[Any]]) -> None:
    """End tasks, whatever they do."""
    found = list(tasks)
    for task in found:
        task.cancel()
    await asyncio.gather(*found, return_exceptions=True)


async def first_of(*works: Coroutine[Any, Any, object]) -> None:
    """Wait until one of these has ended; the others are ended then."""
    tasks = [start(work, "first of several") for work in works]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await ended(tasks)
