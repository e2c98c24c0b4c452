"""A log of rounds that can be replayed, with the events and the result of each.

It has no value of a field, so a replay makes up what was read. `docs/how-to/contribute.md` says how it is used.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from reconciler.api.clusters import NotRead
from reconciler.api.plan import Action, Cause, HeldBy
from reconciler.api.refs import GVK, Identity
from reconciler.clock import Clock
from reconciler.controller.inbox import LoopEvent
from reconciler.controller.round.apply_plan import ChangeResult
from reconciler.fleet_snapshot import FleetSnapshot
from reconciler.planner import Round

log = logging.getLogger("reconciler")

_BYTES_MAX: Final = 32 * 1024 * 1024
"""Of one file; the one before it is kept as well."""


class BatchTaken(Struct, frozen=True, kw_only=True, tag=True):
    """A round begins with these events. `time`: RFC 3339; `monotonic_s` counts from an arbitrary moment."""

    time: str
    revision: str
    monotonic_s: float
    events: tuple[LoopEvent, ...]


class PlannedChange(Struct, frozen=True, kw_only=True):
    """A change of a plan, without its values. `paths`: of the fields that differ."""

    action: Action
    cluster: str
    gvk: GVK
    identity: Identity
    cause: Cause
    paths: tuple[str, ...] = ()
    held_by: HeldBy | None = None


class RoundPlanned(Struct, frozen=True, kw_only=True, tag=True):
    """The plan of the round. `unread`: clusters that did not answer."""

    unread: tuple[str, ...] = ()
    changes: tuple[PlannedChange, ...] = ()


class ChangeTried(Struct, frozen=True, kw_only=True, tag=True):
    """The answer to a change has come."""

    cluster: str
    action: Action
    identity: Identity
    has_failed: bool = False


LogLine = BatchTaken | RoundPlanned | ChangeTried


class RoundLog:
    """Writes the log, one JSON object a line. Without a file it writes nothing."""

    def __init__(self, file: Path | None = None, bytes_max: int = _BYTES_MAX) -> None:
        """`bytes_max`: above so many the file becomes FILE.1, in place of the one before, and another one begins."""
        self._file, self._bytes_max = file, bytes_max
        self._encoder = msgspec.json.Encoder(order="deterministic")

    def batch_taken(self, events: Iterable[LoopEvent], revision: str, clock: Clock) -> None:
        """Write that a round begins. `revision`: of the store, as it is followed now."""
        if self._file is not None:
            time, monotonic_s = clock.now(), clock.monotonic_s()
            self._write(BatchTaken(time=time, revision=revision, monotonic_s=monotonic_s, events=tuple(events)))

    def planned(self, planned: Round, snapshot: FleetSnapshot) -> None:
        """Write the plan of a round."""
        if self._file is None:
            return
        changes = [
            PlannedChange(
                action=change.action,
                cluster=change.cluster,
                gvk=change.gvk,
                identity=change.identity,
                cause=change.cause,
                paths=tuple(field.path for field in change.fields),
                held_by=change.hold.by if change.hold is not None else None,
            )
            for change in planned.plan.changes
        ]
        unread = tuple(sorted(name for name, member in snapshot.members.items() if isinstance(member, NotRead)))
        self._write(RoundPlanned(unread=unread, changes=tuple(changes)))

    def tried(self, result: ChangeResult) -> None:
        """Write that the answer to a change has come."""
        if self._file is not None:
            change, has_failed = result.change, bool(result.error)
            action, identity = change.action, change.identity
            line = ChangeTried(cluster=change.cluster, action=action, identity=identity, has_failed=has_failed)
            self._write(line)

    def _write(self, line: LogLine) -> None:
        """Append a line. A log that cannot be written ends, and the rounds go on."""
        assert self._file is not None, "there is a file"
        data = self._encoder.encode(line) + b"\n"
        try:
            if self._file.exists() and self._file.stat().st_size + len(data) > self._bytes_max:
                self._file.replace(f"{self._file}.1")
            descriptor = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "ab") as file:
                os.fchmod(descriptor, 0o600)
                file.write(data)
        except OSError as error:
            self._file = None
            log.warning("the log of rounds cannot be written; nothing more is written to it",
                        extra={"event": "RoundLogEnded", "error": str(error)})  # fmt: skip
