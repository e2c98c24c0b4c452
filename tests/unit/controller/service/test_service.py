from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.controller import timing
from reconciler.controller.service.signals import (
    Notifier,
    in_service,
    is_progressing,
    status_line,
    supervise,
    watchdog_interval_s,
)
from reconciler.controller.vitals.service_vitals import StatusSnapshot, Vitals
from reconciler.state import ClusterState
from tests.fakes.clocks import TestClock


class Manager:
    """A service manager that takes messages."""

    def __init__(self, address: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind("\0" + address[1:] if address.startswith("@") else address)
        self.socket.setblocking(False)
        self.environ = {"NOTIFY_SOCKET": address}

    def told(self) -> list[str]:
        found = []
        while True:
            try:
                found.append(self.socket.recv(65536).decode())
            except BlockingIOError:
                return found


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Manager]:
    found = Manager(str(tmp_path / "notify"))
    yield found
    found.socket.close()


async def _watch(vitals: Vitals, manager: Manager, seconds: int, clock: TestClock, **environ: str) -> list[str]:
    """Collect what is told while so many seconds pass."""
    notifier = Notifier(manager.environ)
    task = asyncio.create_task(supervise(vitals, notifier, clock, environ=environ))
    until_s = clock.monotonic_s() + seconds
    while clock.monotonic_s() < until_s:
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    notifier.close()
    return manager.told()


def test_speaks_to_a_socket_in_the_file_system(manager: Manager) -> None:
    notifier = Notifier(manager.environ)
    notifier.ready()
    notifier.stopping()
    notifier.send("EXTEND_TIMEOUT_USEC=1500000")
    notifier.reloading()
    notifier.close()
    *plain, reloading = manager.told()
    assert plain == ["READY=1", "STOPPING=1", "EXTEND_TIMEOUT_USEC=1500000"]
    assert re.fullmatch(r"RELOADING=1\nMONOTONIC_USEC=\d+", reloading)


def test_speaks_to_an_abstract_socket() -> None:
    manager = Manager(f"@fleet-reconciler-test-{os.getpid()}")
    notifier = Notifier(manager.environ)
    notifier.ready()
    notifier.close()
    assert manager.told() == ["READY=1"]
    manager.socket.close()


def test_is_silent_without_a_service_manager_and_when_it_went_away(tmp_path: Path) -> None:
    nobody = Notifier({})
    assert not nobody.is_listened_to
    nobody.ready()
    gone = Notifier({"NOTIFY_SOCKET": str(tmp_path / "nobody")})
    gone.ready()
    gone.close()


def test_a_status_is_one_line_and_told_when_it_changes(manager: Manager) -> None:
    notifier = Notifier(manager.environ)
    for text in ("idle", "idle", "two\nREADY=1 lines", "x" * 1000):
        notifier.status(text)
    notifier.close()
    first, second, third = manager.told()
    assert (first, second) == ("STATUS=idle", "STATUS=two READY=1 lines")
    assert len(third) < 500


async def test_is_ready_once_when_the_daemon_is(manager: Manager) -> None:
    clock, vitals = TestClock(), Vitals(phase="loading")
    told = await _watch(vitals, manager, 5, clock)
    assert "READY=1" not in told
    assert "EXTEND_TIMEOUT_USEC=60000000" in told
    vitals.is_ready, vitals.phase = True, "idle"
    told = await _watch(vitals, manager, 5, clock)
    assert told.count("READY=1") == 1
    assert not [line for line in told if line.startswith("EXTEND")]
    assert "STATUS=idle" in told


async def test_gives_signs_of_life_only_while_there_is_progress(manager: Manager) -> None:
    clock, vitals = TestClock(), Vitals(is_ready=True, phase="planning")
    told = await _watch(vitals, manager, 60, clock, WATCHDOG_USEC="60000000")
    assert 3 <= told.count("WATCHDOG=1") <= 5
    clock.advance(timing.STALL_S)
    told = await _watch(vitals, manager, 60, clock, WATCHDOG_USEC="60000000")
    assert "WATCHDOG=1" not in told
    assert "STATUS=stalled while planning" in told
    vitals.heartbeat_s = clock.monotonic_s()
    assert "WATCHDOG=1" in await _watch(vitals, manager, 30, clock, WATCHDOG_USEC="60000000")


