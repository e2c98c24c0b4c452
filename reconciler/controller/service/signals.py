"""The daemon as a service: signals come in, readiness and signs of life go out over the socket of the service manager.

Signs of life are of the control loop's progress: a timer that always fires would prove nothing.
Source: sd_notify(3), systemd.service(5): `WatchdogSec=`, `Type=notify`, `Type=notify-reload`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import resource
import signal
import socket
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final

from msgspec import Struct, field

from reconciler.api.refs import short_revision
from reconciler.clock import Clock
from reconciler.controller import timing
from reconciler.controller.tasks import end_tasks, once_set, start
from reconciler.controller.vitals.service_vitals import Vitals

log = logging.getLogger("reconciler")

_STATUS_MAX: Final = 400


class Notifier:
    """Sends nothing, and fails at nothing, when no service manager listens."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        """Take the socket from `$NOTIFY_SOCKET`; a name that begins with `@` is in the abstract name space."""
        name = environ.get("NOTIFY_SOCKET", "")
        self._address = "\0" + name[1:] if name.startswith("@") else name
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) if name else None
        self._status = ""
        self._is_stopping = False

    @property
    def is_listened_to(self) -> bool:
        """Return whether there is a service manager."""
        return self._socket is not None

    def send(self, *lines: str) -> None:
        """One message. A service manager that is gone or busy is no reason to stop."""
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.sendto("\n".join(lines).encode(), self._address)

    def ready(self) -> None:
        """The start is done, or a reload is."""
        self.send("READY=1")

    def status(self, text: str) -> None:
        """Set the text of `systemctl status`; sent when it changes."""
        line = " ".join(text.split())[:_STATUS_MAX]
        if line != self._status:
            self._status = line
            self.send(f"STATUS={line}")

    def reloading(self) -> None:
        """A reload begins; `ready` ends it. `Type=notify-reload` needs the monotonic time with it."""
        self.send("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def stopping(self) -> None:
        """The end has begun; said once."""
        if not self._is_stopping:
            self._is_stopping = True
            self.send("STOPPING=1")

    def close(self) -> None:
        """Say no more."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None


_ENOUGH = 65_536
"""A higher limit would be of no use."""


class Signals(Struct):
    """Requests from outside."""

    stop: asyncio.Event = field(default_factory=asyncio.Event)
    reload: asyncio.Event = field(default_factory=asyncio.Event)

    def install(self) -> None:
        """Take SIGTERM and SIGINT as a wish to stop, SIGHUP as a wish to read everything again.

        A second SIGTERM or SIGINT ends the process at once: whoever sends it has waited long enough.
        """
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop, number)
        loop.add_signal_handler(signal.SIGHUP, self.reload.set)

    def _stop(self, number: int) -> None:
        if self.stop.is_set():
            os._exit(128 + number)
        self.stop.set()

    def uninstall(self) -> None:
        """Leave signals as Python has them."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.remove_signal_handler(number)


def is_progressing(vitals: Vitals, now_s: float) -> bool:
    """Return whether the control loop made progress lately. `now_s` is of the same monotonic clock as the heartbeat."""
    return now_s - vitals.heartbeat_s < timing.STALL_S + vitals.allowance_s


def watchdog_interval_s(environ: Mapping[str, str], pid: int) -> float | None:
    """Return the interval of the watchdog's signals: a third of systemd's limit; None without one."""
    of_this = environ.get("WATCHDOG_PID", str(pid)) == str(pid)
    limit = environ.get("WATCHDOG_USEC", "")
    return int(limit) / 3e6 if of_this and limit.isdigit() and int(limit) > 0 else None


@asynccontextmanager
async def in_service(
    vitals: Vitals, clock: Clock, *, environ: Mapping[str, str] = os.environ
) -> AsyncIterator[Signals]:
    """Signals taken and the service manager kept informed, until the block ends."""
    vitals.heartbeat_s = vitals.heartbeat_s or clock.monotonic_s()
    notifier = Notifier(environ)
    signals = Signals()
    signals.install()
    tasks = [
        start(supervise(vitals, notifier, clock, environ=environ), "signs of life"),
        start(once_set(signals.stop, notifier.stopping), "end of the service"),
    ]
    try:
        yield signals
    finally:
        notifier.stopping()
        await end_tasks(tasks)
        notifier.close()
        signals.uninstall()


async def supervise(
    vitals: Vitals, notifier: Notifier, clock: Clock, *, environ: Mapping[str, str] = os.environ
) -> None:
    """Tell the service manager readiness, phase and signs of life, from the event loop that it vouches for."""
    interval_s = watchdog_interval_s(environ, os.getpid())
    is_told_ready = is_told_reload = False
    next_s = clock.monotonic_s()
    while notifier.is_listened_to:
        now_s = clock.monotonic_s()
        is_alive = is_progressing(vitals, now_s)
        notifier.status(status_line(vitals, is_alive=is_alive))
        if vitals.is_ready and not is_told_ready:
            notifier.ready()
            is_told_ready = True
        if is_told_ready and vitals.is_reloading is not is_told_reload:
            is_told_reload = vitals.is_reloading
            (notifier.reloading if is_told_reload else notifier.ready)()
        if is_alive and not is_told_ready:
            notifier.send(f"EXTEND_TIMEOUT_USEC={int(timing.START_EXTENSION_S * 1e6)}")
        if is_alive and interval_s is not None and now_s >= next_s:
            notifier.send("WATCHDOG=1")
            next_s = now_s + interval_s
        await clock.sleep(min(timing.TICK_S, interval_s or timing.TICK_S))


def status_line(vitals: Vitals, *, is_alive: bool = True) -> str:
    """Return the text for `systemctl status`: the phase, the revision, and faults."""
    parts = [vitals.phase if is_alive else f"stalled while {vitals.phase}"]
    if vitals.revision:
        parts.append(f"revision {short_revision(vitals.revision).removeprefix('dir:')}")
    down = sorted(name for name, cluster in vitals.snapshot.clusters.items() if not cluster.is_up)
    if vitals.is_ready and down:
        names = ", ".join(down[:3]) + (", …" if len(down) > 3 else "")
        parts.append(f"{len(down)} of {len(vitals.snapshot.clusters)} clusters not reachable ({names})")
    if vitals.source_error:
        parts.append(f"store: {vitals.source_error}")
    if vitals.snapshot.suspended:
        parts.append("suspended")
    return "; ".join(parts)


def raise_descriptors() -> int:
    """Raise the soft limit of open files to the hard one, since each watch needs a file; return the new limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _ENOUGH if hard == resource.RLIM_INFINITY else min(hard, _ENOUGH)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError) as error:
            log.warning("the limit of open files cannot be raised",
                        extra={"event": "DescriptorsLimited", "error": str(error)})  # fmt: skip
            return soft
        return wanted
    return soft
