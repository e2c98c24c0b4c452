"""Problems that the service shows: a fixed one goes with the round that looked at its subject, no other one does.

Source: design#promise-7; design#incremental.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.unit.controller.test_loop import Running, running

ACK = "policy.one.alibabacloud.com/v1alpha1"


def override(name: str, path: str) -> dict[str, Any]:
    plaintext = [{"path": path, "operator": "replace", "value": "x"}]
    return {
        "apiVersion": ACK, "kind": "OverridePolicy", "metadata": {"name": name, "namespace": "demo"},
        "spec": {"resourceSelectors": [{"apiVersion": "v1", "kind": "ConfigMap", "name": name}],
                 "overrideRules": [{"overriders": {"plaintext": plaintext}}]},
    }  # fmt: skip


def codes(scene: Running) -> set[str]:
    return {problem.code for problem in scene.vitals.snapshot.problems}


def shown(scene: Running) -> int:
    """Errors as the journal's picture has them, which `status` reads."""
    return len((scene.journal.state() or {}).get("problems", []))


async def test_a_mended_override_is_no_error_any_more(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        scene.app("1", "m1", "m2", name="other")
        await scene.until(lambda: scene.value("m2", "other") == "1")
        scene.put(over=[override("app", "/data/nothing/here")])
        await scene.until(lambda: bool(codes(scene)))
        broken = codes(scene)
        # A round over something else alone leaves it.
        scene.app("2", "m1", "m2", name="other")
        await scene.until(lambda: scene.value("m2", "other") == "2")
        await scene.until(lambda: codes(scene) == broken and shown(scene) > 0)
        scene.put(over=[override("app", "/data/value")])
        await scene.until(lambda: scene.value("m1") == "x")
        await scene.until(lambda: not codes(scene) and not shown(scene))
