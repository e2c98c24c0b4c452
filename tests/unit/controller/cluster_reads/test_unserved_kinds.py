"""Kinds with applied objects that left the store, and that their cluster serves no more."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.api.clusters import Cluster, Read
from reconciler.api.refs import GVK, ResourceRef
from reconciler.controller.cluster_reads.members import ReadRequest, read_member
from reconciler.kinds.registry import BUILT_IN_KINDS
from reconciler.kube.connection.kubeconfig import load_members
from reconciler.kube.member_clusters import MemberClusters, UserAgent
from reconciler.sim import ClusterSpec, Fault, FaultKind, Request
from reconciler.sim.fleet_in_a_box import FleetInABox


@pytest.mark.parametrize(
    ("kinds", "is_absent", "lists"),
    [
        pytest.param((GVK("policy", "v1beta1", "PodDisruptionBudget"),), False, 0, id="another version is served"),
        pytest.param((GVK("extensions", "v1beta1", "Ingress"),), False, 0, id="Kubernetes moved it"),
        pytest.param(
            (GVK("ex.io", "v1", "Widget"), GVK("ex.io", "v1", "Gear"), GVK("old.io", "v1", "Gear")), True, 1,
            id="no definition is there",
        ),
    ],
)  # fmt: skip
async def test_only_what_no_definition_can_serve_is_gone(
    tmp_path: Path, kinds: tuple[GVK, ...], is_absent: bool, lists: int
) -> None:
    """Kubernetes keeps the objects of a version that it drops, with our mark."""
    async with FleetInABox([ClusterSpec(name="m1")], tmp_path) as box:
        configs = load_members(box.kubeconfig, [Cluster(name="m1")])
        async with MemberClusters.open(configs, agent=UserAgent("test")) as members:
            paths: list[str] = []

            def saw(request: Request) -> bool:
                """Note what is asked, and let no fault strike."""
                paths.append(request.path)
                return False

            box.servers["m1"].faults.order(Fault(kind=FaultKind.INTERNAL), when=saw)
            wanted, left = frozenset(ResourceRef(gvk, "demo", "a") for gvk in kinds), frozenset(kinds)
            interest = ReadRequest(wanted=wanted, applied=left, left=left)
            found = await read_member(members["m1"], interest, ("test",), BUILT_IN_KINDS)
            assert isinstance(found, Read)
            identities = frozenset(ref.identity for ref in wanted)
            assert found.absent == (identities if is_absent else frozenset())
            assert frozenset(found.unread) == identities - found.absent
            assert sum(path.endswith("/customresourcedefinitions") for path in paths) == lists
