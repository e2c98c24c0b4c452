"""A log of rounds has all that a replay needs to come to the same requests and records, and no value of a field."""

from __future__ import annotations

import logging
import random
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.controller.round.round_log import RoundLog
from tests.fakes.clocks import QuickClock, TestClock
from tests.fakes.hands import CONFIG_MAPS, ask
from tests.fakes.replays import ReplayClock, read_rounds, replay, rounds_of
from tests.unit.controller.test_loop import Running, standing

NAMES = ("a", "b")
CLUSTERS = ("m1", "m2")


def requests(scene: Running) -> dict[str, list[tuple[str, ...]]]:
    """The writes of each cluster in their order, but for those of the owner record."""
    return {
        name: [
            (entry.verb, entry.plural, entry.namespace, entry.name, str(entry.code))
            for entry in scene.box[name].audit
            if "fleet-reconciler/" in entry.user_agent and "fleet-system" not in (entry.namespace, entry.name)
        ]
        for name in CLUSTERS
    }


def rows(scene: Running) -> tuple[dict[str, list[str]], dict[str, Any]]:
    """The events of each subject in their order, and the copies."""
    told = defaultdict(list)
    for event in reversed(scene.journal.events(limit=10_000)):
        told[event.subject].append(str(event.kind))
    copies = {cluster: {str(identity) for identity in found} for cluster, found in scene.journal.ledger().items()}
    return dict(told), {cluster: found for cluster, found in copies.items() if found}


class Somebody:
    """Does something at random to the store and to the clusters."""

    def __init__(self, scene: Running, seed: int) -> None:
        self.scene, self.random, self.number = scene, random.Random(seed), 1

    async def act(self) -> None:
        """One thing, after which all comes to rest."""
        scene, choose = self.scene, self.random.choice
        name, cluster = choose(NAMES), choose(CLUSTERS)
        kind = choose(("commit", "commit", "edit", "delete", "outage"))
        self.number += 1
        if kind == "commit":
            scene.app(f"value-{self.number}", *self.random.sample(CLUSTERS, self.random.randint(1, 2)), name=name)
        elif kind == "outage":
            await scene.box.servers[cluster].stop()
            scene.app(f"value-{self.number}", *CLUSTERS, name=name)
            other = next(other for other in CLUSTERS if other != cluster)
            await scene.until(lambda: scene.value(other, name) == f"value-{self.number}")
            await scene.box.servers[cluster].start()
        elif scene.value(cluster, name) is not None:
            body = {"data": {"value": "secret of theirs"}} if kind == "edit" else {}
            ask(scene.box[cluster], "PATCH" if kind == "edit" else "DELETE", f"{CONFIG_MAPS}/{name}", body)
        await scene.until(self.is_settled)
        await scene.quiet()

    def is_settled(self) -> bool:
        """Return whether the clusters are as the store says."""
        step = self.scene.vitals.snapshot.step
        return step is not None and step.is_complete and step.revision == f"r{self.scene.source._number}"


@pytest.mark.parametrize("seed", range(3))
async def test_a_replay_comes_to_the_same_plans_requests_and_records(tmp_path: Path, seed: int) -> None:
    files, quick, clock = [tmp_path / "rounds", tmp_path / "replay"], QuickClock(), ReplayClock()
    async with standing(tmp_path, quick) as (scene, parts):
        for name in NAMES:
            scene.app("1", *CLUSTERS, name=name)
        scene.start(replace(parts, round_log=RoundLog(files[0])))
        somebody = Somebody(scene, seed)
        await scene.until(somebody.is_settled)
        for _ in range(6):
            await somebody.act()
        await scene.stop()
        made, recorded, source = requests(scene), rows(scene), scene.source
    lines = read_rounds(files[0])
    assert "value-" not in files[0].read_text(), "no value of the store"
    assert "theirs" not in files[0].read_text(), "no value of a cluster"
    (tmp_path / "again").mkdir()
    async with standing(tmp_path / "again", clock, speed=None) as (scene, parts):
        await replay(lines, replace(parts, source=source, round_log=RoundLog(files[1])), scene.box, clock)
        again = rounds_of(read_rounds(files[1]))
        assert [plan for _, plan in again] == [plan for _, plan in rounds_of(lines)]
        assert requests(scene) == made
        assert rows(scene) == recorded


def test_the_log_is_bounded_and_for_its_owner_alone(tmp_path: Path) -> None:
    file, clock = tmp_path / "rounds", TestClock()
    file.write_text("")
    file.chmod(0o644)
    log = RoundLog(file, bytes_max=1000)
    for number in range(30):
        log.batch_taken((), f"r{number}", clock)
    both = [file, tmp_path / "rounds.1"]
    assert [found.stat().st_mode & 0o777 for found in both] == [0o600, 0o600]
    assert all(found.stat().st_size <= 1000 for found in both)
    assert [batch.revision for batch, _ in rounds_of(read_rounds(file))][-1] == "r29"


def test_a_log_that_cannot_be_written_ends_and_nothing_else(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = RoundLog(tmp_path / "gone" / "rounds")
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            log.batch_taken((), "r1", TestClock())
    assert [vars(record)["event"] for record in caplog.records] == ["RoundLogEnded"]
