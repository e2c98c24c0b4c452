"""`apply`, `diff --live` and `status` where the store has a Rollout: what the service would do now, by hand."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.e2e.daemon_process import GitRepository
from tests.soak.rollouts import Referee, put, rollout, scene
from tests.unit.cli.command_line import Ran, run

PATIENCE_S = 180


class Person:
    """Somebody with a checkout, a kubeconfig and a journal."""

    def __init__(self, store: GitRepository, kubeconfig: Path, journal: Path) -> None:
        self._store = str(store.folder)
        self._options = ("--kubeconfig", str(kubeconfig), "--journal", str(journal))
        self._journal = journal

    def apply(self, *more: str) -> Ran:
        done = run("apply", self._store, *self._options, "--yes", *more)
        assert done.code == 0, done.err
        return done

    def diff(self, *more: str) -> Ran:
        return run("diff", self._store, *self._options, *more)

    def status(self) -> dict[str, Any]:
        found = run("status", "--journal", str(self._journal), "-o", "json")
        return dict(json.loads(found.out))

    def until(self, is_so: Callable[[], bool], what: str) -> None:
        """Apply again and again, as pods become ready, until something is so."""
        deadline = time.monotonic() + PATIENCE_S
        while not is_so():
            assert time.monotonic() < deadline, f"not {what}: {self.status()['rollouts']}"
            self.apply()


def having(referee: Referee, image: str) -> set[str]:
    return {name for name, found in referee.images().items() if found == image}


def test_apply_goes_on_from_where_it_stands(tmp_path: Path) -> None:
    with scene(tmp_path) as (fleet, store, _, referee):
        put(store, "nginx:1")
        person = Person(store, fleet.kubeconfig, tmp_path / "by-hand.db")
        shown = person.diff("--head", "HEAD")
        assert "Stages   default: canary (m1)" in shown.out
        assert not having(referee, "nginx:1"), "to look changes nothing"
        person.apply()
        assert having(referee, "nginx:1") == {"m1"}
        assert person.status()["rollouts"][0]["stages"][1]["state"] == "waits-for-stage"
        person.until(lambda: having(referee, "nginx:1") == set(fleet.box.names), "everywhere")
        put(store, "nginx:2")
        person.until(lambda: having(referee, "nginx:2") == set(fleet.box.names), "everywhere")
        assert not referee.wrong


def test_apply_of_one_stage_begins_in_that_stage_alone(tmp_path: Path) -> None:
    with scene(tmp_path) as (fleet, store, _, referee):
        put(store, "nginx:1")
        person = Person(store, fleet.kubeconfig, tmp_path / "by-hand.db")
        person.apply("--stage", "rest")
        assert not having(referee, "nginx:1"), "its turn has not come"
        person.apply("--stage", "canary")
        deadline = time.monotonic() + PATIENCE_S
        while person.status()["rollouts"][0]["stages"][0]["state"] != "done":
            assert time.monotonic() < deadline, person.status()["rollouts"]
            person.apply("--stage", "canary")
        assert having(referee, "nginx:1") == {"m1"}
        refused = run("apply", str(store.folder), "--kubeconfig", str(fleet.kubeconfig), "--journal",
                      str(tmp_path / "by-hand.db"), "--yes", "--stage", "canry")  # fmt: skip
        assert refused.code == 1
        assert "there are canary, early, rest" in refused.err


def test_nothing_begins_before_a_person_agrees(tmp_path: Path) -> None:
    with scene(tmp_path) as (fleet, store, _, referee):
        put(store, "nginx:1")
        journal = tmp_path / "by-hand.db"
        refused = run("apply", str(store.folder), "--kubeconfig", str(fleet.kubeconfig), "--journal", str(journal))
        assert refused.code == 1
        assert not having(referee, "nginx:1")
        marks = fleet.call(lambda box: [box[name].state.get("ConfigMap", "fleet-system", "fleet-staged")
                                        for name in box.names])  # fmt: skip
        assert not any("rollout.default" in (mark or {"data": {}})["data"] for mark in marks)


def test_a_rollout_that_comes_to_what_runs_moves_nothing(tmp_path: Path) -> None:
    with scene(tmp_path) as (fleet, store, _, referee):
        store.write("rollout.yaml")
        put(store, "nginx:1")
        person = Person(store, fleet.kubeconfig, tmp_path / "by-hand.db")
        person.apply()
        assert having(referee, "nginx:1") == set(fleet.box.names)
        store.write("rollout.yaml", rollout())
        store.commit("in stages from now on")
        person.apply()
        person.until(lambda: bool(person.status()["rollouts"][0]["done"]), "done")
        referee.wrong.clear()
        put(store, "nginx:2")
        person.apply()
        assert having(referee, "nginx:2") == {"m1"}
