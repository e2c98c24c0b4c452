"""The views of a fleet with shards: what others tell is shown as what this process sees itself. Source: ADR 22."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from reconciler.daemon.vitals.board import Board, Shown
from reconciler.engine import Round
from reconciler.model.plan import Plan
from reconciler.model.problem import NOWHERE, Problem, Severity
from reconciler.model.refs import Identity
from reconciler.report.status.state_document import Picture, state_document
from reconciler.report.status.text import status_text
from reconciler.report.status.told_document import told_document, with_told
from reconciler.report.views.clusters import cluster_view
from reconciler.report.views.fleet import Signs, fleet_view
from reconciler.report.views.matrix import matrix_view
from reconciler.report.views.objects import object_view
from reconciler.report.views.problems import problems_view
from reconciler.report.views.questions import MatrixQuestion
from reconciler.report.views.sight import Noted, Sight
from reconciler.stages.shards import ToldProblem
from reconciler.stages.state import Degraded, Facts, Others, ShardTold, StateTables
from tests.fakes.worlds import NOW
from tests.properties.test_whole import of_shard, sharded, told
from tests.unit.stages.state.scenes import APP, Scene

SIGNS = Signs(reconciler="1", fleet="test", is_ready=True, is_progressing=True, phase="idle", source="store")
ALL = MatrixQuestion(kind="*")
OLD = "shard b has not told since 2026-11-25T10:00:00Z"


def facts(**health: Degraded) -> Facts:
    """Of `m1` (shard a) and `m2`, `m3` (shard b). `health`: of the ConfigMap, by cluster."""
    scene = Scene("m1", "m2", "m3")
    scene.apply()
    scene.health = {(cluster, APP): found for cluster, found in health.items()}
    return sharded(scene.facts())


def shown(found: Facts, of_b: ShardTold, shard: str = "a") -> Shown:
    """What the process of a shard shows while the other one tells this."""
    own = of_shard(found, shard)
    planned = Round(decision=own.decision, manifests=own.manifests, plan=Plan(base="", head="r1"))
    board = Board()
    board.show(Shown(picture=Picture(round=planned, state=StateTables().update(own), time=NOW), since=NOW))
    board.take_in(Others(shard=shard, process="box-1", told={"b": of_b}, at=NOW))
    whole = board.whole
    assert whole is not None
    assert board.whole is whole, "one moment is one value"
    return whole


def sight(found: Facts, of_b: ShardTold) -> Sight:
    whole = shown(found, of_b)
    return Sight(picture=whole.picture, since=whole.since, now=NOW)


def test_each_copy_of_other_shards_is_shown_as_they_tell_it() -> None:
    found = facts(m3=Degraded("it crashes"))
    seen = sight(found, told(found, "b"))
    cells = {cell.cluster: (cell.sync, cell.health, cell.why) for cell in matrix_view(seen, ALL).rows[-1].cells}
    assert cells == {
        0: ("Synced", "Healthy", ""),
        1: ("Synced", "Healthy", ""),
        2: ("Synced", "Degraded", "it crashes"),
    }
    troubles = matrix_view(seen, MatrixQuestion(kind="*", troubles=True))
    assert [row.resource.name for row in troubles.rows] == ["app"]
    fleet = fleet_view(SIGNS, seen, Noted())
    assert (fleet.clusters.total, fleet.clusters.in_sync, fleet.clusters.unknown) == (3, 3, 0)
    assert [(part.name, part.process, part.is_here, part.clusters) for part in fleet.shards] == [
        ("a", "box-1", True, 1),
        ("b", "of-b", False, 2),
    ]
    assert [(need.title, need.cluster) for need in fleet.needs] == [("ConfigMap demo/app in m3 is degraded", "m3")]
    there = cluster_view(seen, "m3")
    assert there is not None
    assert (there.shard, there.process, there.is_up, there.total) == ("b", "of-b", True, 2)
    assert [(each.resource.kind, each.copy.health) for each in there.objects] == [
        ("ConfigMap", "Degraded"),
        ("Namespace", "Healthy"),
    ]
    assert {copy.cluster: copy.health_why for copy in object_view(seen, APP).copies} == {
        "m1": "", "m2": "", "m3": "it crashes",
    }  # fmt: skip


def test_what_a_shard_has_not_told_for_long_is_unknown_and_one_need() -> None:
    found = facts(m3=Degraded("it crashes"))
    seen = sight(found, replace(told(found, "b"), why=OLD))
    view = matrix_view(seen, ALL)
    assert [(head.is_up, head.is_told, head.why) for head in view.clusters] == [
        (True, True, ""), (False, False, OLD), (False, False, OLD),
    ]  # fmt: skip
    assert {(cell.cluster, cell.sync, cell.health) for row in view.rows for cell in row.cells} == {
        (0, "Synced", "Healthy"), (1, "Unknown", "Unknown"), (2, "Unknown", "Unknown"),
    }  # fmt: skip
    assert len(matrix_view(seen, MatrixQuestion(kind="*", troubles=True)).rows) == 2
    fleet = fleet_view(SIGNS, seen, Noted())
    assert (fleet.clusters.total, fleet.clusters.in_sync, fleet.clusters.away, fleet.clusters.unknown) == (3, 1, 0, 2)
    assert (fleet.objects["synced"], fleet.objects["unknown"]) == (2, 4)
    assert [(need.title, need.why, need.count) for need in fleet.needs] == [
        ("it is not known how 2 clusters are (shard b)", OLD, 2)
    ]
    assert fleet.shards[1].why == OLD


def test_problems_of_other_shards_are_told_where_they_are_of_their_clusters() -> None:
    found = facts()
    of_b = told(found, "b")
    assert of_b.picture is not None
    rows = (
        ToldProblem("error", "cluster-not-read", "refused", "m2"),
        ToldProblem("error", "cluster-not-read", "refused", "m1"),
        ToldProblem("strange", "new-code", "of another version", "m3"),
    )
    view = problems_view(sight(found, replace(of_b, picture=replace(of_b.picture, problems=rows))))
    assert [(part.code, part.severity, part.message) for part in view.problems] == [
        ("cluster-not-read", "error", "m2: refused"),
        ("new-code", "error", "m3: of another version"),
    ], "nobody speaks for the clusters of others"


def test_status_is_put_together_of_what_this_process_recorded_and_what_others_told() -> None:
    found = facts(m1=Degraded("it crashes"), m3=Degraded("it crashes"))
    whole = shown(found, told(found, "b"))
    others = whole.picture.others
    assert others is not None
    own = of_shard(found, "a")
    problem = Problem(source=NOWHERE, code="odd", message="odd", severity=Severity.WARNING)
    planned = Round(decision=own.decision, manifests=own.manifests, plan=Plan(base="", head="r1", problems=(problem,)))
    document = state_document(Picture(round=planned, state=StateTables().update(own), time=NOW))
    asked = with_told(document, told_document(whole.picture, others, [problem]))
    assert [(row["name"], row["shard"], row["objects"]["synced"]) for row in asked["clusters"]] == [
        ("m1", "a", 2), ("m2", "b", 2), ("m3", "b", 2),
    ]  # fmt: skip
    assert (asked["objects"]["synced"], asked["health"]["Degraded"], asked["troublesTotal"]) == (6, 2, 2)
    assert [(row["cluster"], row["healthWhy"]) for row in asked["troubles"]] == [
        ("m1", "it crashes"), ("m3", "it crashes"),
    ]  # fmt: skip
    assert len(asked["problems"]) == 1, "what everybody tells is told once"
    assert "elsewhere" not in asked
    assert asked["complete"]
    # What this process knew of a cluster that another one has by now is of before.
    again = with_told(asked, told_document(whole.picture, others, []))
    assert [row["name"] for row in again["clusters"]] == ["m1", "m2", "m3"]
    assert again["troublesTotal"] >= len(again["troubles"]) == 2
    assert with_told(document, None) == document


def test_status_as_text_says_who_applies_and_what_is_not_known() -> None:
    found = facts()
    whole = shown(found, replace(told(found, "b"), why=OLD))
    others = whole.picture.others
    assert others is not None
    own = of_shard(found, "a")
    planned = Round(decision=own.decision, manifests=own.manifests, plan=Plan(base="", head="r1"))
    document = state_document(Picture(round=planned, state=StateTables().update(own), time=NOW))
    asked = with_told(document, told_document(whole.picture, others, []))
    beside: dict[str, Any] = {"fleet": "test", "writer": None, "suspensions": [], "constraints": []}
    text = status_text({**asked, **beside})
    assert "CLUSTER   SHARD   REACHABLE" in text
    assert [line.split()[:3] for line in text.splitlines() if line.startswith("m")] == [
        ["m1", "a", "yes"], ["m2", "b", "unknown"], ["m3", "b", "unknown"],
    ]  # fmt: skip
    assert f"  b: {OLD}" in text
    assert "  a: box-1 (this process)" in text
    assert not asked["complete"]
    spare = status_text({**asked, **beside, "ledBy": "box-1 (shard a), box-2 (shard b)"})
    assert "  standby   led by box-1 (shard a), box-2 (shard b); what follows is what the shards tell" in spare


def test_a_cluster_whose_label_names_no_shard_is_nobodys() -> None:
    found = facts()
    fleet = found.decision.fleet
    stray = replace(fleet.clusters["m3"], labels={"fleet.reconciler/shard": "c"})
    decision = replace(found.decision, fleet=replace(fleet, clusters={**fleet.clusters, "m3": stray}))
    found = replace(found, decision=decision)
    seen = sight(found, told(found, "b"))
    there = cluster_view(seen, "m3")
    assert there is not None
    assert (there.is_up, there.shard, there.is_told) == (False, None, False)
    assert "nobody applies there" in there.why
    assert seen.state("m3", Identity("", "ConfigMap", "demo", "app")) is not None


def test_what_is_placed_and_runs_elsewhere_still_is_not_taken_for_there() -> None:
    found = facts()
    manifests = {name: dict(there) for name, there in found.manifests.items()}
    del manifests["m2"][APP]
    found = replace(found, manifests=manifests)
    seen, one = sight(found, told(found, "b")), StateTables().update(found)
    assert one.seen("m2", APP) is one.of("m2", APP) is None
    assert (seen.state("m2", APP), seen.clusters["m2"].syncs) == (None, one.clusters["m2"].syncs)
    row = next(row for row in matrix_view(seen, ALL).rows if row.resource.kind == "ConfigMap")
    assert [cell.cluster for cell in row.cells] == [0, 2]
    there = cluster_view(seen, "m2")
    assert there is not None
    assert [each.resource.kind for each in there.objects] == ["Namespace"]


def test_of_another_revision_copies_are_pending_and_fare_as_they_are_told_to() -> None:
    found = facts(m3=Degraded("it crashes"))
    seen = sight(found, told(found, "b", revision="5d6c"))
    view = matrix_view(seen, ALL)
    row = next(row for row in view.rows if row.resource.kind == "ConfigMap")
    assert [(cell.state, cell.health) for cell in row.cells] == [
        ("synced", "Healthy"), ("pending", "Healthy"), ("pending", "Degraded"),
    ]  # fmt: skip
    assert row.cells[1].why == "shard b tells of revision 5d6c, and not of r1"
    assert fleet_view(SIGNS, seen, Noted()).clusters.in_sync == 1
