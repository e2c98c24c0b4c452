"""Constraints of a running service's journal in `explain --live`."""

from __future__ import annotations

import asyncio
from pathlib import Path

from click.testing import CliRunner

from reconciler.cli.explain import command as explain
from tests.unit.controller.ticking import ticking


async def test_a_cap_in_force_is_shown_with_its_reason(tmp_path: Path) -> None:
    async with ticking(tmp_path, {"m1": 8, "m2": 8}) as scene:
        scene.web(replicas=4)
        await scene.until(lambda: scene.ready() == {"m1": 2, "m2": 2})
        scene.box["m1"].set_capacity("n1", cpu="0")
        scene.web(replicas=4, image="nginx:2")
        await scene.until(lambda: scene.ready() == {"m2": 4})
        (cap,) = scene.journal.constraints()
        await scene.stop()
        scene.source.forget()
        snapshot = await scene.source.read()
        assert snapshot is not None
        store = tmp_path / "store"
        store.mkdir()
        for file in snapshot.files:
            (store / file.path).write_bytes(file.data)
        args = ["deployment/web", str(store), "--live", "--kubeconfig", str(scene.box.kubeconfig)]
        args += ["--journal", str(scene.path), "--dir"]
        done = await asyncio.to_thread(CliRunner().invoke, explain, args)
    assert done.exit_code == 0, done.output
    assert f"Constraints\n  m1: at most 0 replicas by descheduling since {cap.since} " in done.stdout
    assert f", {cap.reason}\n" in done.stdout
