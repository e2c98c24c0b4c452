"""Nodes and pods are listed where a policy that looks at free room may place, and nowhere else. Requests tell."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from reconciler.sim import Fault, FaultKind, Request
from tests.fakes.worlds import deployment, policy
from tests.unit.controller.test_loop import Running, running

DYNAMIC: Any = {
    "replicaSchedulingType": "Divided",
    "replicaDivisionPreference": "Weighted",
    "weightPreference": {"dynamicWeight": "AvailableReplicas"},
}
_OF_CAPACITY = ("/api/v1/nodes", "/api/v1/pods", "/api/v1/resourcequotas")


class Capacity:
    """Counts of reads and watches of nodes, pods and quotas of whole clusters since this began."""

    def __init__(self, scene: Running) -> None:
        self.of: Counter[str] = Counter()
        for name in scene.box.names:
            scene.box.servers[name].faults.order(Fault(kind=FaultKind.INTERNAL), when=partial(self._saw, name))

    def _saw(self, cluster: str, request: Request) -> bool:
        """Count, and let no fault strike."""
        if request.path.startswith(_OF_CAPACITY):
            self.of[cluster] += 1
        return False


@pytest.mark.parametrize("mode", ["watch", "poll"])
async def test_nodes_and_pods_are_read_where_replicas_may_go_by_room(tmp_path: Path, mode: str) -> None:
    async with running(tmp_path, drift={"mode": mode, "resync": "40s"}) as scene:
        capacity = Capacity(scene)
        scene.put(still=[deployment("still"), policy("Deployment", "m1", "m2", name="still")])
        await scene.until(lambda: scene.box["m2"].state.get("Deployment", "demo", "still") is not None)
        await scene.quiet()
        assert not capacity.of
        rule = policy("Deployment", "m1", name="moving")
        rule["spec"]["placement"]["replicaScheduling"] = DYNAMIC
        rule["spec"]["resourceSelectors"][0]["name"] = "moving"
        scene.put(moving=[deployment("moving"), rule])
        await scene.until(lambda: scene.box["m1"].state.get("Deployment", "demo", "moving") is not None)
        await scene.until(lambda: capacity.of["m1"] >= 9)
        assert capacity.of["m2"] == 0
