"""The picture of a round is written where it differs, whatever its size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.api.content import JsonObject
from reconciler.journal import Journal, trail
from reconciler.journal.rows import json_text


def problem(number: int) -> dict[str, Any]:
    return {"severity": "hint", "source": f"apps/web-{number:05}.yaml:3", "message": "m"}


def picture(problems: list[Any]) -> JsonObject:
    return {"version": 1, "revision": "r", "problems": problems, "unclaimed": [{"name": "x"}] * 1_500, "held": []}


def test_of_many_problems_those_that_are_new_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    problems = [problem(number) for number in range(10_000)]
    written: list[str] = []
    text_of = json_text

    def counted(tree: Any) -> str:
        text = text_of(tree)
        written.append(text)
        return text

    monkeypatch.setattr(trail, "json_text", counted)
    with Journal.open(tmp_path / "journal.db") as journal:
        journal.record_state(picture(problems))
        whole = sum(map(len, written))
        for edited in ([*problems[:5_000], problem(99_999), *problems[5_000:]], problems[1:], problems):
            written.clear()
            journal.record_state(picture(edited))
            assert sum(map(len, written)) < whole / 10
    with Journal.open(tmp_path / "journal.db") as journal:
        assert journal.state() == picture(problems)


@given(st.lists(st.lists(st.integers(0, 1_300), max_size=3), min_size=1, max_size=4), st.integers(990, 1_010))
def test_what_was_written_in_parts_is_read_as_it_was(edits: list[list[int]], size: int) -> None:
    before: JsonObject | None = None
    rows: dict[str, Any] = {}
    problems = [problem(number) for number in range(size)]
    for gone in edits:
        problems = [found for number, found in enumerate(problems) if number not in gone]
        document = picture(problems)
        parts, known = trail._state_parts(document), trail._state_parts(before or {})
        rows = {name: part for name, part in rows.items() if name in parts or name not in known} | parts
        read: list[Any] = []
        for name in sorted(name for name in rows if name.startswith("picture.problems")):
            read += rows[name]
        assert read == problems
        before = document
