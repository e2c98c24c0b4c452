"""A cluster that takes its time over writes, on embedded clusters: the others and the end of the service do not wait.

Source: design#promise-4; design#promise-7; ADR 14.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from reconciler.controller import timing
from reconciler.kube import kube_requests as requests
from reconciler.sim import Fault, FaultKind, Request, is_write
from reconciler.state import Lag
from tests.unit.controller.test_loop import Running, running

HANG_S = 2.0
"""So long a write without an answer is waited for here, by the clock on the wall."""
FOR_EVER_S = 1000.0
"""Longer than any test waits: whoever is served has not waited for it."""


@pytest.fixture(autouse=True)
def _soon_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "WRITE_DEADLINE_S", HANG_S)


def is_of_app(request: Request) -> bool:
    return is_write(request) and request.path.endswith("/app")


def hang(scene: Running, cluster: str = "m2", times: int = 10**6) -> None:
    """Writes of the ConfigMap get no answer any more, as behind a webhook that is dead; reads go on."""
    scene.box.servers[cluster].faults.order(Fault(kind=FaultKind.HANGING), when=is_of_app, times=times)


def struck(scene: Running, cluster: str = "m2") -> int:
    return len(scene.box.servers[cluster].faults.struck)


def objects(scene: Running, cluster: str) -> dict[str, int]:
    """Return what the picture in the journal says of a cluster."""
    document: Any = scene.journal.state() or {}
    (found,) = (entry["objects"] for entry in document["clusters"] if entry["name"] == cluster)
    return dict(found)


@pytest.fixture
def _never_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "WRITE_DEADLINE_S", FOR_EVER_S)


@pytest.mark.usefixtures("_never_given_up")
async def test_commits_reach_the_other_clusters_while_one_lets_writes_hang(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        hang(scene)
        scene.app("0", "m1", "m2")
        await scene.until(lambda: struck(scene) > 0)
        for number in range(10):
            scene.app(f"n{number}", "m1", "m2")
            await scene.until(lambda value=f"n{number}": scene.value("m1") == value)  # type: ignore[misc]
        scene.box.servers["m2"].faults.clear()
        await scene.until(lambda: scene.value("m2") == "n9")


async def test_what_is_being_written_is_not_written_a_second_time_beside_it(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        hang(scene, times=1)
        scene.app("2", "m1", "m2")
        await scene.until(lambda: struck(scene) == 1)
        before = len(scene.box["m2"].audit)
        scene.app("3", "m1", "m2")
        await scene.until(lambda: scene.value("m1") == "3")
        assert not [entry for entry in scene.box["m2"].audit[before:] if entry.verb in ("patch", "create")]
        await scene.until(lambda: scene.value("m2") == "3")


async def test_what_is_being_written_is_shown_as_pending_and_then_as_failed(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        scene.app("1", "m1", "m2", name="other")
        await scene.until(lambda: scene.value("m2", "other") == "1")
        hang(scene)
        scene.app("2", "m1", "m2")
        await scene.until(lambda: struck(scene) > 0)
        scene.app("2", "m1", name="third")
        await scene.until(lambda: scene.value("m1", "third") == "2" and objects(scene, "m1")["pending"] == 0)
        assert objects(scene, "m2")["pending"] == 1
        # A round that wants the object again does not make it synced.
        scene.app("3", "m1", "m2")
        await scene.until(lambda: scene.value("m1") == "3" and objects(scene, "m1")["pending"] == 0)
        assert objects(scene, "m2")["pending"] + objects(scene, "m2")["failed"] == 1
        await scene.until(lambda: objects(scene, "m2")["failed"] == 1)
        scene.box.servers["m2"].faults.clear()
        await scene.until(lambda: objects(scene, "m2")["failed"] == 0 and objects(scene, "m2")["pending"] == 0)
        assert scene.value("m2") == "3"


@pytest.mark.usefixtures("_never_given_up")
async def test_what_the_others_made_is_told_though_nothing_else_is_to_be_done(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        hang(scene)
        scene.app("2", "m1", "m2")
        await scene.until(lambda: scene.value("m1") == "2")
        await scene.until(lambda: objects(scene, "m2")["pending"] == 1 and objects(scene, "m1")["pending"] == 0)
        told = [event.subject for event in scene.journal.events() if event.kind == "updated"]
        assert told == ["ConfigMap demo/app @ m1"]


async def test_an_edit_by_hand_that_comes_meanwhile_is_taken_back(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        scene.box.servers["m1"].faults.order(Fault(kind=FaultKind.HANGING), when=is_of_app, times=1)
        scene.app("2", "m1")
        await scene.until(lambda: struck(scene, "m1") == 1)
        scene.by_hand("m1", "theirs")
        await scene.until(lambda: scene.value("m1") == "2")


async def test_what_took_longer_than_its_round_is_in_the_history_with_its_own_revision(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        hang(scene, times=1)
        scene.app("2", "m1", "m2")
        await scene.until(lambda: struck(scene) == 1)
        hung = scene.vitals.revision
        scene.app("2", "m1", name="other")
        await scene.until(lambda: scene.value("m1", "other") == "2")
        await scene.until(lambda: scene.value("m2") == "2")
        await scene.quiet()
        told = [event for event in scene.journal.events() if event.subject.endswith("app @ m2")]
        assert {event.data["revision"] for event in told} >= {hung}


async def test_the_pauses_between_tries_go_on_growing(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        hang(scene)
        scene.app("2", "m1", "m2")
        await scene.until(lambda: struck(scene) >= 4)
        tries = struck(scene)
        # Of commits that concern something else no try comes.
        for number in range(5):
            scene.app(str(number), "m1", name="other")
            await scene.until(lambda number=number: scene.value("m1", "other") == str(number))  # type: ignore[misc]
        assert struck(scene) <= tries + 2


async def test_the_service_ends_soon_and_the_next_one_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "WRITE_DEADLINE_S", 3600.0)
    monkeypatch.setattr(timing, "LEAVE_S", 0.5)
    async with running(tmp_path) as scene:
        hang(scene)
        scene.app("2", "m1", "m2")
        await scene.until(lambda: struck(scene) > 0 and scene.value("m1") == "2")
        async with asyncio.timeout(60):
            await scene.stop()
        (intent,) = scene.journal.open_intents().values()
        assert intent.cluster == "m2"
        scene.box.servers["m2"].faults.clear()
        scene.source.forget()
        scene.start(scene.parts)
        await scene.until(lambda: scene.value("m2") == "2")
        await scene.until(lambda: not scene.journal.open_intents())


async def test_what_ends_before_the_service_does_is_recorded(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        hang(scene)
        scene.app("2", "m1", "m2")
        await scene.until(lambda: struck(scene) > 0 and scene.value("m1") == "2")
        await scene.stop()
        told = [event.kind for event in scene.journal.events() if event.subject.endswith("app @ m2")]
        assert "failed" in told
        assert scene.vitals.changes["m2", "update", "failed"] == told.count("failed")


async def test_a_copy_stays_while_the_one_that_takes_over_is_being_written(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        scene.app("1", "m1")
        await scene.until(lambda: scene.value("m2") is None)
        scene.box.servers["m2"].faults.order(
            Fault(kind=FaultKind.HANGING), when=lambda r: is_write(r) and r.path.endswith("/app"), times=2
        )
        scene.app("1", "m2")
        await scene.until(lambda: struck(scene) > 0)
        for number in range(3):
            scene.app(str(number), "m1", name="other")
            await scene.until(lambda number=number: scene.value("m1", "other") == str(number))  # type: ignore[misc]
            assert scene.value("m1") == "1"
            assert scene.value("m2") is None
        await scene.until(lambda: scene.value("m1") is None)
        assert scene.value("m2") == "1"


async def test_a_cluster_that_takes_long_over_a_write_gets_what_came_meanwhile(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        hang(scene, times=1)
        scene.app("2", "m1", "m2")
        await scene.until(lambda: struck(scene) == 1)
        scene.app("1", "m2", name="other")
        scene.put(app=None)
        await scene.until(lambda: scene.value("m1") is None)
        await scene.until(lambda: scene.value("m2") is None and scene.value("m2", "other") == "1")


async def test_what_a_late_cluster_has_not_told_yet_is_not_called_synced(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        scene.box.servers["m2"].faults.latency_s = (HANG_S, HANG_S)
        before = (scene.journal.state() or {})["revision"]
        scene.app("2", "m1", "m2")
        # The picture of a round that knows of the commit: what m1 holds may be seen before it.
        await scene.until(lambda: (scene.journal.state() or {})["revision"] != before)
        assert scene.value("m2") == "1"
        assert objects(scene, "m2")["pending"] == scene.vitals.snapshot.clusters["m2"].syncs[Lag.PENDING] > 0
        scene.box.servers["m2"].faults.clear()
        await scene.until(lambda: scene.value("m2") == "2" and objects(scene, "m2")["pending"] == 0)
        assert scene.vitals.snapshot.clusters["m2"].syncs[Lag.PENDING] == 0
