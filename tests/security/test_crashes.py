"""The output when something unexpected breaks."""

from __future__ import annotations

import pytest

from reconciler.cli.main import report_crash


def test_a_traceback_says_where_and_quotes_no_credentials(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        raise ValueError("no answer from https://ann:hunter2hunter2@host/\n::error::x\x1b[31m")
    except ValueError as error:
        report_crash(type(error), error, error.__traceback__)
    shown = capsys.readouterr().err
    assert "test_crashes.py" in shown
    assert "ValueError" in shown
    assert "hunter2" not in shown
    assert "\x1b" not in shown
    assert "\n::" not in shown
