"""A change goes in stages over clusters that several processes apply to. Source: ADR 22; ADR 18."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.soak.rollouts import CLUSTERS
from tests.soak.staged_shards import scene

pytestmark = pytest.mark.timeout(600)
FIRST = dict.fromkeys(CLUSTERS, "nginx:1")


def test_commits_go_stage_by_stage_over_the_clusters_of_both_shards(tmp_path: Path) -> None:
    with scene(tmp_path) as found:
        first = found.put("nginx:1")
        found.start()
        found.until(lambda: found.all_have("nginx:1"), "the first revision everywhere")
        found.until(lambda: found.is_complete(first), "the first revision completed")
        second = found.put("nginx:2")
        found.until(lambda: found.all_have("nginx:2"), "the second revision everywhere")
        found.until(lambda: found.is_complete(second), "the second revision completed")
        assert {name: entry["revision"] for name, entry in found.entries().items()} == dict.fromkeys(CLUSTERS, second)
        assert not found.referee.wrong
