"""Source: design#broken-input: the last good blob of a path stays in force."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

import pytest
import yaml

from reconciler.api.fleet import Fleet, Snapshot, StoreFile
from reconciler.controller import store_in_force
from reconciler.controller.store_in_force import StoreInForce
from reconciler.fleet import ParsedFile, assemble, parse_file
from reconciler.store import ParseCache, StorePast
from tests.fakes.worlds import FLEET, config_map

GOOD = yaml.safe_dump(config_map(value="good"))
BETTER = yaml.safe_dump(config_map(value="better"))
BROKEN = "kind: ConfigMap\napiVersion: v1\nmetadata: [\n"


def file(path: str, text: str) -> StoreFile:
    return StoreFile(path=path, blob=hashlib.sha256(text.encode()).hexdigest(), data=text.encode())


def snapshot(**texts: str) -> Snapshot:
    files = [file("fleet.yaml", yaml.safe_dump(FLEET)), *(file(f"{name}.yaml", text) for name, text in texts.items())]
    return Snapshot(revision="r", files=tuple(files))


def value(fleet: Fleet) -> str | None:
    bodies = [template.body for template in fleet.templates.values()]
    return bodies[0]["data"]["value"] if bodies else None


class Past(StorePast):
    """A store that remembers these files, and knows what stands where others were."""

    def __init__(self, *files: StoreFile, **taken: str) -> None:
        self._files = files
        self._taken = {f"{name}.yaml": words for name, words in taken.items()}

    def read_blob(self, path: str, blob: str) -> StoreFile | None:
        return next((found for found in self._files if (found.path, found.blob) == (path, blob)), None)

    def in_the_way(self, revision: str, paths: Iterable[str]) -> dict[str, str]:
        return {path: self._taken[path] for path in paths if path in self._taken}


NOTHING = Past()


def test_a_file_that_breaks_keeps_its_last_good_content() -> None:
    store = StoreInForce({}, NOTHING)
    store.parse(snapshot(app=GOOD))
    fleet = store.parse(snapshot(app=BROKEN))
    assert value(fleet) == "good"
    assert not fleet.is_complete
    assert [problem.source.path for problem in fleet.problems if problem.code == "last-good-in-force"] == ["app.yaml"]
    assert value(store.parse(snapshot(app=BETTER))) == "better"


def test_a_broken_file_without_a_past_gives_nothing() -> None:
    fleet = StoreInForce({}, NOTHING).parse(snapshot(app=BROKEN))
    assert value(fleet) is None
    assert fleet.frozen


def test_a_restart_reads_the_last_good_content_again() -> None:
    good = file("app.yaml", GOOD)
    before = StoreInForce({}, NOTHING)
    before.parse(snapshot(app=GOOD))
    assert before.good_blobs["app.yaml"] == good.blob
    after = StoreInForce(before.good_blobs, Past(good))
    assert value(after.parse(snapshot(app=BROKEN))) == "good"
    assert after.good_blobs["app.yaml"] == good.blob


def test_a_file_that_was_deleted_has_no_past_when_it_comes_back_broken() -> None:
    store = StoreInForce({}, NOTHING)
    store.parse(snapshot(app=GOOD))
    store.parse(snapshot())
    assert value(store.parse(snapshot(app=BROKEN))) is None


def test_a_broken_file_that_is_deleted_is_gone() -> None:
    store = StoreInForce({}, NOTHING)
    store.parse(snapshot(app=GOOD))
    assert value(store.parse(snapshot(app=BROKEN))) == "good"
    fleet = store.parse(snapshot())
    assert (value(fleet), fleet.is_complete, fleet.frozen) == (None, True, ())


def test_other_edits_of_the_commit_that_breaks_a_file_take_effect() -> None:
    store = StoreInForce({}, NOTHING)
    other = config_map("other", value="1")
    store.parse(snapshot(app=GOOD, other=yaml.safe_dump(other)))
    fleet = store.parse(snapshot(app=BROKEN, other=yaml.safe_dump(config_map("other", value="2"))))
    assert {t.identity.name: t.body["data"]["value"] for t in fleet.templates.values()} == {"app": "good", "other": "2"}


def _parsed_anew(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of files that are parsed from now on."""
    parsed: list[str] = []

    def counted(stored: StoreFile) -> ParsedFile:
        parsed.append(stored.path)
        return parse_file(stored)

    monkeypatch.setattr(store_in_force, "parse_file", counted)
    return parsed


