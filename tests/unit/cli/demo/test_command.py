"""The end of a demo whose promises did not all hold."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from reconciler.cli.demo import story as demo_story
from reconciler.cli.main import cli


@pytest.mark.parametrize(("is_kept", "code"), [(True, 0), (False, 1)])
def test_the_exit_code_says_whether_every_promise_held(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, is_kept: bool, code: int
) -> None:
    async def tell(story: demo_story.Story) -> None:
        story._screen.promise("the moon is there", is_kept=is_kept, found="clouds")

    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr(demo_story.Story, "tell", tell)
    result = CliRunner().invoke(cli, ["demo"])
    assert result.exit_code == code
    if is_kept:
        assert "All 1 promises held." in result.output
    else:
        assert "✗ the moon is there (found: clouds)\n" in result.output
        assert "1 of 1 promises did not hold:\n  the moon is there\n" in result.output
    assert list(tmp_path.iterdir()) == []
