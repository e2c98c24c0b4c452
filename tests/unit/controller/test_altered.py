"""Writes that come back otherwise, or not at all.

Source: design#altered-writes; design#fights; design#promise-6.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from reconciler.clock import BackOff
from reconciler.controller import timing
from reconciler.controller.retries.conflicts import UNDONE_MAX
from reconciler.sim import Fault, FaultKind, Request, is_write
from tests.fakes.admitting_server import Webhook, let_admit
from tests.fakes.clocks import QuickClock
from tests.fakes.hands import CONFIG_MAPS, ask
from tests.unit.controller.test_loop import Running, events_of, running

APP = "ConfigMap demo/app @ m1"


def other_value(body: dict[str, Any]) -> None:
    body["data"]["value"] = "the webhook's"


def failed(scene: Running) -> list[str]:
    document = scene.journal.state() or {}
    return [entry["error"] for entry in document.get("failed", ())]


def counts(scene: Running, cluster: str = "m1") -> dict[str, int]:
    document = scene.journal.state() or {}
    (found,) = (entry for entry in document["clusters"] if entry["name"] == cluster)
    return {state: count for state, count in found["objects"].items() if count}


async def test_a_webhook_that_changes_each_write_is_told_at_once_and_then_as_a_fight(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(tmp_path) as scene:
        server = await let_admit(scene.box, "m1")
        server.webhook = other_value
        scene.app("2", "m1", "m2")
        told = 'the cluster changed what was written (an admission webhook?): data.value is "the webhook\'s", not "2"'
        await scene.until(lambda: failed(scene) == [told])
        assert scene.value("m1") == "the webhook's"
        await scene.until(lambda: "FightDetected" in events_of(caplog))
        (line,) = (record for record in caplog.records if record.__dict__.get("event") == "FightDetected")
        assert line.__dict__["by"] == "the server"
        assert line.__dict__["error"] == "our changes of data.value are undone again and again"
        assert server.asked == UNDONE_MAX, "nothing but its pauses made it try again"
        (fight,) = scene.journal.events(subject=APP, kind="fight-detected")
        assert (fight.data["who"], fight.data["fields"]) == ("the server", ["data.value"])
        (event,) = scene.journal.events(subject=APP, kind="failed")
        assert (event.data["error"], event.data["altered"]) == (told, ["data.value"])
        assert not scene.journal.events(subject=APP, kind="updated"), "it was not"
        await scene.until(lambda: counts(scene).get("fought") == 1 and not failed(scene))
        scene.loop.wake()  # A resync, an order: neither makes it try again before the pause is over.
        rounds = scene.vitals.rounds
        await scene.until(lambda: scene.vitals.rounds > rounds)
        assert server.asked == UNDONE_MAX
        server.webhook = None
        await scene.until(lambda: scene.value("m1") == "2")
        tried = QuickClock().monotonic_s()
        await scene.until(lambda: set(counts(scene)) == {"synced"})
        # The next pause would be two minutes, which pass in six seconds here.
        assert QuickClock().monotonic_s() - tried < 110, "what came through is left alone no longer"


def without_label(body: dict[str, Any]) -> None:
    del body["metadata"]["labels"]["fleet.reconciler/fleet"]


def without_owner(body: dict[str, Any]) -> None:
    del body["metadata"]["annotations"]["fleet.reconciler/owner"]


def without_marks(body: dict[str, Any]) -> None:
    without_label(body)
    without_owner(body)


@pytest.mark.parametrize("webhook", [without_label, without_owner, without_marks])
async def test_a_webhook_that_strips_our_marks_is_told_and_what_it_stripped_is_put_back_when_it_goes(
    tmp_path: Path, webhook: Webhook
) -> None:
    async with running(tmp_path) as scene:
        server = await let_admit(scene.box, "m1")
        server.webhook = webhook
        scene.app("2", "m1", "m2")
        await scene.until(lambda: bool(failed(scene)))
        await scene.until(lambda: counts(scene).get("fought") == 1 and not failed(scene))
        (event,) = scene.journal.events(subject=APP, kind="failed")
        assert event.data["error"].startswith("the cluster changed what was written (an admission webhook")
        assert event.data["error"].endswith("it is not known as ours")
        assert server.asked == UNDONE_MAX, "nothing but its pauses made it try again"
        assert "object-let-go" not in str(scene.journal.state())
        server.webhook = None
        await scene.until(lambda: set(counts(scene)) == {"synced"})
        brake = {"metadata": {"labels": {"fleet.reconciler/fleet": None}}}
        ask(scene.box["m1"], "PATCH", f"{CONFIG_MAPS}/app", brake)
        await scene.until(lambda: "object-let-go" in str(scene.journal.state()))


async def test_what_is_set_right_after_a_webhook_was_taken_out_is_told_as_done_by_the_server(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        server = await let_admit(scene.box, "m1")
        server.webhook = other_value
        scene.app("2", "m1", "m2")
        await scene.until(lambda: bool(failed(scene)))
        server.webhook = None
        await scene.until(lambda: bool(scene.journal.events(subject=APP, kind="drift")))
        (event,) = scene.journal.events(subject=APP, kind="drift")
        assert (event.data["outcome"], event.data["who"]) == ("healed", "the server")


async def test_a_commit_that_changes_what_is_altered_does_not_wait_for_the_pause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timing, "FIGHT_BACK_OFF", BackOff(least_s=1e6, most_s=1e6))
    async with running(tmp_path) as scene:
        server = await let_admit(scene.box, "m1")
        server.webhook = other_value
        scene.app("2", "m1", "m2")
        await scene.until(lambda: counts(scene).get("fought") == 1)
        server.webhook = None
        scene.app("3", "m1", "m2")
        await scene.until(lambda: scene.value("m1") == "3")


@pytest.mark.parametrize("kind", [FaultKind.INTERNAL, FaultKind.FORBIDDEN])
async def test_what_fails_is_tried_again_ever_more_rarely_whatever_the_failure(tmp_path: Path, kind: FaultKind) -> None:
    """A 5xx left its intent open, and was written again each time that was looked into."""
    async with running(tmp_path) as scene:
        clock, tries = QuickClock(), list[float]()

        def is_ours(request: Request) -> bool:
            is_it = is_write(request) and request.path.endswith("/app") and not request.is_dry_run
            if is_it:
                tries.append(clock.monotonic_s())
            return is_it

        faults = scene.box.servers["m1"].faults
        faults.order(Fault(kind=kind), when=is_ours, times=999)
        scene.app("2", "m1", "m2")
        await scene.until(lambda: len(tries) >= 5)
        pauses = [after - before for before, after in pairwise(tries)]
        for number, pause_s in enumerate(pauses[:4]):
            assert pause_s >= 2.0 * 2**number - 0.5, pauses
        scene.by_hand("m1", "theirs")  # An event of the object does not make it try earlier.
        faults.clear()
        await scene.until(lambda: scene.value("m1") == "2")
