"""The mark of a cluster with entries of rollouts, written, taken away and read back by the rules of API servers."""

from __future__ import annotations

import json
from pathlib import Path

from reconciler.api.rollout_progress import Record
from reconciler.clock import SystemClock
from reconciler.controller.round.ownership_lock import OwnershipLock
from reconciler.journal import Journal
from tests.contract.conftest import Connect
from tests.real_clusters import RealCluster

OLD = Record(revision="c" * 40, begun_at="2020-11-20T10:00:00Z", completed_at="2020-11-20T10:05:00Z")
NEW = Record(revision="d" * 40, begun_at="2020-11-21T10:00:00Z")


def data_of(cluster: RealCluster, fleet: str) -> dict[str, str]:
    found = cluster.kubectl("get", "configmap", f"fleet-{fleet}", "-n", "fleet-system", "-o", "json")
    data = json.loads(found)["data"]
    assert isinstance(data, dict)
    return data


async def test_entries_are_written_kept_taken_away_and_read_back(
    member: Connect, cluster: RealCluster, namespace: str, tmp_path: Path
) -> None:
    async with member() as it:
        with Journal.open(tmp_path / "a.db") as journal:
            holder = OwnershipLock(journal, SystemClock())
            journal.record_rollouts("web", {it.name: OLD})
            journal.record_rollouts("api", {it.name: OLD})
            assert await holder.hold([it], namespace) == {}
            assert await holder.enter(it, namespace, {"web": NEW}) is None
            journal.record_rollouts("web", {it.name: NEW})
            journal.record_rollouts("api", {it.name: None})
            assert await holder.hold([it], namespace) == {}
            data = data_of(cluster, namespace)
            assert (json.loads(data["rollout.web"])["revision"], "rollout.api" in data) == (NEW.revision, False)
            # Another manager's key is nobody's of ours.
            patch = json.dumps({"data": {"rollout.hand": json.dumps({"revision": "x", "begunAt": NEW.begun_at})}})
            cluster.kubectl(
                "patch", "configmap", f"fleet-{namespace}", "-n", "fleet-system", "--type=merge", "-p", patch
            )
            assert await holder.hold([it], namespace) == {}
            assert "rollout.hand" in data_of(cluster, namespace)
        with Journal.open(tmp_path / "b.db") as journal:
            holder = OwnershipLock(journal, SystemClock())
            assert await holder.read_back([it], namespace) == {}
            assert journal.rollout_records()["web"] == {it.name: NEW}
            assert await holder.hold([it], namespace, take_over=True) == {}
            assert json.loads(data_of(cluster, namespace)["rollout.web"])["revision"] == NEW.revision
