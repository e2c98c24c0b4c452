"""The programs of `make profile` exist, with their arguments."""

from __future__ import annotations

import gc

import pytest

from bench.profile import main


def test_each_stage_is_profiled(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        main(40)
    finally:
        gc.enable()
    stages = [line for line in capsys.readouterr().out.splitlines() if line.startswith("== ")]
    assert stages == ["== parse", "== decide", "== render"]
