"""The whole crash matrix: kill -9 at every fail point of a run of commits. Source: design#promise-4."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.soak.crashes import trial, undisturbed

pytestmark = [pytest.mark.soak, pytest.mark.timeout(4 * 3600)]


@pytest.mark.parametrize("commit_while_down", [False, True], ids=["restarted", "store-moved-on"])
def test_no_crash_loses_or_repeats_anything(tmp_path: Path, commit_while_down: bool) -> None:
    expected = undisturbed(tmp_path / "undisturbed")
    failed: list[str] = []
    for point, name in enumerate(expected.points, 1):
        try:
            trial(tmp_path / str(point), expected, point, commit_while_down=commit_while_down)
        except AssertionError as error:
            failed.append(f"point {name}: {error}")
    assert not failed, "\n\n".join([f"{len(failed)} of {len(expected.points)} points", *failed])
