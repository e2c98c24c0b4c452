"""Hints of the kernel that something below a folder changed. They may come late, twice, or never."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from watchfiles import awatch

from reconciler.adapters.clock import Clock

_QUIET_MS: Final = 20
_LONGEST_MS: Final = 500
_RETRY_S: Final = 5.0


class Watch:
    """Sets `hint` when something changes below the folders, until it is closed.

    A burst gives one hint: when nothing more has come for 20 ms, but after 500 ms at the latest. Where the kernel has
    no watches left (ENOSPC, EMFILE), `fault` says so, and it is tried again now and then; whoever needs to know polls.
    """

    def __init__(self, folders: Iterable[Path], hint: asyncio.Event, clock: Clock, *, recursive: bool = True) -> None:
        """Begin to watch."""
        self.fault = ""
        self._folders = tuple(folders)
        self._hint = hint
        self._clock = clock
        self._recursive = recursive
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Stop watching."""
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    async def _run(self) -> None:
        while True:
            try:
                async for _ in awatch(
                    *self._folders,
                    watch_filter=None,
                    debounce=_LONGEST_MS,
                    step=_QUIET_MS,
                    recursive=self._recursive,
                    ignore_permission_denied=True,
                ):
                    self.fault = ""
                    self._hint.set()
            # watchfiles raises what its Rust part makes of the system's error: OSError or a RuntimeError of its own.
            except (OSError, RuntimeError) as error:
                self.fault = f"no file events ({error})"
            await self._clock.sleep(_RETRY_S)


async def wait_for(event: asyncio.Event, seconds: float, clock: Clock) -> bool:
    """Return whether the event came within the time."""
    waiting = asyncio.ensure_future(event.wait())
    sleeping = asyncio.ensure_future(clock.sleep(seconds))
    try:
        await asyncio.wait({waiting, sleeping}, return_when=asyncio.FIRST_COMPLETED)
        return event.is_set()
    finally:
        for task in (waiting, sleeping):
            task.cancel()
        await asyncio.gather(waiting, sleeping, return_exceptions=True)