async def test_a_start_that_makes_no_progress_is_not_given_more_time(manager: Manager) -> None:
    clock = TestClock()
    clock.advance(timing.STALL_S)
    assert not [line for line in await _watch(Vitals(), manager, 5, clock) if line.startswith("EXTEND")]


async def test_the_begin_and_the_end_of_a_reload_are_told(manager: Manager) -> None:
    vitals, clock = Vitals(is_ready=True, is_reloading=True), TestClock()

    async def end() -> None:
        while clock.monotonic_s() < 3:
            await asyncio.sleep(0)
        vitals.is_reloading = False

    ending = asyncio.create_task(end())
    told = await _watch(vitals, manager, 6, clock)
    await ending
    states = [line.partition("=")[0] for line in told if not line.startswith("STATUS")]
    assert states == ["READY", "RELOADING", "READY"]


def test_the_watchdog_is_served_as_systemd_asks() -> None:
    assert watchdog_interval_s({"WATCHDOG_USEC": "60000000"}, 7) == 20
    assert watchdog_interval_s({"WATCHDOG_USEC": "60000000", "WATCHDOG_PID": "7"}, 7) == 20
    for environ in ({}, {"WATCHDOG_USEC": "0"}, {"WATCHDOG_USEC": "x"}, {"WATCHDOG_USEC": "9", "WATCHDOG_PID": "8"}):
        assert watchdog_interval_s(environ, 7) is None, environ


def test_progress_is_a_fresh_heartbeat() -> None:
    assert is_progressing(Vitals(heartbeat_s=10), 10 + timing.STALL_S - 1)
    assert not is_progressing(Vitals(heartbeat_s=10), 10 + timing.STALL_S)


def test_much_work_at_once_may_take_longer() -> None:
    vitals = Vitals(heartbeat_s=10, allowance_s=60)
    assert is_progressing(vitals, 10 + timing.STALL_S + 59)
    assert not is_progressing(vitals, 10 + timing.STALL_S + 60)


def test_the_status_line_names_what_is_in_the_way() -> None:
    vitals = Vitals(phase="idle", revision="dir:0123456789abcdef0123456789abcdef", is_ready=True)
    assert status_line(vitals) == "idle; revision 0123456789ab"
    names = ("m1", "m2", "m3", "m4", "m5")
    why = dict.fromkeys(names[1:], "no answer")
    clusters = {one: ClusterState(name=one, notable={}, syncs={}, healths={}, why_away=why.get(one)) for one in names}
    vitals.status.publish(StatusSnapshot(clusters=clusters, suspended=("*",)))
    vitals.source_error = "no branch"
    assert status_line(vitals, is_alive=False) == (
        "stalled while idle; revision 0123456789ab; 4 of 5 clusters not reachable (m2, m3, m4, …); store: no branch; "
        "suspended"
    )


async def test_signals_become_events_and_the_end_is_told(manager: Manager) -> None:
    vitals = Vitals()
    clock = TestClock()
    clock.advance(5)
    async with in_service(vitals, clock, environ=manager.environ) as signals:
        assert vitals.heartbeat_s == 5
        os.kill(os.getpid(), signal.SIGHUP)
        await signals.reload.wait()
        assert not signals.stop.is_set()
        os.kill(os.getpid(), signal.SIGINT)
        await signals.stop.wait()
    assert "STOPPING=1" in manager.told()
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_DFL


async def test_a_second_signal_ends_the_process_at_once(tmp_path: Path) -> None:
    script = tmp_path / "stubborn.py"
    script.write_text(
        "import asyncio\n"
        "from reconciler.clock import SystemClock\n"
        "from reconciler.controller.service.signals import in_service\n"
        "from reconciler.controller.vitals.service_vitals import Vitals\n"
        "async def main():\n"
        "    async with in_service(Vitals(), SystemClock(), environ={}) as signals:\n"
        "        print('up', flush=True)\n"
        "        await signals.stop.wait()\n"
        "        print('stopping', flush=True)\n"
        "        await asyncio.Event().wait()\n"
        "asyncio.run(main())\n"
    )
    process = await asyncio.create_subprocess_exec(sys.executable, str(script), stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    assert await process.stdout.readline() == b"up\n"
    process.terminate()
    assert await process.stdout.readline() == b"stopping\n"
    process.terminate()
    assert await process.wait() == 128 + signal.SIGTERM
