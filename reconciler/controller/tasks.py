"""Tasks of the service: how they are started and ended, which there are, and the queue of what they try again.

Everything runs in one event loop. A block that starts tasks with `beside` ends with them; a task that is started with
`start` is ended by its owner, which has a `close`. Work that computes for long goes to a thread with `in_thread`; its
caller waits for it.

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
| `asking CLUSTER` | when it is away (`retries.kind_faults`) or silent (`cluster_reads.members`) | with the answer |
| `asking CLUSTER for KIND` | when the pause of a kind is over (`retries.kind_faults`) | with the answer |
| `reading CLUSTER` | in a round (`cluster_reads.slow_clusters`) | with the answer; a later round takes it |
| `writing to CLUSTER` | when a round has changes for a cluster (`retries.workers`) | when all of them are answered |
| `entering CLUSTER` | when a stage of a Rollout begins there (`rollouts.requests`) | when its record is written |
| `watching CLUSTER KIND` | when a kind has a copy there (`watches.kind_watches`) | when it has none, or left |
| `listing CLUSTER`, `looking at CLUSTER` | when it is due, without watches (`watches.polls`) | with the answers |

The work queue is modelled on the rate-limited one of client-go (`k8s.io/client-go/util/workqueue`). One task uses it,
and looks for itself at what is due. All its times are seconds of the monotonic clock.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Iterable, Mapping
from contextlib import asynccontextmanager
from math import inf
from typing import Any, Generic, ParamSpec, TypeVar

from msgspec import Struct

from reconciler.clock import BackOff, Clock

Parameters = ParamSpec("Parameters")
Value = TypeVar("Value")
Key = TypeVar("Key")


def start(work: Coroutine[Any, Any, Value], name: str, ended: Callable[[], None] | None = None) -> asyncio.Task[Value]:
    """Start a task of the table above, and return it. `ended` is called when it has ended in any way."""
    task = asyncio.create_task(work, name=name)
    if ended is not None:
        task.add_done_callback(lambda _: ended())
    return task


async def in_thread(work: Callable[Parameters, Value], *args: Parameters.args, **more: Parameters.kwargs) -> Value:
    """Return what a function gives in another thread, where it is in nobody's way."""
    return await asyncio.to_thread(work, *args, **more)


async def once_set(event: asyncio.Event, then: Callable[[], object]) -> None:
    """Call a function when an event is set."""
    await event.wait()
    then()


@asynccontextmanager
async def either(*events: asyncio.Event) -> AsyncIterator[asyncio.Event]:
    """Yield an event that is set as soon as one of these is; setting it changes none of them."""
    joined = asyncio.Event()
    async with beside({f"event {number}": once_set(event, joined.set) for number, event in enumerate(events)}):
        for event in events:
            if event.is_set():
                joined.set()
        yield joined


@asynccontextmanager
async def beside(works: Mapping[str, Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
    """Run works, by the names of their tasks, until the block ends. A failure of one ends the block with it."""
    block = asyncio.current_task()
    assert block is not None, "it runs in a task"
    failed: list[BaseException] = []
    has_ended = False

    def note_failure(task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (fault := task.exception()) is not None and not has_ended:
            failed.append(fault)
            if len(failed) == 1:
                block.cancel()

    tasks = [start(work, name) for name, work in works.items()]
    for task in tasks:
        task.add_done_callback(note_failure)
    try:
        yield
    except asyncio.CancelledError:
        if not failed or block.uncancel():
            raise
        raise failed[0] from None
    finally:
        has_ended = True
        await end_tasks(tasks)


async def end_tasks(tasks: Iterable[asyncio.Future[Any]]) -> None:
    """End tasks, whatever they do."""
    ending = list(tasks)
    for task in ending:
        task.cancel()
    await asyncio.gather(*ending, return_exceptions=True)


async def first_of(*works: Coroutine[Any, Any, object]) -> None:
    """Wait until one of these has ended; the others are ended then."""
    tasks = [start(work, "first of several") for work in works]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await end_tasks(tasks)


class _Item(Struct):
    """The due time of a key, its failures in a row, and whether it is being processed."""

    due_s: float
    failures: int = 0
    is_taken: bool = False


class WorkQueue(Generic[Key]):
    """Keys by when they are due. A key stays, and its failures count, until it is forgotten."""

    def __init__(
        self, back_off: BackOff, clock: Clock, *, jitter: Callable[[], float] | None = None, per_second_max: float = inf
    ) -> None:
        """Begin empty. `jitter`: as of a back-off. `per_second_max`: where more keys fail, each waits longer."""
        self._back_off, self._clock = back_off, clock
        self._jitter, self._per_second_max = jitter, per_second_max
        self._items: dict[Key, _Item] = {}

    def __contains__(self, key: object) -> bool:
        return key in self._items

    @property
    def keys(self) -> Collection[Key]:
        """All keys, due or not."""
        return self._items.keys()

    @property
    def next_s(self) -> float:
        """The time at which a key is due next; endless: none is."""
        return min((item.due_s for item in self._items.values() if not item.is_taken), default=inf)

    def due(self) -> list[Key]:
        """Return the keys that are due and not being worked on, that which waits longest first."""
        now_s = self._clock.monotonic_s()
        due = [(key, item.due_s) for key, item in self._items.items() if not item.is_taken and now_s >= item.due_s]
        return [key for key, _ in sorted(due, key=lambda each: each[1])]

    def is_waiting(self, key: Key) -> bool:
        """Tell whether the pause of a key is not over."""
        return key in self._items and self._clock.monotonic_s() < self._items[key].due_s

    def add_after(self, key: Key, pause_s: float) -> None:
        """Have a key be due after the pause at the latest: an earlier time stays."""
        item = self._items.setdefault(key, _Item(inf))
        item.due_s, item.is_taken = min(item.due_s, self._clock.monotonic_s() + pause_s), False

    def requeue_after(self, key: Key, pause_s: float) -> None:
        """Have a key be due after just this pause, which counts as no failure."""
        item = self._items.setdefault(key, _Item(inf))
        item.due_s, item.is_taken = self._clock.monotonic_s() + pause_s, False

    def requeue_rate_limited(self, key: Key) -> None:
        """Count a failure of a key, and have it be due after the pause that follows so many."""
        item = self._items.setdefault(key, _Item(inf))
        item.failures += 1
        pause_s = self._back_off.pause_s(item.failures, self._jitter)
        self.requeue_after(key, max(pause_s, len(self._items) / self._per_second_max))

    def take(self, key: Key) -> None:
        """Have a key of the queue be worked on: it is not due before it is put back."""
        if key in self._items:
            self._items[key].is_taken = True

    def reset(self, key: Key) -> None:
        """Count the failures of a key no more; when it is due stays."""
        if key in self._items:
            self._items[key].failures = 0

    def forget(self, key: Key) -> None:
        """Take a key out with its failures."""
        self._items.pop(key, None)

    def keep(self, keys: Collection[Key]) -> None:
        """Forget all keys but these."""
        self._items = {key: item for key, item in self._items.items() if key in keys}
