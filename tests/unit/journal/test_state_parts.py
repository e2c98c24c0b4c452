"""The picture of a round is written where it differs, whatever its size.

Writes that begin in one turn of the event loop share a commit; one that cannot be written fails alone.

Source: design#intents.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.api.content import JsonObject
from reconciler.api.ledger import Intent, RecordedLoss
from reconciler.api.plan import Action
from reconciler.api.refs import GVK, Identity
from reconciler.errors import JournalError
from reconciler.journal import Journal, trail
from reconciler.journal.mirror import SharedCommits
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


CONFIG_MAP = GVK("", "v1", "ConfigMap")


def intent(cluster: str, name: str = "a") -> Intent:
    identity = Identity("", "ConfigMap", "demo", name)
    return Intent(cluster=cluster, gvk=CONFIG_MAP, identity=identity, action=Action.CREATE)


class Commits:
    """A disk that counts commits, and refuses what a cluster begins."""

    def __init__(self, refused: str = "", fault: Exception | None = None) -> None:
        self.made: list[list[str]] = []
        self._open: list[str] | None = None
        self._refused, self._fault = refused, fault
        self.shared = SharedCommits(self._begin, self._durable)

    def _begin(self, intents: Iterable[Intent], losses: Iterable[RecordedLoss]) -> tuple[int, ...]:
        names = [each.cluster for each in intents]
        if self._fault is not None and self._refused in names:
            raise self._fault
        if self._open is None:
            self.made.append(names)
        else:
            self._open += names
        return tuple(range(len(names)))

    @contextmanager
    def _durable(self) -> Iterator[None]:
        self._open = []
        try:
            yield
            self.made.append(self._open)
        finally:
            self._open = None

    async def begin(self, *clusters: str) -> list[tuple[int, ...] | BaseException]:
        begun = (self.shared.begin([intent(name)], ()) for name in clusters)
        return await asyncio.gather(*begun, return_exceptions=True)


async def test_who_begins_in_one_turn_shares_a_commit_and_who_comes_later_does_not() -> None:
    commits = Commits()
    assert await commits.begin("m1", "m2") == [(0,), (0,)]
    assert await commits.begin("m3") == [(0,)]
    assert commits.made == [["m1", "m2"], ["m3"]]


async def test_what_cannot_be_written_fails_alone() -> None:
    fault = TypeError("no row")
    commits = Commits("m2", fault)
    assert await commits.begin("m1", "m2", "m3") == [(0,), fault, (0,)]
    assert commits.made == [["m1"], ["m3"]]


async def test_a_disk_that_fails_stops_everybody() -> None:
    fault = JournalError("no room")
    commits = Commits("m2", fault)
    assert await commits.begin("m1", "m2") == [fault, fault]
    assert commits.made == []


async def test_what_is_given_up_before_the_commit_is_not_begun() -> None:
    commits = Commits()
    asked = [asyncio.ensure_future(commits.shared.begin([intent(name)], ())) for name in ("m1", "m2")]
    # Both have asked when this runs, and the commit is behind it.
    asyncio.get_running_loop().call_soon(asked[0].cancel)
    assert await asked[1] == (0,)
    assert asked[0].cancelled()
    assert commits.made == [["m2"]]


async def test_the_journal_has_them_open_with_their_ids(tmp_path: Path) -> None:
    with Journal.open(tmp_path / "journal.db") as journal:
        ids = await asyncio.gather(
            *(journal.shared_commits.begin([intent(name), intent(name, "b")], ()) for name in ("m1", "m2"))
        )
        begun = {number: found.cluster for number, found in journal.open_intents().items()}
        assert begun == {**dict.fromkeys(ids[0], "m1"), **dict.fromkeys(ids[1], "m2")}
