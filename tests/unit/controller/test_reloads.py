"""SIGHUP at every point of a round, with whatever the kubeconfig says by then: the loop goes on.

Source: design#clusters-are-a-value.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.sim import Fault, FaultKind, Request, write_kubeconfig
from tests.unit.controller.test_loop import Running, running

SLOW_S = 0.1

POINTS: dict[str, Callable[[Request], bool]] = {
    "who-it-is": lambda asked: asked.path.endswith("/namespaces/kube-system"),
    "mark": lambda asked: asked.method == "GET" and "/fleet-system/" in asked.path,
    "list": lambda asked: asked.method == "GET" and asked.path.endswith("/configmaps") and "watch" not in asked.query,
    "get": lambda asked: asked.method == "GET" and asked.path.endswith("/configmaps/app"),
    "write": lambda asked: asked.method == "PATCH" and asked.path.endswith("/configmaps/app"),
    "watch": lambda asked: "watch" in asked.query,
}
"""The work in m2 while the kubeconfig becomes another one."""


def removed(scene: Running) -> None:
    """The context of m2 is taken out."""
    write_kubeconfig(scene.box.kubeconfig, {"m1": scene.box.servers["m1"].url})


def renamed(scene: Running) -> None:
    write_kubeconfig(scene.box.kubeconfig, {"m1": scene.box.servers["m1"].url, "m9": scene.box.servers["m2"].url})


def led_elsewhere(scene: Running) -> None:
    """The context of m2 leads to a cluster that nobody meant."""
    write_kubeconfig(scene.box.kubeconfig, {"m1": scene.box.servers["m1"].url, "m2": scene.box.servers["other"].url})


def with_other_credentials(scene: Running) -> None:
    text = scene.box.kubeconfig.read_text()
    scene.box.kubeconfig.write_text(re.sub(r'"user": \{\}', '"user": {"token": "another"}', text))


def broken(scene: Running) -> None:
    scene.box.kubeconfig.write_text("{ contexts: [")


def emptied(scene: Running) -> None:
    scene.box.kubeconfig.write_text("")


def as_it_was(scene: Running) -> None:
    write_kubeconfig(scene.box.kubeconfig, {name: scene.box.servers[name].url for name in scene.box.names})


@pytest.mark.parametrize(
    "change",
    [removed, renamed, led_elsewhere, with_other_credentials, broken, emptied],
    ids=lambda found: found.__name__,
)
async def test_the_loop_goes_on_whatever_is_under_way(tmp_path: Path, change: Callable[[Running], None]) -> None:
    async with running(tmp_path, others=("other",)) as scene:
        faults, value = scene.box.servers["m2"].faults, 1
        for point, matches in POINTS.items():
            value = await _reloaded_at(scene, matches, change, value)
            faults.clear()
            as_it_was(scene)
            scene.loop.reload()
            wanted = str(value)
            await scene.until(lambda wanted=wanted: scene.value("m2") == wanted)  # type: ignore[misc]
            await scene.quiet()
            assert scene.box["other"].state.get("ConfigMap", "demo", "app") is None, f"led elsewhere at {point}"


async def _reloaded_at(
    scene: Running, matches: Callable[[Request], bool], change: Callable[[Running], None], value: int
) -> int:
    """Have the kubeconfig change while such a request is under way; the value that is wanted by then."""
    come: list[Request] = []

    def strikes(asked: Request) -> bool:
        if matches(asked) and not come:
            come.append(asked)
            change(scene)
            scene.loop.reload()
        return False

    faults = scene.box.servers["m2"].faults
    faults.latency_s = (SLOW_S, SLOW_S)
    faults.order(Fault(kind=FaultKind.INTERNAL), when=strikes)
    scene.app(str(value + 1), "m1", "m2")
    if matches is not POINTS["get"]:  # One that is met again is listed; a commit alone reads the object.
        scene.box.servers["m2"].break_connections()
        scene.loop.reload()
    await scene.until(lambda: bool(come))
    await scene.until(lambda: scene.value("m1") == str(value + 1) and not scene.vitals.is_reloading)
    return value + 1


async def test_it_ends_in_good_order_while_a_reload_is_asked_for_and_a_cluster_hangs(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        assert scene.task is not None
        scene.box.servers["m2"].pause()
        scene.app("2", "m1", "m2")
        scene.loop.reload()
        await scene.until(lambda: scene.value("m1") == "2")
        removed(scene)
        scene.loop.reload()
        scene._stop.set()
        await scene.task


async def test_what_hangs_is_left_when_its_context_is(tmp_path: Path) -> None:
    """Beside it, the others are written to as ever."""
    async with running(tmp_path) as scene:
        scene.box.servers["m2"].pause()
        for value in ("2", "3"):
            scene.app(value, "m1", "m2")
            scene.loop.reload()
            await scene.until(lambda value=value: scene.value("m1") == value)  # type: ignore[misc]
            removed(scene)
            scene.loop.reload()
            await scene.until(lambda: not scene.vitals.is_reloading)
        scene.box.servers["m2"].resume()
        as_it_was(scene)
        scene.loop.reload()
        await scene.until(lambda: scene.value("m2") == "3")
