"""An object whose comparison only the API server can vouch for moves as others do. Source: design#moves."""

from __future__ import annotations

from pathlib import Path

from tests.unit.controller.test_kinds_apart import define, put_widget, value_of
from tests.unit.controller.test_loop import running


async def test_the_old_copy_goes_once_the_new_one_is_there_though_no_schema_is_known(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        for name in scene.box.names:
            define(scene, name)
        put_widget(scene, "1", clusters=("m1",))
        await scene.until(lambda: value_of(scene, "m1") == "1")
        await scene.quiet()
        put_widget(scene, "2", clusters=("m2",))
        await scene.until(lambda: value_of(scene, "m2") == "2" and value_of(scene, "m1") is None)
