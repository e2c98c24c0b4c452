"""The cluster that a reading takes one for, by the uid of its kube-system namespace.

Source: design#cluster-identity: a name that later answers with another uid is Unknown, not a fresh cluster.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from reconciler.api.ledger import JournalSnapshot
from reconciler.controller import timing
from reconciler.controller.cluster_reads.read_clusters import answering, observe_members, second_names
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.kube import MemberClusters, UserAgent, load_members
from tests.fakes.clocks import QuickClock
from tests.fakes.members import FLEET, opened
from tests.fakes.worlds import NOW, config_map, fleet_of, policy


@pytest.mark.parametrize(
    ("uids", "recorded", "expected"),
    [
        ({"m1": "a", "m2": "b"}, {}, {}),
        ({"m1": "a", "m2": "a", "m3": "a"}, {}, {"m2": "m1", "m3": "m1"}),
        ({"m1": "a", "m2": "a"}, {"m2": "a"}, {"m1": "m2"}),
        ({"m2": "a"}, {"m1": "a"}, {}),
    ],
    ids=["two clusters", "the first name counts", "the recorded name counts", "a cluster with a new name"],
)
def test_one_cluster_has_one_name(uids: dict[str, str], recorded: dict[str, str], expected: dict[str, str]) -> None:
    assert second_names(uids, recorded) == expected


async def test_one_that_falls_silent_is_not_observed_and_keeps_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Source: design#promise-7."""
    monkeypatch.setattr(timing, "PROMPT_S", 0.2)
    fleet = fleet_of(clusters=("m1", "m2"))
    async with opened(tmp_path) as scene:
        reachable, _ = await answering(fleet, scene.members, {})
        scene.box.servers["m2"].pause()
        for deep in (False, True):
            seen = await observe_members(fleet, reachable, JournalSnapshot(), BUILT_IN_KINDS, NOW, deep=deep)
            assert {name: found.reachable for name, found in seen.clusters.items()} == {"m1": True, "m2": False}
        scene.box.servers["m2"].resume()


async def test_nothing_is_written_or_deleted_under_a_second_name(tmp_path: Path) -> None:
    fleet = fleet_of(config_map(), policy("ConfigMap", "m2", preserveResourcesOnDeletion=False), clusters=("m1", "m2"))
    async with opened(tmp_path) as scene:
        clusters = [replace(cluster, context="m1") for _, cluster in sorted(fleet.clusters.items())]
        configs = load_members(scene.box.kubeconfig, clusters)
        async with MemberClusters.open(configs, agent=UserAgent(FLEET), clock=QuickClock()) as members:
            reachable, uids = await answering(fleet, members, {})
            assert reachable["m2"] == (
                "it is the same cluster as m1 (one kube-system uid); take one of the two out of the store"
            )
            assert uids.keys() == {"m1"}
            _, planned = await scene._replace(members=members).plan(fleet, JournalSnapshot(has_history=True))
            assert planned.plan.changes == ()
            assert not planned.plan.is_complete