def test_a_second_start_parses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hinted, other = GOOD.replace("\ndata:", "\nimmutable: on\ndata:"), GOOD.replace("name: ", "name: other-")
    first = StoreInForce({}, NOTHING, ParseCache(tmp_path / "parsed.db")).parse(snapshot(a=hinted, b=other))
    parsed = _parsed_anew(monkeypatch)
    store = StoreInForce({}, NOTHING, ParseCache(tmp_path / "parsed.db"))
    assert store.parse(snapshot(a=hinted, b=other)) == first
    assert [problem.code for problem in first.problems] == ["yaml-surprising-value"]
    assert parsed == []
    store.parse(snapshot(a=BETTER, b=other))
    assert parsed == ["a.yaml"]


def test_many_new_files_are_kept_while_the_service_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = StoreInForce({}, NOTHING, ParseCache(tmp_path / "parsed.db"))
    store.parse(snapshot())
    texts = {f"a{number}": GOOD.replace("name: ", f"name: a{number}-") for number in range(300)}
    store.parse(snapshot(**texts))
    parsed = _parsed_anew(monkeypatch)
    StoreInForce({}, NOTHING, ParseCache(tmp_path / "parsed.db")).parse(snapshot(**texts))
    assert parsed == []


def test_a_cache_that_cannot_be_written_costs_time_only(tmp_path: Path) -> None:
    for _ in range(2):
        store = StoreInForce({}, NOTHING, ParseCache(tmp_path / "missing" / "parsed.db"))
        assert value(store.parse(snapshot(app=GOOD))) == "good"


def test_an_older_revision_is_parsed_beside_what_is_in_force(monkeypatch: pytest.MonkeyPatch) -> None:
    other = yaml.safe_dump(config_map("other", value="1"))
    store, twin = StoreInForce({}, NOTHING), StoreInForce({}, NOTHING)
    for one in (store, twin):
        one.parse(snapshot(app=GOOD, other=other))
        one.parse(snapshot(app=BETTER, other=other))
    parsed = _parsed_anew(monkeypatch)
    older = snapshot(app=GOOD, other=other)
    fleet = store.fleet_at(older)
    assert parsed == ["app.yaml"], "blobs that are equal are parsed once"
    assert fleet == assemble("r", [parse_file(found) for found in older.files])
    shared = next(found for found in fleet.templates.values() if found.identity.name == "other")
    in_force = store.parse(snapshot(app=BETTER, other=other))
    assert in_force.templates[shared.identity] is shared
    parsed.clear()
    assert store.fleet_at(older) == fleet
    assert parsed == [], "what was asked for before is known"
    for text in (BROKEN, GOOD, BROKEN):
        assert store.parse(snapshot(app=text, other=other)) == twin.parse(snapshot(app=text, other=other))
        assert store.good_blobs == twin.good_blobs


def test_what_is_broken_in_an_older_revision_is_frozen_and_has_no_past() -> None:
    store = StoreInForce({}, NOTHING)
    in_force = store.parse(snapshot(app=GOOD))
    good_blobs = store.good_blobs
    fleet = store.fleet_at(snapshot(app=BROKEN))
    assert (value(fleet), fleet.is_complete, len(fleet.frozen)) == (None, False, 1)
    assert (store.parse(snapshot(app=GOOD)), store.good_blobs) == (in_force, good_blobs)
    store.parse(snapshot(app=BROKEN))
    assert value(store.fleet_at(snapshot(app=GOOD))) == "good"
    assert value(store.parse(snapshot(app=BROKEN))) == "good", "the last good content stays"


def test_an_older_revision_of_many_files_comes_out_of_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def texts(value: str) -> dict[str, str]:
        return {f"a{number}": yaml.safe_dump(config_map(f"a{number}", value=value)) for number in range(300)}

    before = StoreInForce({}, NOTHING, ParseCache(tmp_path / "parsed.db"))
    for text in ("1", "2"):
        before.parse(snapshot(**texts(text)))
    parsed = _parsed_anew(monkeypatch)
    store = StoreInForce({}, NOTHING, ParseCache(tmp_path / "parsed.db"))
    store.parse(snapshot(**texts("2")))
    assert len(store.fleet_at(snapshot(**texts("1"))).templates) == 300
    assert parsed == []


def test_files_of_older_revisions_are_kept_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_in_force, "_OLDER_MAX", 3)
    store = StoreInForce({}, NOTHING)
    store.parse(snapshot())
    for number in range(10):
        store.fleet_at(snapshot(app=yaml.safe_dump(config_map(value=str(number)))))
    parsed = _parsed_anew(monkeypatch)
    for number in (9, 8, 7, 0):
        store.fleet_at(snapshot(app=yaml.safe_dump(config_map(value=str(number)))))
    assert parsed == ["app.yaml"]
