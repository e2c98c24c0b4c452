"""The inbox of the control loop: typed events from everybody, and the work that a batch of them makes.

Only `ControlLoop.reconcile` acts on events. Equal events wait once, as in the work queue of client-go, so that the
inbox is bounded by what can change. Source: design#events-are-nudges.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final, Generic, TypeVar

from msgspec import Struct, field

from reconciler.api.refs import Identity
from reconciler.clock import Clock, wait_for

Value = TypeVar("Value")


class StoreChanged(Struct, frozen=True, tag=True):
    """The store may have advanced."""


class ClusterScope(StrEnum):
    """All of a cluster, and why."""

    ALL = "all"
    """It came, left, or nobody knows what happened there."""
    ANSWERS_AGAIN = "answers again"
    """It, or a kind of it, answers again: watches begin again, since old ones may hang."""
    RESTORED = "restored"
    """It went back to an earlier state: earlier observations of it are void."""


class ClusterChanged(Struct, frozen=True, tag=True):
    """Something may have happened in a cluster: to these objects, or to all of it."""

    cluster: str
    scope: frozenset[Identity] | ClusterScope = ClusterScope.ALL


class ObjectsChanged(Struct, frozen=True, tag=True):
    """These objects have to be looked at wherever they are."""

    identities: frozenset[Identity]


class LoopTimer(StrEnum):
    """The timers of the loop itself."""

    RESYNC = "resync"
    CAPACITY = "capacity"
    """Nodes and pods are to be read again; what follows from them is a matter of the schedule."""
    UNANSWERED = "unanswered"
    """Requests without an answer are to be looked into."""
    STAGES = "stages"
    """Rollouts are to be judged."""


class TimerDue(Struct, frozen=True, tag=True):
    """A timer has run out."""

    timer: LoopTimer


class LoopOrder(StrEnum):
    """The orders of persons, and of the service."""

    LOOK = "look"
    """Look at everything: a start, an order in the journal."""
    RECONNECT = "reconnect"
    """Read again how clusters are reached."""
    RELOAD = "reload"
    """Do all of this, and read the store; somebody waits for the end of the round."""


class LoopCommand(Struct, frozen=True, tag=True):
    """Somebody orders something."""

    order: LoopOrder


class ApplyDone(Struct, frozen=True, tag=True):
    """The worker of a cluster has written all that it was given."""

    cluster: str


class RolloutEntered(Struct, frozen=True, tag=True):
    """A cluster answered the request that records the begin of a revision there."""

    cluster: str


class HealthChanged(Struct, frozen=True, tag=True):
    """The health of a copy is another one: it is reported, and a Rollout may go on."""


class Stopped(Struct, frozen=True, tag=True):
    """The loop is to end."""


LoopEvent = (
    StoreChanged
    | ClusterChanged
    | ObjectsChanged
    | TimerDue
    | LoopCommand
    | ApplyDone
    | RolloutEntered
    | HealthChanged
    | Stopped
)
_NEWS: Final = (ApplyDone, RolloutEntered, HealthChanged, Stopped)
"""Events that make no work by themselves: the loop looks at what they tell of."""


class PendingWork(Struct, frozen=True, kw_only=True):
    """The work of a round. `identities`: wherever they are. `copies`: by cluster. `clusters`: everything in them."""

    everything: bool = False
    identities: frozenset[Identity] = frozenset()
    copies: Mapping[str, frozenset[Identity]] = field(default_factory=dict)
    clusters: frozenset[str] = frozenset()
    answering: frozenset[str] = frozenset()
    """Those of the clusters that answer again."""
    restored: frozenset[str] = frozenset()
    """Those of the clusters that went back to an earlier state."""
    store: bool = False
    timers: frozenset[LoopTimer] = frozenset()
    reconnect: bool = False

    @property
    def is_empty(self) -> bool:
        """Return whether there is nothing to do."""
        due = self.everything or self.identities or self.copies or self.clusters or self.store or self.timers
        return not (due or self.reconnect)


def work_of(events: Iterable[LoopEvent]) -> PendingWork:
    """Return the work that a batch of events makes, whatever their order."""
    identities, copies, timers = set[Identity](), dict[str, set[Identity]](), set[LoopTimer]()
    scopes: dict[ClusterScope, set[str]] = {scope: set() for scope in ClusterScope}
    orders, is_store_due = set[LoopOrder](), False
    for event in events:
        match event:
            case StoreChanged():
                is_store_due = True
            case ClusterChanged(cluster, ClusterScope() as scope):
                scopes[scope].add(cluster)
            case ClusterChanged(cluster, frozenset() as objects):
                copies.setdefault(cluster, set()).update(objects)
            case ObjectsChanged(found):
                identities |= found
            case TimerDue(timer):
                timers.add(timer)
            case LoopCommand(order):
                orders.add(order)
            case _:
                pass
    return PendingWork(
        everything=LoopTimer.RESYNC in timers or bool(orders & {LoopOrder.LOOK, LoopOrder.RELOAD}),
        identities=frozenset(identities),
        copies={cluster: frozenset(objects) for cluster, objects in copies.items() if objects},
        clusters=frozenset().union(*scopes.values()),
        answering=frozenset(scopes[ClusterScope.ANSWERS_AGAIN]),
        restored=frozenset(scopes[ClusterScope.RESTORED]),
        store=is_store_due or LoopOrder.RELOAD in orders,
        timers=frozenset(timers - {LoopTimer.RESYNC}),
        reconnect=bool(orders & {LoopOrder.RECONNECT, LoopOrder.RELOAD}),
    )


class Inbox:
    """Events that wait for the loop. Everything is called in the event loop's thread."""

    def __init__(self) -> None:
        self._events: dict[LoopEvent, None] = {}
        self._arrived = asyncio.Event()

    def send(self, *events: LoopEvent) -> None:
        """Have the next batch contain these."""
        if events:
            self._events.update(dict.fromkeys(events))
            self._arrived.set()

    def changed(self, identities: Iterable[Identity], cluster: str = "") -> None:
        """Have these be looked at in a cluster; empty: wherever they are. Of no identities nothing is sent."""
        if chosen := frozenset(identities):
            self.send(ClusterChanged(cluster, chosen) if cluster else ObjectsChanged(chosen))

    def __contains__(self, event: LoopEvent) -> bool:
        return event in self._events

    @property
    def has_work(self) -> bool:
        """Return whether a waiting event makes work, and is no news alone."""
        return any(not isinstance(event, _NEWS) for event in self._events)

    def take(self) -> tuple[LoopEvent, ...]:
        """Return what waits, in the order in which it came; it waits no longer."""
        events, self._events = tuple(self._events), {}
        return events

    async def batch(self, within_s: float, clock: Clock) -> tuple[LoopEvent, ...]:
        """Return what waits, once anything does; nothing, if nothing came within so many seconds."""
        # Others run between two batches, however much is due.
        await (asyncio.sleep(0) if self._events or within_s <= 0 else self.arrival(within_s, clock))
        return self.take()

    async def arrival(self, within_s: float, clock: Clock) -> None:
        """Wait until one more event was sent, at most so many seconds."""
        self._arrived.clear()
        await wait_for(self._arrived, within_s, clock)


class Published(Generic[Value]):
    """A frozen value that the loop alone exchanges; tasks beside it look at it. Over an await it may be another."""

    def __init__(self, value: Value) -> None:
        self.value = value

    def publish(self, value: Value) -> None:
        """Have others see this value from now on."""
        self.value = value
