"""The output when something unexpected breaks."""

from __future__ import annotations

import pytest

from reconciler.cli.main import report_crash


def test_a_person_gets_one_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("INVOCATION_ID", "KUBERNETES_SERVICE_HOST", "RECONCILER_TRACEBACK"):
        monkeypatch.delenv(name, raising=False)
    try:
        raise ExceptionGroup("several", [ValueError("hunter2"), KeyError("b")])
    except ExceptionGroup as error:
        report_crash(type(error), error, error.__traceback__)
    shown = capsys.readouterr().err
    assert shown.startswith("error: this command: a fault of the program (ValueError")
    assert "RECONCILER_TRACEBACK=1" in shown
    assert "please report it" in shown
    assert shown.count("\n") == 1
    assert "Traceback" not in shown
    assert "hunter2" not in shown


def test_a_traceback_says_where_and_quotes_no_credentials(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECONCILER_TRACEBACK", "1")
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
