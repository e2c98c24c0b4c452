"""A cluster that answers slowly, and one that has fallen silent. Source: design#promise-7; ADR 15."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.api.clusters import Cluster, NotRead, Read
from reconciler.api.refs import GVK, ResourceRef
from reconciler.controller import timing
from reconciler.controller.cluster_reads.members import ReadRequest, read_member
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.kube import MemberClusters, UserAgent, load_members
from reconciler.sim import ClusterSpec, FleetInABox
from tests.fakes.worlds import config_map

CONFIG_MAP = GVK("", "v1", "ConfigMap")
COUNT = 64
SILENCE_S = 1.0


@pytest.mark.parametrize("is_silent", [False, True], ids=["slow", "silent"])
async def test_a_reading_may_take_long_while_the_cluster_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_silent: bool
) -> None:
    monkeypatch.setattr(timing, "PROMPT_S", SILENCE_S)
    async with FleetInABox([ClusterSpec(name="m1")], tmp_path) as box:
        for number in range(COUNT):
            box["m1"].state.put(config_map(f"c{number}"))
        configs = load_members(box.kubeconfig, [Cluster(name="m1")])
        async with MemberClusters.open(configs, agent=UserAgent("test")) as members:
            await members["m1"].discover()
            # One after another in each of the slots: together they take longer than it may be silent.
            box.servers["m1"].faults.latency_s = (SILENCE_S / 2.5, SILENCE_S / 2.5)
            if is_silent:
                box.servers["m1"].pause()
            wanted = frozenset(ResourceRef(CONFIG_MAP, "demo", f"c{number}") for number in range(COUNT))
            found = await read_member(members["m1"], ReadRequest(wanted=wanted), ("test",), BUILT_IN_KINDS)
            if is_silent:
                assert isinstance(found, NotRead)
                box.servers["m1"].resume()
            else:
                assert isinstance(found, Read)
                assert len(found.objects) == COUNT
