"""A confirmed deletion is carried out to its end, however many rounds that takes. Source: design#confirm."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reconciler.sim import Fault, FaultKind
from tests.fakes.worlds import policy
from tests.unit.controller.test_loop import Running, running

NAMES = ("first", "second")


def claim(name: str) -> dict[str, Any]:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    metadata = {"name": name, "namespace": "demo"}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


def there(scene: Running) -> list[str]:
    return [body["metadata"]["name"] for body in scene.box["m1"].state.sorted("PersistentVolumeClaim", "demo")]


def held_digest(scene: Running) -> str:
    return str((scene.journal.state() or {}).get("heldDigest", ""))


async def test_what_is_left_of_a_confirmation_needs_no_second_one(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        rule = policy("PersistentVolumeClaim", "m1", name="claims", preserveResourcesOnDeletion=False)
        scene.put(claims=[claim(name) for name in NAMES], rule=[rule])
        await scene.until(lambda: there(scene) == list(NAMES))
        await scene.quiet()
        scene.put(claims=None)
        await scene.until(lambda: held_digest(scene) != "")
        scene.box.servers["m1"].faults.order(
            Fault(kind=FaultKind.INTERNAL),
            when=lambda request: request.method == "DELETE" and request.path.endswith("/second"),
            times=2,
        )
        scene.settings = {**scene.settings, "guards": {"confirm": held_digest(scene)}}
        scene.put()
        await scene.until(lambda: there(scene) == ["second"])
        await scene.stop()
        scene.source.forget()
        scene.start(scene.parts)
        await scene.until(lambda: there(scene) == [])
        scene.put(claims=[claim("second")])
        await scene.until(lambda: there(scene) == ["second"])
        await scene.quiet()
        scene.put(claims=None)
        await scene.until(lambda: held_digest(scene) != "")
        await scene.quiet()
        assert there(scene) == ["second"], "it came again, of which nobody has confirmed anything"
