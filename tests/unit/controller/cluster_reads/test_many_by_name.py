"""Many objects of one kind that are looked up: what that asks of the cluster. Source: design#promise-6; ADR 15."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.api.clusters import Cluster, Read
from reconciler.api.refs import GVK, ResourceRef
from reconciler.controller.cluster_reads.members import ReadRequest, read_member
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.kube import MemberClusters, UserAgent, load_members
from reconciler.sim import ClusterSpec, Fault, FaultKind, FleetInABox, Request
from tests.fakes.worlds import config_map

CONFIG_MAP = GVK("", "v1", "ConfigMap")
OURS = {"labels": {"fleet.reconciler/fleet": "test"}}


@pytest.mark.parametrize(
    ("asked", "ours", "foreign", "lists", "reads"),
    [
        pytest.param(8, 100, 0, 0, 8, id="few"),
        pytest.param(100, 100, 0, 2, 0, id="all of ours"),
        pytest.param(40, 100, 0, 2, 0, id="a large part of ours"),
        pytest.param(20, 100, 0, 1, 20, id="a small part of ours"),
        pytest.param(60, 0, 60, 1, 60, id="what is not ours"),
        pytest.param(60, 50, 10, 2, 10, id="ours, and what is not"),
        pytest.param(60, 0, 0, 1, 0, id="what is not there"),
    ],
)
async def test_what_is_cheaper_is_asked(
    tmp_path: Path, asked: int, ours: int, foreign: int, lists: int, reads: int
) -> None:
    async with FleetInABox([ClusterSpec(name="m1")], tmp_path) as box:
        for number in range(ours + foreign):
            body = config_map(f"c{number}")
            body["metadata"] |= OURS if number < ours else {}
            box["m1"].state.put(body)
        async with MemberClusters.open(
            load_members(box.kubeconfig, [Cluster(name="m1")]), agent=UserAgent("test")
        ) as members:
            await members["m1"].discover()
            paths: list[str] = []

            def saw(request: Request) -> bool:
                """Note what is asked, and let no fault strike."""
                paths.append(request.path)
                return False

            box.servers["m1"].faults.order(Fault(kind=FaultKind.INTERNAL), when=saw)
            wanted = frozenset(ResourceRef(CONFIG_MAP, "demo", f"c{number}") for number in range(asked))
            found = await read_member(members["m1"], ReadRequest(wanted=wanted), ("test",), BUILT_IN_KINDS)
            assert isinstance(found, Read)
            listed = sum(path.endswith("/configmaps") for path in paths)
            assert (listed, sum("/configmaps/" in path for path in paths)) == (lists, reads)
            there = min(asked, ours + foreign)
            assert (len(found.objects), len(found.absent)) == (there, asked - there)
            assert all("data" in seen.body for seen in found.objects.values())
