"""The history that the service writes: who, what, when and why, and each thing once.

Source: design#history.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reconciler.api.fleet import HistoryLimits
from reconciler.api.ledger import Event, SuspensionRecord
from reconciler.controller.retries.conflicts import UNDONE_MAX, _Field
from reconciler.journal import EventFilter
from reconciler.sim import Fault, FaultKind, is_write
from tests.fakes.hands import CONFIG_MAPS, ask
from tests.fakes.worlds import policy
from tests.unit.controller.test_loop import BROKEN, Running, running
from tests.unit.controller.test_ticks import BOTH, one_copy
from tests.unit.controller.ticking import WEB as WEB_ID
from tests.unit.controller.ticking import Ticking, ticking

APP, WEB = "ConfigMap demo/app", "Deployment demo/web"
NOW = "2026-11-21T10:00:00Z"
SECRET = "aHVudGVyMmh1bnRlcjI="


def told(scene: Running, *kinds: str, about: str = "") -> list[Event]:
    """The events of these kinds, oldest first."""
    wanted = EventFilter(kinds=kinds, about=about)
    return [found.event for found in scene.journal.events_after(0, wanted)]


async def round_over_everything(scene: Running) -> None:
    """Return after a round that began from here."""
    rounds = scene.vitals.rounds
    scene.loop.wake()
    await scene.until(lambda: scene.vitals.rounds > rounds)


async def restarted(scene: Running) -> None:
    await scene.stop()
    scene.source.forget()
    rounds = scene.vitals.rounds
    scene.start(scene.parts)
    await scene.until(lambda: scene.vitals.rounds > rounds)


async def test_a_hand_edit_is_told_with_its_manager_and_values_and_never_with_the_last_committer(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "reconciler")
    async with running(tmp_path) as scene:
        scene.by_hand("m1", "theirs")
        await scene.until(lambda: scene.value("m1") == "1" and bool(told(scene, "drift")))
        (drift,) = told(scene, "drift")
        assert drift.subject == f"{APP} @ m1"
        assert {key: drift.data[key] for key in ("outcome", "who", "cause", "action")} == {
            "outcome": "healed", "who": "kubectl", "cause": "drift", "action": "update",
        }  # fmt: skip
        (value,) = drift.data["values"]
        assert (value["path"], value["before"], value["after"]) == ("data.value", "theirs", "1")
        assert (value["owner"]["manager"], value["owner"]["operation"]) == ("kubectl", "Update")
        assert value["owner"]["time"].endswith("Z")
        assert not told(scene, "updated")
    (line,) = (record.__dict__ for record in caplog.records if record.__dict__.get("cause") == "drift")
    assert (line["event"], line["rev"], line["obj"], line["by"]) == ("Applied", drift.data["revision"], APP, "kubectl")


async def test_history_is_kept_as_the_fleet_document_says_from_its_commit_on(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        scene.journal.record_events([Event(round=1, time=NOW, kind="updated", subject=f"x{n}") for n in range(1500)])
        scene.settings = {"history": {"maxEvents": 1000, "maxAge": "24h"}}
        scene.put()
        await scene.until(lambda: scene.journal.newest_events(EventFilter(), 1501)[-1].number > 500)
        await restarted(scene)
        assert scene.journal._limits == HistoryLimits(events_max=1000, age_s=86_400)


async def test_what_was_deleted_by_hand_and_came_back_is_a_drift_of_somebody(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        ask(scene.box["m1"], "DELETE", f"{CONFIG_MAPS}/app")
        await scene.until(lambda: scene.value("m1") == "1" and bool(told(scene, "drift")))
        (drift,) = told(scene, "drift")
        assert (drift.data["outcome"], drift.data["action"], drift.data["who"]) == ("healed", "create", "somebody")


async def test_a_drift_that_is_left_is_told_once_over_rounds_commits_and_restarts(tmp_path: Path) -> None:
    async with running(tmp_path, drift={"resync": "100h", "selfHeal": False}) as scene:
        scene.by_hand("m1", "theirs")
        await scene.until(lambda: bool(told(scene, "drift")))
        for _ in range(3):
            await round_over_everything(scene)
        scene.app("1", "m1", "m2", name="other")
        await scene.until(lambda: scene.value("m1", "other") == "1")
        await restarted(scene)
        await round_over_everything(scene)
        (drift,) = told(scene, "drift")
        assert (drift.data["outcome"], drift.data["who"]) == ("left", "kubectl")
        assert drift.data["why"] == "drift is left as it is (spec.drift.selfHeal: false)"
        scene.by_hand("m1", "theirs again")
        await scene.until(lambda: len(told(scene, "drift")) == 2)
        assert told(scene, "drift")[1].data["values"][0]["before"] == "theirs again"


async def test_a_drift_that_is_held_names_who_holds_it_and_is_healed_later(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        scene.journal.suspend(SuspensionRecord(scope="cluster m1", who="li@host", reason="incident 7"))
        scene.by_hand("m1", "theirs")
        await scene.until(lambda: bool(told(scene, "drift")))
        scene.journal.resume("cluster m1", "wu@host")
        await round_over_everything(scene)
        await scene.until(lambda: scene.value("m1") == "1" and len(told(scene, "drift")) == 2)
        held, healed = told(scene, "drift")
        assert (held.data["outcome"], held.data["why"]) == (
            "held", "cluster m1 is suspended by li@host: incident 7"
        )  # fmt: skip
        assert (healed.data["outcome"], healed.data["who"]) == ("healed", "kubectl")
        orders = [(one.kind, one.data["who"]) for one in told(scene, "suspended", "resumed")]
        assert orders == [("suspended", "li@host"), ("resumed", "wu@host")]


async def test_no_value_of_a_secret_is_told(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys", "namespace": "demo"},
                  "data": {"password": "Y29ycmVjdGhvcnNl"}}  # fmt: skip
        rule = policy("Secret", "m1", name="keys")
        rule["spec"]["resourceSelectors"][0]["name"] = "keys"
        scene.put(keys=[secret], rule=[rule])
        await scene.until(lambda: scene.box["m1"].state.get("Secret", "demo", "keys") is not None)
        await scene.quiet()
        ask(scene.box["m1"], "PATCH", "/api/v1/namespaces/demo/secrets/keys", {"data": {"password": SECRET}})
        await scene.until(lambda: bool(told(scene, "drift")))
        (drift,) = told(scene, "drift")
        (value,) = drift.data["values"]
        assert value["path"] == "data.password"
        assert value["before"].startswith("«value #")
        assert value["before"] != value["after"]
        assert SECRET not in str(drift.data)
        assert "Y29ycmVjdGhvcnNl" not in str(drift.data)


def placements(scene: Ticking) -> list[tuple[list[str], str | None]]:
    """Return where the workload was placed, and who was behind it."""
    found = told(scene, "placed", about=WEB)
    return [([one["cluster"] for one in event.data["after"]], event.data.get("who")) for event in found]


async def test_each_placement_is_told_once_however_many_rounds_there_are(tmp_path: Path) -> None:
    async with ticking(tmp_path, BOTH) as scene:
        scene.web(**one_copy())
        await scene.until(lambda: scene.ready() == {"m1": 2})
        for _ in range(5):
            await round_over_everything(scene)
        await restarted(scene)
        assert placements(scene) == [(["m1"], None)]


async def test_a_fleet_that_is_only_observed_places_nothing(tmp_path: Path) -> None:
    async with ticking(tmp_path, BOTH, settings={"mode": "observe"}) as scene:
        scene.web(**one_copy())
        await scene.until(lambda: scene.vitals.rounds > 0)
        for _ in range(3):
            await round_over_everything(scene)
        assert told(scene, "placed") == []


async def test_a_drift_in_a_fleet_that_is_only_observed_is_left(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        scene.settings["mode"] = "observe"
        scene.put()
        await scene.until(lambda: len(told(scene, "advanced")) > 1)
        scene.by_hand("m1", "theirs")
        await scene.until(lambda: bool(told(scene, "drift")))
        await round_over_everything(scene)
        (drift,) = told(scene, "drift")
        assert (drift.data["outcome"], drift.data["who"], scene.value("m1")) == ("left", "kubectl", "theirs")


async def test_a_workload_that_loses_its_place_while_a_file_is_broken_is_told_of_when_it_is_known(
    tmp_path: Path,
) -> None:
    async with running(tmp_path) as scene:
        await scene.quiet()
        scene.put(other=BROKEN)
        scene.app("1", "m3")
        await scene.until(lambda: bool(told(scene, "store-broken")))
        for _ in range(3):
            await round_over_everything(scene)
        found = told(scene, "placed", about=APP)
        assert len(found) == len({str(event.data["after"]) for event in found})


async def test_a_copy_that_a_person_evicts_leaves_in_their_name_and_not_in_that_of_a_committer(
    tmp_path: Path,
) -> None:
    async with ticking(tmp_path, BOTH) as scene:
        scene.web(**one_copy())
        await scene.until(lambda: scene.ready() == {"m1": 2})
        scene.evict("m1")
        await scene.until(lambda: scene.ready() == {"m2": 2})
        await scene.until(lambda: bool(told(scene, "deleted") and told(scene, "released")))
        assert placements(scene) == [(["m1"], None), (["m2"], "li@host")]
        names = {event.subject: event.data.get("who") for event in told(scene, "created", "deleted", "released")}
        assert names == {
            f"{WEB} @ m1": "li@host",
            f"{WEB} @ m2": "li@host",
            "Namespace demo @ m1": "li@host",
            "Namespace demo @ m2": "li@host",
        }
        first, *_ = told(scene, "created", about=WEB)
        assert "who" not in first.data
        assert [(one.kind, one.data["who"]) for one in told(scene, "evicted")] == [("evicted", "li@host")]


async def test_what_a_tick_moves_is_told_in_its_name(tmp_path: Path) -> None:
    async with ticking(tmp_path, BOTH) as scene:
        terms = {"decisionConditions": {"tolerationSeconds": 1}, "purgeMode": "Immediately"}
        scene.web(**one_copy(**terms))
        await scene.until(lambda: scene.ready() == {"m1": 2})
        scene.set_well("m1", is_well=False)
        await scene.until(lambda: scene.ready() == {"m2": 2} and len(placements(scene)) == 2)
        assert placements(scene) == [(["m1"], None), (["m2"], "failover")]
        assert told(scene, "placed", about=WEB)[1].data["why"].startswith("unhealthy since ")


async def test_a_copy_that_may_come_back_comes_in_the_name_of_who_let_it(tmp_path: Path) -> None:
    async with ticking(tmp_path, BOTH) as scene:
        scene.web(replicas=1, policy={"division": "duplicated"})
        await scene.until(lambda: scene.ready() == {"m1": 1, "m2": 1})
        scene.evict("m1")
        await scene.until(lambda: scene.ready() == {"m2": 1} and not scene.journal.open_intents())
        # The round that took it away is recorded: else who ordered it has taken it back while that went on.
        await scene.until(lambda: len(placements(scene)) == 2 and bool(told(scene, "deleted", about=f"{WEB} @ m1")))
        await scene.quiet()
        scene.journal.readmit(WEB_ID, "m1", "wu@host", "the node is fixed")
        scene.wake()
        await scene.until(lambda: scene.ready() == {"m1": 1, "m2": 1} and len(placements(scene)) == 3)
        assert placements(scene) == [(["m1", "m2"], None), (["m2"], "li@host"), (["m1", "m2"], "wu@host")]
        await scene.until(lambda: len(told(scene, "created", about=f"{WEB} @ m1")) == 2)
        created = told(scene, "created", about=f"{WEB} @ m1")[-1]
        assert (created.data["who"], created.data["why"]) == ("wu@host", "the node is fixed")


async def test_a_fight_is_told_with_who_fights_and_when_it_is_over(tmp_path: Path, monkeypatch: Any) -> None:
    async with running(tmp_path) as scene:
        for number in range(UNDONE_MAX):
            scene.by_hand("m1", f"theirs {number}")
            await scene.until(lambda: scene.value("m1") == "1")
            await scene.until(lambda count=number: len(told(scene, "drift")) == count + 1)  # type: ignore[misc]
        await scene.until(lambda: bool(told(scene, "fight-detected")))
        scene.by_hand("m1", "theirs at last")
        await round_over_everything(scene)
        await scene.until(lambda: scene.value("m1") == "1")
        (fight,) = told(scene, "fight-detected")
        assert (fight.subject, fight.data["who"]) == (f"{APP} @ m1", "kubectl")
        outcomes = [event.data["outcome"] for event in told(scene, "drift")]
        assert outcomes.count("left") == 1
        assert not told(scene, "fight-over")
        monkeypatch.setattr(_Field, "is_over", lambda *_: True)
        await round_over_everything(scene)
        await scene.until(lambda: bool(told(scene, "fight-over")))
        (over,) = told(scene, "fight-over")
        assert (over.subject, over.data["since"], over.data["who"]) == (fight.subject, fight.time, "kubectl")


async def test_a_change_that_fails_again_and_again_is_told_once(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        faults = scene.box.servers["m1"].faults
        faults.order(Fault(kind=FaultKind.FORBIDDEN), when=lambda r: is_write(r) and r.path.endswith("/app"), times=999)
        scene.app("2", "m1", "m2")
        await scene.until(lambda: scene.vitals.changes["m1", "update", "failed"] >= 4)
        assert [event.subject for event in told(scene, "failed")] == [f"{APP} @ m1"]
        faults.clear()
        await scene.until(lambda: scene.value("m1") == "2")
        await scene.until(lambda: len(told(scene, "updated", about=APP)) == 2)


async def test_revisions_and_errors_of_the_store_are_told_with_their_end(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        begun = told(scene, "advanced")[-1]
        scene.put(other=BROKEN)
        await scene.until(lambda: bool(told(scene, "store-broken")))
        await restarted(scene)
        scene.put(other=None)
        await scene.until(lambda: bool(told(scene, "store-mended")))
        (broken,), (mended,) = told(scene, "store-broken"), told(scene, "store-mended")
        assert "other.yaml" in broken.data["why"]
        assert mended.data["since"] == broken.time
        advanced = told(scene, "advanced")
        assert [event.data["before"] for event in advanced[1:]] == [event.data["revision"] for event in advanced[:-1]]
        assert begun in advanced
        assert len({event.data["revision"] for event in advanced}) == len(advanced), "a restart is no commit"


async def test_a_store_that_cannot_be_followed_is_told_once_and_so_is_that_it_can_again(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        good = scene.source.files
        scene.source.put({"fleet.yaml": good["fleet.yaml"].replace("name: test", "name: another")})
        await scene.until(lambda: bool(told(scene, "source-failed")))
        scene.source.put(good)
        await scene.until(lambda: bool(told(scene, "source-recovered")))
        (failed,), (recovered,) = told(scene, "source-failed"), told(scene, "source-recovered")
        assert "it names fleet 'another'" in failed.data["why"]
        assert (recovered.subject, recovered.data["since"]) == ("store", failed.time)
