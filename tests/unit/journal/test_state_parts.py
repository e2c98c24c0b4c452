"""The picture of a round is written where it differs.

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

from reconciler.api.content import JsonObject
from reconciler.api.ledger import Intent, RecordedLoss
from reconciler.api.plan import Action
from reconciler.api.refs import GVK, Identity
from reconciler.errors import JournalError
from reconciler.journal import Journal, trail
from reconciler.journal.mirror import SharedCommits
from reconciler.journal.rows import STATE, json_text


def test_of_a_picture_the_lists_that_differ_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    problems, held = [{"severity": "hint", "message": "m" * 1_000}], [{"name": "x"}]
    document: JsonObject = {"version": 1, "problems": problems, "held": held}
    written: list[str] = []
    text_of = json_text

    def counted(tree: Any) -> str:
        text = text_of(tree)
        written.append(text)
        return text

    monkeypatch.setattr(trail, "json_text", counted)
    with Journal.open(tmp_path / "journal.db") as journal:
        journal.record_state(document)
        assert len(written) == 3
        written.clear()
        journal.record_state({**document, "held": [{"name": "y"}], "problems": [*problems]})
        assert written == ['[{"name":"y"}]']
        journal.record_state({"version": 1, "problems": problems})
    with Journal.open(tmp_path / "journal.db") as journal:
        assert journal.state() == {"version": 1, "problems": problems}


def test_long_lists_that_an_earlier_version_wrote_in_parts_are_read_whole(tmp_path: Path) -> None:
    with Journal.open(tmp_path / "journal.db") as journal:
        journal.record_state({"version": 1, "problems": [1]})
        journal._file.put(STATE, [("picture.problems/00001", "[2]"), ("picture.problems/00010", "[3]")])
    with Journal.open(tmp_path / "journal.db") as journal:
        assert journal.state() == {"version": 1, "problems": [1, 2, 3]}
        journal.record_state({"version": 1, "problems": [4]})
    with Journal.open(tmp_path / "journal.db") as journal:
        assert journal.state() == {"version": 1, "problems": [4]}


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
