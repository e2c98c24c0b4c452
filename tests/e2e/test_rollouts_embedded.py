"""Commits go over six embedded clusters in three stages, whatever happens to the service."""

from __future__ import annotations

from pathlib import Path

from tests.soak.rollouts import CLUSTERS, all_have, put, recorded, scene, until


def test_commits_go_stage_by_stage(tmp_path: Path) -> None:
    with scene(tmp_path) as (_, store, daemon, referee):
        put(store, "nginx:1")
        daemon.start()
        until(daemon, all_have(referee, "nginx:1"), "the first revision everywhere")
        revision = put(store, "nginx:2")
        until(daemon, all_have(referee, "nginx:2"), "the second revision everywhere")
        until(daemon, lambda: recorded(daemon) == dict.fromkeys(CLUSTERS, (revision, True)), "completed everywhere")
        assert not referee.wrong
        assert daemon.stop() == 0
