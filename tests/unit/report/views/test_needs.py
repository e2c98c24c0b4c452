"""Alerts: each trouble once, with who, since when, where and what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from reconciler.api.ledger import EvictionRecord, SuspensionRecord
from reconciler.api.plan import Cause
from reconciler.api.problem import NOWHERE, Problem, Severity, Source
from reconciler.api.refs import Identity
from reconciler.report.views import AlertKind, JournalRows, Weight
from reconciler.report.views.alerts import NEEDS_MAX, needs_of
from reconciler.state import Degraded, Progressing
from tests.fakes.worlds import NOW
from tests.unit.report.views.sights import begun, sight_of
from tests.unit.state.scenes import APP, Scene, scene_of
from tests.yaml_text import load_yaml

ROWS = load_yaml((Path(__file__).parents[3] / "cases/views/needs.yaml").read_text())["rows"]
SUBJECT = f"{APP} @ m1"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_each_trouble_is_one_need(row: dict[str, Any]) -> None:
    noted = JournalRows(
        begun=begun(*((kind, SUBJECT) for kind in ("failed", "object-refused", "fight-detected")),
                    ("cluster-away", "cluster m1")),
        held_since={"m1": "2026-11-21T09:30:00Z"},
    )  # fmt: skip
    found = needs_of(sight_of(scene_of(row["scene"]).facts(), noted, digest="0a1b2c"))
    if row.get("none"):
        assert found.listed == ()
        return
    (need,) = found.listed
    assert found.total == 1
    told = msgspec.to_builtins(need)
    for key, wanted in row["need"].items():
        if isinstance(wanted, str) and wanted.startswith("~"):
            assert wanted[1:] in told[key], key
        else:
            assert told[key] == wanted, key


def test_what_is_equal_in_many_clusters_is_one_need_that_names_the_first() -> None:
    clusters = tuple(f"c{number:02}" for number in range(40))
    scene = Scene(*clusters)
    scene.apply()
    scene.health = {(name, APP): Degraded("image nginx:tpyo cannot be pulled") for name in clusters}
    (need,) = needs_of(sight_of(scene.facts())).listed
    assert (need.what, need.count, need.cluster) == (AlertKind.DEGRADED, 40, None)
    assert need.title == "ConfigMap demo/app in 40 clusters (c00, c01, c02, …) are degraded"
    assert need.resource is not None
    assert need.resource.name == "app"


def test_pods_without_a_node_are_a_need_and_pods_that_start_are_none() -> None:
    scene = Scene("m1", "m2")
    scene.apply()
    scene.health = {
        ("m1", APP): Progressing("no node takes it (3 Insufficient cpu)", reason="Unschedulable"),
        ("m2", APP): Progressing("1 of 2 replicas are available"),
    }
    (need,) = needs_of(sight_of(scene.facts())).listed
    assert (need.what, need.weight, need.cluster) == (AlertKind.STUCK, Weight.WARNING, "m1")
    assert (need.title, need.why) == (
        "ConfigMap demo/app in m1: not all of its pods run",
        "no node takes it (3 Insufficient cpu)",
    )
    assert "give m1 nodes that fit" in (need.todo or "")


def test_a_journal_that_cannot_be_written_comes_first() -> None:
    scene = Scene("m1")
    scene.apply()
    scene.health = {("m1", APP): Degraded("image nginx:tpyo cannot be pulled")}
    found = needs_of(replace(sight_of(scene.facts()), journal_error="the disk is full"))
    assert (found.listed[0].title, found.total) == ("nothing is applied: the journal cannot be written", 2)


def test_more_than_can_be_read_is_counted() -> None:
    names = tuple(f"app-{number}" for number in range(NEEDS_MAX + 5))
    scene = Scene("m1", names=names)
    scene.apply()
    scene.health = {("m1", Identity("", "ConfigMap", "demo", name)): Degraded(f"{name} is broken") for name in names}
    found = needs_of(sight_of(scene.facts()))
    assert (len(found.listed), found.total) == (NEEDS_MAX, NEEDS_MAX + 5)


def test_orders_of_persons_are_told_with_who_why_and_how_they_end() -> None:
    scene = Scene("m1", "m2")
    scene.apply()
    noted = JournalRows(
        suspensions=(
            SuspensionRecord(scope="cluster m2", reason="maintenance", who="bob", until="2026-11-22T00:00:00Z"),
            SuspensionRecord(scope="ConfigMap demo/app", who="eve"),
        ),
        evictions=(EvictionRecord(identity=APP, cluster="m1", since=NOW, who="bob", reason="noisy"),),
        begun=begun(("suspended", "cluster m2")),
    )  # fmt: skip
    sight = sight_of(scene.facts(), noted)
    by_app, by_m2, evicted = needs_of(sight).listed
    assert (by_m2.who, by_m2.why, by_m2.cluster, by_m2.since) == ("bob", "maintenance", "m2", "2026-11-21T09:00:00Z")
    assert "until 2026-11-22T00:00:00Z" in by_m2.title
    assert by_m2.todo == "`reconciler resume cluster m2` ends it"
    assert by_app.todo == "`reconciler resume ConfigMap/app -n demo` ends it"
    assert (evicted.who, evicted.why, evicted.cluster, evicted.since) == ("bob", "noisy", "m1", NOW)
    assert evicted.todo is not None
    assert "evict ConfigMap/app -n demo --cluster m1 --undo" in evicted.todo
    assert [need.what for need in needs_of(sight, cluster="m2").listed] == [AlertKind.SUSPENDED]
    assert [need.what for need in needs_of(sight, identity=APP).listed] == [AlertKind.EVICTED]


def test_a_move_is_stuck_only_after_its_time() -> None:
    scene = scene_of({"now": "drifted", "held": "waits for m2 healthy"})
    facts = scene.facts()
    moved = {copy: tuple(replace(one, cause=Cause.PLACEMENT) for one in due) for copy, due in facts.changes.items()}
    facts = replace(facts, changes=moved)
    for since, found in (("2026-11-21T09:40:00Z", [AlertKind.STUCK]), ("2026-11-21T09:55:00Z", [])):
        noted = JournalRows(timers={f"move {SUBJECT}": since})
        assert [need.what for need in needs_of(sight_of(facts, noted)).listed] == found, since


def test_problems_are_told_with_their_place_and_remedy_and_hints_are_not() -> None:
    scene = Scene("m1")
    scene.apply()
    wrong = Problem(source=Source("web.yaml", 3), path="spec", code="weight-not-positive", message="the weight is 0")
    again = replace(wrong, source=Source("yet.yaml", 5))
    hint = replace(wrong, severity=Severity.HINT, message="by the way")
    (need,) = needs_of(sight_of(scene.facts(), problems=(wrong, again, hint))).listed
    assert (need.what, need.title, need.count, need.where) == (
        AlertKind.PROBLEM,
        "the weight is 0",
        2,
        "web.yaml:3 spec",
    )
    assert need.who == "alice"
    assert need.todo


def test_a_store_that_cannot_be_read_comes_first() -> None:
    scene = scene_of({"now": "in-sync", "away": "refused"})
    noted = JournalRows(begun=begun(("source-failed", "store")), error="database is locked")
    found = needs_of(sight_of(scene.facts(), noted, source_error="https://bob:hunter2secret@example.com/ is gone"))
    assert [need.what for need in found.listed] == [AlertKind.SOURCE, AlertKind.AWAY, AlertKind.PROBLEM]
    assert "hunter2secret" not in found.listed[0].why
    assert found.listed[0].since == "2026-11-21T09:00:00Z"


def test_a_cluster_that_cannot_be_read_is_one_need() -> None:
    """Its problem says the same, without since when and with less to do."""
    unread = Problem(source=NOWHERE, path="", code="cluster-not-read", message="refused", cluster="m1")
    scene = Scene("m1", "m2")
    scene.apply()
    scene.away = {"m1": "refused"}
    sight = sight_of(scene.facts())
    plan = replace(sight.picture.round.plan, problems=(unread,))
    sight = replace(sight, picture=replace(sight.picture, round=replace(sight.picture.round, plan=plan)))
    assert [need.what for need in needs_of(sight).listed] == [AlertKind.AWAY]
