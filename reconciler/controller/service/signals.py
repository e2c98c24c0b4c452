"""The daemon as a service: signals come in, readiness and signs of life go out.

Signs of life are of the control loop's progress: a timer that always fires would prove nothing.
Source: sd_notify(3), systemd.service(5): `WatchdogSec=`, `Type=notify`, `Type=notify-reload`.
"""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from msgspec import Struct, field

from reconciler.clock import Clock
from reconciler.controller import timing
from reconciler.controller.service.descriptors import Notifier
from reconciler.controller.tasks import ended, start
from reconciler.controller.vitals.service_vitals import Vitals

log = logging.getLogger("reconciler")

_ENOUGH = 65_536
"""A higher limit would be of no use."""


class Signals(Struct):
    """Requests from outside."""

    stop: asyncio.Event = field(default_factory=asyncio.Event)
    reload: asyncio.Event = field(default_factory=asyncio.Event)

    def install(self) -> None:
        """Take SIGTERM and SIGINT as a wish to stop, SIGHUP as a wish to read everything again.

        A second SIGTERM or SIGINT ends the process at once: whoever sends it has waited long enough, and the journal
        is made for it.
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
        start(_tell_of_the_end(signals, notifier), "end of the service"),
    ]
    try:
        yield signals
    finally:
        notifier.stopping()
        await ended(tasks)
        notifier.close()
        signals.uninstall()


async def _tell_of_the_end(signals: Signals, notifier: Notifier) -> None:
    await signals.stop.wait()
    notifier.stopping()


async def supervise(
    vitals: Vitals, notifier: Notifier, clock: Clock, *, environ: Mapping[str, str] = os.environ
) -> None:
    """Tell the service manager how it goes, until cancelled: readiness, the phase, signs of life.

    It runs on the event loop that it vouches for, so a blocked loop sends nothing either.
    """
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
            notifier.extend_timeout(timing.START_EXTENSION_S)
        if is_alive and interval_s is not None and now_s >= next_s:
            notifier.watchdog()
            next_s = now_s + interval_s
        await clock.sleep(min(timing.TICK_S, interval_s or timing.TICK_S))


def status_line(vitals: Vitals, *, is_alive: bool = True) -> str:
    """Return the text for `systemctl status`: the phase, the revision, and faults."""
    parts = [vitals.phase if is_alive else f"stalled while {vitals.phase}"]
    if vitals.revision:
        parts.append(f"revision {vitals.revision.removeprefix('dir:')[:12]}")
    down = sorted(name for name, cluster in vitals.clusters.items() if not cluster.is_up)
    if vitals.is_ready and down:
        shown = ", ".join(down[:3]) + (", …" if len(down) > 3 else "")
        parts.append(f"{len(down)} of {len(vitals.clusters)} clusters not reachable ({shown})")
    if vitals.source_error:
        parts.append(f"store: {vitals.source_error}")
    if vitals.journal_error:
        parts.append(f"journal: {vitals.journal_error}")
    if vitals.suspended:
        parts.append("suspended")
    return "; ".join(parts)


def raise_descriptors() -> int:
    """Return how many files this process may open from now on: as many as the hard limit allows.

    A watch of each kind in each cluster needs one, and the limit of a shell or container is low.
    """
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
