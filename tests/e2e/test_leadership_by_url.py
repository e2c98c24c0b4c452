"""Two processes that follow a Git URL, each with a clone of its own: no new leader goes back. Source: ADR 20."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from reconciler.sim import ClusterSpec, background_fleet
from tests.e2e.daemon_process import Daemon, GitRepository
from tests.e2e.test_leadership import CLUSTERS, DURATION_S, FLEET, Scene
from tests.fakes.documents import policy

pytestmark = pytest.mark.timeout(300)


class SceneByUrl(Scene):
    def process(self, name: str, poll: str = "1") -> Daemon:
        journal = self.folder / name / "journal.db"
        return Daemon(f"file://{self.store.folder}", self.fleet.kubeconfig, journal, "--poll", poll)


@contextmanager
def scene(folder: Path, *, poll: str) -> Iterator[SceneByUrl]:
    """The first process leads and has everything in force; the second asks its server every `poll`."""
    with background_fleet([ClusterSpec(name=name) for name in CLUSTERS], folder) as fleet:
        ha = {"cluster": "hub", "leaseDuration": f"{DURATION_S}s"}
        store = GitRepository(folder / "store", FLEET, CLUSTERS, ha=ha)
        store.write("policy.yaml", policy("settings", "ConfigMap", "m1", "m2"))
        found = SceneByUrl(folder, fleet, store)
        found.two = found.process("two", poll)
        found.put("first")
        with found.one, found.two:
            found.one.start()
            found.one.says('"Leads"')
            found.two.start()
            found.two.says('"StandsBy"')
            found.has("first")
            yield found


def test_a_standby_whose_clone_is_old_leads_by_the_commit_that_was_in_force(tmp_path: Path) -> None:
    with scene(tmp_path, poll="3600") as found:
        found.put("second")
        found.has("second")
        seen = found.seen_from_now()
        found.one.kill()
        found.two.says('"Leads"')
        found.put("third")
        found.two.stop()
        found.one.start()
        found.has("third")
        assert [value for value in seen if value not in ("second", "third")] == []


def test_nobody_acts_by_an_older_commit_while_the_server_is_away(tmp_path: Path) -> None:
    with scene(tmp_path, poll="3600") as found:
        found.put("second")
        found.has("second")
        seen = found.seen_from_now()
        away = found.store.folder.rename(tmp_path / "away")
        found.one.kill()
        found.two.says('"StoreIsOlder"')
        away.rename(found.store.folder)
        found.two.says('"Leads"')
        assert [value for value in seen if value != "second"] == []
