"""A right that was missing and is given meanwhile: what was told of it goes, without a round over everything.

Source: design#missing-right.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from reconciler.sim import Fault, FaultKind, Request, is_write
from tests.unit.controller.test_loop import Running, running

CLUSTERS = ("m1", "m2")


def is_list(request: Request, plural: str) -> bool:
    return not is_write(request) and request.path.endswith(f"/{plural}") and "watch" not in request.query


@contextmanager
def refused(scene: Running, plural: str) -> Iterator[None]:
    """Lists of a kind are forbidden in m2 for a while."""
    faults = scene.box.servers["m2"].faults
    faults.order(Fault(kind=FaultKind.FORBIDDEN), when=lambda request: is_list(request, plural), times=10**6)
    try:
        yield
    finally:
        faults.clear()


def told(scene: Running) -> list[tuple[str, str]]:
    return [
        (found.cluster, found.message.split()[0])
        for found in scene.vitals.snapshot.problems
        if found.code == "right-missing"
    ]


def asked(scene: Running) -> dict[str, int]:
    return {name: sum(entry.verb == "list" for entry in scene.box[name].audit) for name in CLUSTERS}


async def test_what_a_list_was_refused_goes_when_the_right_is_given(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        with refused(scene, "configmaps"):
            scene.loop.wake()
            await scene.until(lambda: told(scene) == [("m2", "ConfigMap")])
            # Rounds that list nothing leave it.
            scene.app("2", "m1", "m2")
            await scene.until(lambda: {scene.value(name) for name in CLUSTERS} == {"2"})
            await scene.quiet()
            assert told(scene) == [("m2", "ConfigMap")]
            struck = len(scene.box.servers["m2"].faults.struck)
            await scene.until(lambda: len(scene.box.servers["m2"].faults.struck) > struck)
            assert told(scene) == [("m2", "ConfigMap")]
        before = asked(scene)
        await scene.until(lambda: told(scene) == [])
        assert asked(scene)["m1"] == before["m1"]
        # What is deleted needs the list.
        scene.put(app=None)
        await scene.until(lambda: scene.value("m2") is None)


async def test_a_cluster_that_refuses_a_list_for_ever_is_asked_ever_more_rarely_for_that_kind_alone(
    tmp_path: Path,
) -> None:
    async with running(tmp_path) as scene:
        with refused(scene, "configmaps"):
            scene.loop.wake()
            await scene.until(lambda: told(scene) == [("m2", "ConfigMap")])
            await scene.quiet()
            clock, faults, before = scene.parts.access.clock, scene.box.servers["m2"].faults, asked(scene)
            await scene.until(lambda: len(faults.struck) >= 9)
            begun_s, struck = clock.monotonic_s(), len(faults.struck)
            await scene.until(lambda: len(faults.struck) >= struck + 3)
            assert clock.monotonic_s() - begun_s > 80
            assert asked(scene) == before, "what is refused is asked for, and nothing else"
