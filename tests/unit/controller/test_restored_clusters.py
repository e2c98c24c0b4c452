"""Time goes back in a cluster, as when a backup of its etcd is put back. Source: design#restored-cluster."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from reconciler.api.ledger import EventKind
from reconciler.controller.cluster_reads.clusters_needed import ClusterFilter
from reconciler.controller.once import Access
from reconciler.controller.once.applying import rebuild_once
from reconciler.fleet import parse
from reconciler.journal import Journal
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.sim import Backup
from tests.fakes.clocks import QuickClock
from tests.fakes.hands import CONFIG_MAPS, ask
from tests.present import present
from tests.unit.controller.test_loop import Running, events_of, running
from tests.unit.controller.test_reloads import as_it_was, led_elsewhere

BACK = "cluster-went-back"


async def restored(scene: Running, backup: Backup, writes: int = 0) -> None:
    """The API server is away meanwhile, as it is in earnest. `writes`: so many are made before anybody looks."""
    server = scene.box.servers["m1"]
    await server.stop()
    scene.box["m1"].put_back(backup)
    for number in range(writes):
        ask(scene.box["m1"], "POST", CONFIG_MAPS, {"metadata": {"name": f"theirs{number}"}})
    await server.start()


def told(scene: Running) -> list[str]:
    """The clusters of which history says that they went back."""
    return [event.subject for event in scene.journal.events(kind=EventKind.CLUSTER_WENT_BACK)]


def document(scene: Running) -> Mapping[str, Any]:
    found = present(scene.journal.state())
    return found


def codes(scene: Running) -> set[tuple[str, str]]:
    return {(found["code"], found["message"].partition(":")[0]) for found in document(scene)["problems"]}


@pytest.mark.parametrize("writes", [0, 300], ids=["promptly", "versions have grown past those seen"])
async def test_all_is_looked_at_anew_and_it_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, writes: int
) -> None:
    async with running(tmp_path) as scene:
        backup = scene.box["m1"].back_up()
        for value in ("2", "3"):
            scene.app(value, "m1", "m2")
            await scene.until(lambda value=value: scene.value("m1") == value)  # type: ignore[misc]
        scene.app("1", "m1", name="later")
        await scene.until(lambda: scene.value("m1", "later") == "1")
        await scene.quiet()
        await restored(scene, backup, writes)
        await scene.until(lambda: scene.value("m1") == "3" and scene.value("m1", "later") == "1")
        await scene.until(lambda: told(scene) == ["cluster m1"])
        await scene.until(lambda: (BACK, "m1") in codes(scene))
        await scene.quiet()
        assert told(scene) == ["cluster m1"], "once"
        assert events_of(caplog).count("ClusterWentBack") == 1
        assert document(scene)["troubles"] == [], "all of it is there, and said to be"


async def test_another_cluster_under_the_name_for_a_while_is_no_restore(tmp_path: Path) -> None:
    async with running(tmp_path, others=("other",)) as scene:
        for number in range(300):
            ask(scene.box["other"], "POST", "/api/v1/namespaces", {"metadata": {"name": f"theirs{number}"}})
        led_elsewhere(scene)
        scene.loop.reload()
        await scene.until(lambda: "another cluster answers" in str(document(scene)))
        scene.app("2", "m1", "m2")
        await scene.until(lambda: scene.value("m1") == "2")
        await scene.quiet()
        as_it_was(scene)
        scene.loop.reload()
        await scene.until(lambda: scene.value("m2") == "2")
        scene.app("3", "m1", "m2")
        await scene.until(lambda: scene.value("m2") == "3")
        await scene.quiet()
        assert told(scene) == []


async def test_what_had_been_deleted_and_is_back_is_shown_and_stays(tmp_path: Path) -> None:
    async with running(tmp_path, guards={"maxDeletes": 100, "maxDeletePercent": 100}) as scene:
        names = [f"old{number}" for number in range(12)]
        for name in names:
            scene.app("1", "m1", name=name)
        await scene.until(lambda: all(scene.value("m1", name) == "1" for name in names))
        await scene.quiet()
        backup = scene.box["m1"].back_up()
        scene.put(**{key: None for name in names for key in (name, f"{name}-policy")})
        await scene.until(lambda: all(scene.value("m1", name) is None for name in names))
        scene.settings = {"drift": {"resync": "100h"}}
        scene.put()
        await scene.quiet()
        await restored(scene, backup)
        await scene.until(lambda: told(scene) == ["cluster m1"])
        shown = "not-deleted"
        await scene.until(lambda: [found["code"] for found in document(scene)["problems"]].count(shown) == len(names))
        await scene.quiet()
        assert all(scene.value("m1", name) == "1" for name in names), "none is deleted by a record of another past"


async def test_what_stock_was_taken_of_is_held_by_the_guards_until_it_is_confirmed(tmp_path: Path) -> None:
    """As the trouble page says: the list, `journal rebuild --cluster` without the service, and the next start."""
    async with running(tmp_path) as scene:
        names = [f"old{number}" for number in range(12)]
        for name in names:
            scene.app("1", "m1", name=name)
        await scene.until(lambda: all(scene.value("m1", name) == "1" for name in names))
        await scene.quiet()
        backup = scene.box["m1"].back_up()
        scene.settings = {**scene.settings, "guards": {"maxDeletes": 100, "maxDeletePercent": 100}}
        scene.put()
        await scene.quiet()
        scene.put(**{key: None for name in names for key in (name, f"{name}-policy")})
        await scene.until(lambda: all(scene.value("m1", name) is None for name in names))
        scene.settings = {"drift": {"resync": "100h"}}
        scene.put()
        await scene.quiet()
        await restored(scene, backup)
        await scene.until(lambda: told(scene) == ["cluster m1"])
        await scene.until(lambda: [found["code"] for found in document(scene)["problems"]].count("not-deleted") == 12)
        await scene.stop()
        await take_stock(scene, tmp_path / "journal.db")
        scene.source.forget()
        scene.start(scene.parts_of(scene.parts.opened, scene.parts.agent, scene.parts.access.clock))
        await scene.until(lambda: len(document(scene)["held"]) == 12)
        await scene.quiet()
        assert all(scene.value("m1", name) == "1" for name in names)
        scene.settings = {**scene.settings, "guards": {"confirm": document(scene)["heldDigest"]}}
        scene.put()
        await scene.until(lambda: all(scene.value("m1", name) is None for name in names))
        await scene.quiet()
        assert (scene.value("m1"), scene.value("m2")) == ("1", "1")
        assert document(scene)["troubles"] == []


async def take_stock(scene: Running, path: Path) -> None:
    """`reconciler journal rebuild STORE --cluster m1`, while no service writes the journal."""
    scene.source.forget()
    snapshot = present(await scene.source.read())
    scene.journal.close()
    access = Access(kubeconfig=scene.box.kubeconfig, journal=path, interpreters=BUILT_IN_KINDS,
                    clusters=ClusterFilter(("m1",)), clock=QuickClock())  # fmt: skip
    found = await rebuild_once(parse(snapshot), access)
    assert (found.is_stock, found.failed) == (True, {})
    scene.journal = Journal.open(path)


async def test_what_is_held_over_the_fleet_stays_held_while_a_cluster_is_away(tmp_path: Path) -> None:
    """Two copies in each are too many together, and the two that are left would not be."""
    async with running(tmp_path) as scene:
        for name in ("a", "b"):
            scene.app("1", "m1", "m2", name=name)
        await scene.until(lambda: scene.value("m2", "b") == "1" and scene.value("m1", "b") == "1")
        await scene.quiet()
        scene.put(**{key: None for name in ("a", "b") for key in (name, f"{name}-policy")})
        await scene.until(lambda: len(document(scene)["held"]) == 4)
        await scene.box.servers["m1"].stop()
        await scene.until(lambda: not scene.vitals.snapshot.clusters["m1"].is_up)
        scene.loop.wake()
        await scene.until(lambda: any("could not be read" in str(found) for found in document(scene)["held"]))
        await scene.quiet()
        assert [scene.value("m2", name) for name in ("a", "b")] == ["1", "1"]
        await scene.box.servers["m1"].start()
        await scene.until(lambda: len(document(scene)["held"]) == 4)


async def test_a_restore_while_no_process_runs_is_told_at_the_next_start(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        backup = scene.box["m1"].back_up()
        for number in range(200):
            scene.by_hand("m1", f"theirs {number}")
        await scene.until(lambda: scene.value("m1") == "1")
        scene.app("2", "m1", "m2")
        await scene.until(lambda: scene.value("m1") == "2")
        await scene.quiet()
        await scene.stop()
        await restored(scene, backup)
        scene.source.forget()
        scene.start(scene.parts)
        await scene.until(lambda: told(scene) == ["cluster m1"] and scene.value("m1") == "2")

        def is_known_first() -> bool:
            """The newest come first: it went back, and then it was healed."""
            kinds = [event.kind for event in scene.journal.events()]
            return kinds.index(EventKind.DRIFT) < kinds.index(EventKind.CLUSTER_WENT_BACK)

        await scene.until(is_known_first)
        await scene.until(lambda: (BACK, "m1") in codes(scene))
        await scene.quiet()
        await scene.stop()
        scene.source.forget()
        scene.start(scene.parts)
        await scene.until(lambda: scene.journal.versions()["m1"] != {})
        await scene.quiet()
        assert told(scene) == ["cluster m1"], "once, also after one more start"
