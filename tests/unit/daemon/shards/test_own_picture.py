"""What a shard tells of its clusters: masked, and the worst first. Source: ADR 22; design#secrets."""

from __future__ import annotations

from msgspec import json
from msgspec.structs import replace

from reconciler.daemon.shards.own_picture import OwnPicture
from reconciler.daemon.vitals.board import Shown
from reconciler.engine import Round
from reconciler.model.plan import Action, Cause, Change, Plan
from reconciler.model.problem import NOWHERE, Problem, Source
from reconciler.model.refs import GVK, Identity
from reconciler.report.status.state_document import Picture
from reconciler.stages.shards import ShardPicture
from reconciler.stages.state import Degraded, Facts, StateTables
from tests.fakes.worlds import NOW
from tests.properties.test_whole import of_shard, sharded
from tests.unit.stages.state.scenes import APP, Scene

VALUE = "hunter2-and-more-of-it"
SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"token": VALUE}}


def pictured(facts: Facts, *problems: Problem, shard: str = "b") -> ShardPicture:
    own = of_shard(facts, shard)
    changes = tuple(change for due in own.changes.values() for change in due)
    plan = Plan(base="", head="r1", changes=changes, problems=problems, held_digest="d1")
    planned = Round(decision=own.decision, manifests=own.manifests, plan=plan)
    return OwnPicture(shard, "box").of(Shown(picture=Picture(round=planned, state=StateTables().update(own), time=NOW)))


def test_no_value_of_a_secret_is_told() -> None:
    scene = Scene("m1", "m2", "m3")
    scene.apply()
    scene.edit("m2", "app", "by hand")
    scene.health = {("m3", APP): Degraded(f"refused: {VALUE}")}
    facts = sharded(scene.facts())
    identity = Identity("", "Secret", "demo", "s")
    sent = Change(action=Action.UPDATE, cluster="m2", gvk=GVK("", "v1", "Secret"), identity=identity,
                  cause=Cause.DECLARED, manifest=SECRET)  # fmt: skip
    facts = replace(
        facts,
        changes={**facts.changes, ("m2", identity): (sent,)},
        failures={("m2", APP): f"denied the request: {VALUE} is wrong", ("m2", identity): VALUE},
    )
    problem = Problem(source=NOWHERE, code="odd", message=f"it says {VALUE}", cluster="m2")
    told = json.encode(pictured(facts, problem)).decode()
    assert "denied the request" in told
    assert "refused: " in told
    assert VALUE not in told


def test_only_what_deviates_is_told_and_the_worst_first() -> None:
    scene = Scene("m1", "m2", "m3", names=("app", "b", "c"))
    scene.apply()
    scene.edit("m2", "b", "by hand")
    scene.edit("m3", "c", "by hand")
    scene.held = {("m3", Identity("", "ConfigMap", "demo", "c")): "guard: too many"}
    scene.health = {("m2", APP): Degraded("it crashes")}
    of_a_file = Problem(source=Source("a.yaml", 3), code="odd", message="in the store, which everybody reads")
    of_a_cluster = Problem(source=Source("a.yaml", 3), code="odd", message="in a cluster", cluster="m2")
    found = pictured(sharded(scene.facts()), of_a_file, of_a_cluster)
    assert [(row.cluster, row.name, row.state, row.health) for row in found.copies] == [
        ("m3", "c", "held", "Healthy"), ("m2", "b", "pending", "Healthy"), ("m2", "app", "synced", "Degraded"),
    ]  # fmt: skip
    assert found.copies[0].detail == "guard"
    assert [(change.name, change.why, change.is_held) for change in found.changes] == [("c", "guard: too many", True)]
    assert [row.message for row in found.problems] == ["in a cluster"]
    assert {name: each.kept for name, each in found.clusters.items()} == {"m2": 2, "m3": 1}
    assert (found.process, found.revision, found.held_digest) == ("box", "r1", "d1")
