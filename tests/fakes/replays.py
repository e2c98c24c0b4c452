"""Replays of a log of rounds on embedded clusters: the same events, at the same times, over the same revisions.

The log has no values. So what somebody else had changed is changed here to some other value of the same fields, what
somebody had deleted is deleted, a cluster that did not answer does not, and a change that failed is refused.
"""

from __future__ import annotations

import asyncio
import copy
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from reconciler.api.plan import Action, Cause, HeldBy
from reconciler.api.refs import Identity
from reconciler.controller.inbox import Inbox
from reconciler.controller.loop import ControlLoop
from reconciler.controller.loop_state import LoopParts
from reconciler.controller.round.round_log import BatchTaken, ChangeTried, LogLine, PlannedChange, RoundPlanned
from reconciler.sim import Fault, FaultKind, FleetInABox, Request, is_write
from reconciler.store import StoreSource

Line = BatchTaken | RoundPlanned | ChangeTried
_SERVES_S = 60.0
"""So much time passes where a round found nothing that waits for a copy: all copies serve by then."""
_SEGMENT = re.compile(r"\.?((?:[^.\[\]]|\[\])+)|\[([^\]]*)\]")


class ReplayClock:
    """The time of the round that is replayed. Pauses are over at once."""

    def __init__(self) -> None:
        self.line = BatchTaken(time="2026-11-21T10:00:00Z", revision="", monotonic_s=0.0, events=())

    def now(self) -> str:
        return self.line.time

    def monotonic_s(self) -> float:
        return self.line.monotonic_s

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(min(seconds, 0.01))  # whoever waits for something real has to let it go on


class _Deaf(Inbox):
    """Keeps nothing that is sent: the log has all events. Whoever waits for one goes on."""

    def send(self, *_: object) -> None:
        self._arrived.set()


class _At:
    """A store at a revision of its past."""

    def __init__(self, source: StoreSource, clock: ReplayClock) -> None:
        self._source, self._clock, self._read = source, clock, ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    async def read(self) -> Any:
        if self._clock.line.revision in ("", self._read):
            return None
        self._read = self._clock.line.revision
        return self._source.recall(self._read)


def rounds_of(lines: Iterable[Line]) -> Iterator[tuple[BatchTaken, RoundPlanned]]:
    """Yield each batch with its plan; an empty one, where the batch came to none."""
    batch, plan = None, RoundPlanned()
    for line in lines:
        if isinstance(line, RoundPlanned):
            plan = line
        elif isinstance(line, BatchTaken):
            if batch is not None:
                yield batch, plan
            batch, plan = line, RoundPlanned()
    if batch is not None:
        yield batch, plan


async def replay(lines: list[Line], parts: LoopParts, box: FleetInABox, clock: ReplayClock) -> None:
    """Run a loop over the rounds of a log. `parts` have the clock, and a journal as it was when the log began."""
    source = cast("StoreSource", _At(parts.source, clock))
    loop = ControlLoop(replace(parts, source=source), inbox=_Deaf())
    state = loop.initial_state()
    world = _World(box, [line for line in lines if isinstance(line, ChangeTried)])
    try:
        for batch, plan in rounds_of(lines):
            clock.line = batch
            for name in await world.prepare(plan):
                if name in loop.members:
                    await loop.members[name].identity(is_anew=True)
            state, _ = await loop.reconcile(state, batch.events)
            loop._published.publish(state)
    finally:
        await loop.close()


class _World:
    """The embedded clusters, as the rounds of a log found them."""

    def __init__(self, box: FleetInABox, tried: list[ChangeTried]) -> None:
        self._box, self._tried = box, tried
        self._silent: set[str] = set()
        self._edited: dict[tuple[str, Identity], Any] = {}

    async def prepare(self, plan: RoundPlanned) -> list[str]:
        """Be as a round found it; return the clusters that answer again."""
        back = sorted(self._silent.difference(plan.unread))
        for name in back:
            await self._box.servers[name].start()
        for name in set(plan.unread) - self._silent:
            await self._box.servers[name].stop()
        self._silent = set(plan.unread)
        if not any(change.held_by is HeldBy.MOVE for change in plan.changes):
            self._box.advance(_SERVES_S)
        for change in plan.changes:
            if change.cause is Cause.DRIFT:
                self._drift(change)
            if change.held_by is None:
                self._fail(change)
        return back

    def _drift(self, change: PlannedChange) -> None:
        _, kind, namespace, name = change.identity
        state = self._box[change.cluster].state
        live = state.get(kind, namespace, name)
        if live is None:
            return
        if change.action is Action.CREATE:
            kept_as = next(kept_as for kept_as, body in state.store.everything() if body is live)
            state.remove(kept_as, live)
        elif live != self._edited.get((change.cluster, change.identity)):
            edited = copy.deepcopy(live)
            for path in change.paths:
                _edit(edited, path)
            self._edited[change.cluster, change.identity] = state.put(edited)

    def _fail(self, change: PlannedChange) -> None:
        same = (change.cluster, change.action, change.identity)
        found = next((line for line in self._tried if (line.cluster, line.action, line.identity) == same), None)
        if found is None:
            return
        self._tried.remove(found)

        def is_it(request: Request) -> bool:
            return is_write(request) and request.path.endswith(f"/{change.identity.name}")

        if found.has_failed:
            self._box.servers[change.cluster].faults.order(Fault(kind=FaultKind.FORBIDDEN), when=is_it, times=1)


def _edit(body: dict[str, Any], path: str) -> None:
    """Give the field of a path another value; what there is no way to stays."""
    at: Any = body
    keys: list[Any] = []
    for name, chosen in _SEGMENT.findall(path):
        keys.append(name or dict(pair.split("=", 1) for pair in chosen.split(",") if "=" in pair))
    for key in keys[:-1]:
        at = next((one for one in at if key.items() <= one.items()), None) if isinstance(key, dict) else at.get(key)
        if at is None:
            return
    known = at.get(keys[-1])
    at[keys[-1]] = known + 1 if isinstance(known, int) and not isinstance(known, bool) else f"{known or ''}-theirs"


def read_rounds(file: Path) -> list[LogLine]:
    """Return the lines of a log.

    Raises:
        msgspec.MsgspecError: a line is of another version, or none of a log.
    """
    decoder = msgspec.json.Decoder(LogLine)
    return [decoder.decode(line) for line in file.read_bytes().splitlines()]
