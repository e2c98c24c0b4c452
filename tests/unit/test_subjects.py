"""The form of commit subjects."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.check_subjects import is_in_form, main


@pytest.mark.parametrize(
    "subject", ["writer: do not cancel sibling writes", "docs/adr: shorten", "Release 0.2.0", 'Revert "a: b"']
)
def test_subjects_in_form(subject: str) -> None:
    assert is_in_form(subject)


@pytest.mark.parametrize("subject", ["Let a lane that was ended end no other", "writer: End it", "writer: end it.", ""])
def test_subjects_of_another_form(subject: str) -> None:
    assert not is_in_form(subject)


def test_a_message_is_judged_by_its_first_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    message = tmp_path / "message"
    message.write_text("Do it\n\nwriter: do it\n")
    assert main([str(message)]) == 1
    assert "Do it" in capsys.readouterr().out
    message.write_text("writer: do it\n\nReason.\n")
    assert main([str(message)]) == 0
