"""Unreadable files in `status`. Source: design#broken-input."""

from __future__ import annotations

from typing import Any

from reconciler.api.binding import PreviousPlacement
from reconciler.api.clusters import Observations
from reconciler.api.content import Json
from reconciler.api.fleet import FrozenReach
from reconciler.api.problem import Problem, Source
from reconciler.fleet import Earlier, ParsedFile, assemble, with_last_good
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.report.status.state_document import broken_part
from reconciler.report.status.text import broken_lines
from reconciler.scheduler import schedule_fleet
from tests.fakes.worlds import NOW, config_map, fleet_of, policy

LATER = "2026-11-21T11:00:00Z"


def _unread(path: str, why: str, *reaches: FrozenReach) -> ParsedFile:
    problem = Problem(source=Source(path), code="file-unreadable", message=why)
    frozen = reaches or (FrozenReach(source=Source(path), everything=True),)
    return ParsedFile(path=path, blob=path, problems=(problem,), frozen=frozen)


def _broken(*files: ParsedFile, time: str = NOW, before: list[Json] | None = None, **earlier: Any) -> list[Any]:
    fleet = fleet_of(config_map("app"), config_map("new"), policy("ConfigMap", "m1"))
    good = ParsedFile(
        path="all.yaml",
        blob="all",
        templates=tuple(fleet.templates.values()),
        propagation=fleet.propagation,
        clusters=tuple(fleet.clusters.values()),
        settings=(fleet.settings,),
    )
    read = assemble("r1", with_last_good([good, *files], Earlier(**earlier)))
    previous = {
        identity: PreviousPlacement(identity=identity, targets=())
        for identity in read.templates
        if identity.name == "app"
    }
    schedule = schedule_fleet(read, Observations(previous=previous), NOW, interpreters=BUILT_IN_KINDS)
    return broken_part(schedule, time, {"broken": before or []}, lambda text: text)


def test_the_first_lines_of_status_name_the_file_since_when_and_whom_it_concerns() -> None:
    kept = ParsedFile(path="a.yaml", blob="a")
    found = _broken(
        _unread("a.yaml", "a Git LFS pointer"),
        _unread("b.yaml", "a link to nothing"),
        good={"a.yaml": kept},
        new=frozenset({"b.yaml"}),
    )
    assert broken_lines(found) == [
        f"a.yaml since {NOW}: a Git LFS pointer; its last good content stays in force",
        f"b.yaml since {NOW}: a link to nothing; what is placed goes on, and ConfigMap demo/new waits",
        "until the store is fixed, nothing is taken for deleted because it is gone from it",
    ]
    later = _broken(_unread("a.yaml", "still"), time=LATER, before=found, good={"a.yaml": kept})
    assert [entry["since"] for entry in later] == [NOW], "it lasts since it began"


def test_what_is_frozen_is_told_with_what_it_could_concern() -> None:
    found = _broken(_unread("a.yaml", "no text"))
    assert [(entry["inForce"], entry["reach"], entry["frozen"]) for entry in found] == [("frozen", ["everything"], 2)]
    assert broken_lines(found)[0] == (
        f"a.yaml since {NOW}: no text; frozen is everything (ConfigMap demo/app, ConfigMap demo/new)"
    )
    of_namespace = _broken(_unread("a.yaml", "no", FrozenReach(source=Source("a.yaml"), namespace="other")))
    assert broken_lines(of_namespace)[0].endswith("frozen is everything in namespace other")


def test_many_files_are_cut_and_a_whole_store_says_nothing() -> None:
    assert broken_lines(_broken()) == []
    lines = broken_lines(_broken(*(_unread(f"f{number}.yaml", "no") for number in range(8))))
    assert len(lines) == 7
    assert lines[5] == "and 3 more files, see the problems below"
