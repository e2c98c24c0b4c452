"""Room that a round gave away is taken, though the pods do not show yet. Source: design#booked-once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reconciler.api.refs import Identity
from reconciler.kube import MemberCluster, Pod
from tests.tick_cases import policy, template
from tests.unit.controller.ticking import Ticking, ticking

NODES = {"m1": 20, "m2": 20}


@pytest.fixture
def no_pods_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Controllers that are slow: what is written is there, and no pod of it."""

    async def nothing(self: MemberCluster, namespace: str = "") -> tuple[Pod, ...]:
        return ()

    monkeypatch.setattr(MemberCluster, "pods", nothing)


def put(scene: Ticking, name: str, **case: Any) -> None:
    scene.put(**{name: [template(name, case), policy(name, case)]})


def placed(scene: Ticking, name: str) -> dict[str, int | None]:
    found = scene.journal.previous_placements().get(Identity("apps", "Deployment", "demo", name))
    return dict(found.targets) if found is not None else {}


@pytest.mark.usefixtures("no_pods_yet")
@pytest.mark.parametrize("is_restarted", [False, True])
@pytest.mark.parametrize("division", ["dynamic", "duplicated"])
async def test_what_a_round_before_filled_is_full(tmp_path: Path, division: str, is_restarted: bool) -> None:
    async with ticking(tmp_path, NODES) as scene:
        put(scene, "first", replicas=15, policy={"division": division, "affinity": ["m1"]})
        await scene.until(lambda: placed(scene, "first") == {"m1": 15})
        if is_restarted:
            await scene.stop()
            scene.restart()
        put(scene, "second", replicas=6, policy={"groups": {"a": ["m1"], "b": ["m2"]}})
        await scene.until(lambda: bool(placed(scene, "second")))
        assert placed(scene, "second") == {"m1": 5, "m2": 1}
