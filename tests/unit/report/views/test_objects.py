"""One object: why it is where it is, what differs, what overrides made of it, and nothing that must not be seen."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from reconciler.api.ledger import Event
from reconciler.api.plan import FieldChange, FieldOwner
from reconciler.api.refs import Identity
from reconciler.report.views import (
    JournalRows,
    MatrixQuery,
    ProcessState,
    SourcePart,
    ViewModel,
    cluster_view,
    fleet_view,
    matrix_view,
    object_view,
    problems_view,
)
from reconciler.report.views.matrix import EVERY_KIND
from reconciler.state import Degraded, Failed, StateFacts
from tests.fakes.worlds import NOW, TestBed, config_map, deployment, fleet_of, policy
from tests.unit.report.views.sights import sight_of
from tests.unit.state.scenes import APP, Scene

PASSWORD = "hunter2secret"
HOSTILE = f"<script>alert(1)</script>\u202e https://bob:{PASSWORD}@example.com/"
SIGNS = ProcessState(fleet="test", is_ready=True, is_progressing=True, phase="idle",
                     source=SourcePart(description="store"))  # fmt: skip


def drifted() -> StateFacts:
    scene = Scene("m1", "m2")
    scene.apply()
    scene.edit("m1", "app", "by hand")
    return scene.facts()


def test_a_difference_tells_both_values_and_who_set_the_live_one() -> None:
    facts = drifted()
    owner = FieldOwner(manager="kubectl", operation="Update", time="2026-11-21T09:59:00Z")
    changes = {
        copy: tuple(replace(one, fields=tuple(replace(each, owner=owner) for each in one.fields)) for one in due)
        for copy, due in facts.changes.items()
    }
    (found,) = object_view(sight_of(replace(facts, changes=changes)), APP).differences
    assert (found.cluster, found.path, found.live, found.wanted) == ("m1", "data.value", '"by hand"', '"1"')
    assert (found.manager, found.time) == ("kubectl", "2026-11-21T09:59:00Z")


def test_why_it_is_there_is_what_explain_says() -> None:
    view = object_view(sight_of(drifted()), APP)
    assert view.explanation["policy"] == "PropagationPolicy demo/app"
    words = [reason.words for reason in view.reasons]
    assert words[0].startswith("PropagationPolicy demo/app claims it: ")
    assert view.reasons[0].where == view.explanation["policySource"]
    assert {"m1", "m2"} == {word.removeprefix("in ").partition(":")[0] for word in words if word.startswith("in ")}
    assert view.where.startswith("all.yaml:")
    assert [copy.cluster for copy in view.copies] == ["m1", "m2"]


def test_what_it_brings_and_who_brings_it_are_named() -> None:
    bed = TestBed("m1")
    made = deployment()
    made["spec"]["template"]["spec"]["containers"][0]["envFrom"] = [{"configMapRef": {"name": "settings"}}]
    chosen = policy("Deployment", "m1", propagateDeps=True)
    schedule = bed.run(fleet_of(made, config_map("settings"), chosen, clusters=("m1",))).schedule
    sight = sight_of(StateFacts(schedule=schedule, manifests={}, members={}))
    app, settings = Identity("apps", "Deployment", "demo", "app"), Identity("", "ConfigMap", "demo", "settings")
    assert object_view(sight, app).brought == ("ConfigMap demo/settings",)
    assert object_view(sight, settings).owners == ("Deployment demo/app",)


def test_overrides_tell_what_they_made_of_it_and_where() -> None:
    overriders = {"imageOverrider": [{"component": "Tag", "operator": "replace", "value": "2"}]}
    rule = {"targetCluster": {"clusterNames": ["m1"]}, "overriders": overriders}
    override = {
        "apiVersion": "policy.one.alibabacloud.com/v1alpha1", "kind": "OverridePolicy",
        "metadata": {"name": "app", "namespace": "demo"},
        "spec": {"resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}], "overrideRules": [rule]},
    }  # fmt: skip
    bed = TestBed("m1", "m2")
    documents = (deployment(), override, policy("Deployment", "m1", "m2"))
    schedule = bed.run(fleet_of(*documents, clusters=("m1", "m2"))).schedule
    sight = sight_of(StateFacts(schedule=schedule, manifests={}, members={}))
    (found,) = object_view(sight, Identity("apps", "Deployment", "demo", "app")).overrides
    assert (found.clusters, found.value, found.policy) == (("m1",), "nginx:2", "OverridePolicy demo/app")
    assert found.path.endswith("image")
    assert found.where.startswith("all.yaml:")


def test_the_last_write_of_each_cluster_says_what_was_done_by_whom() -> None:
    def event(kind: str, cluster: str, time: str, **data: Any) -> Event:
        return Event(round=1, time=time, kind=kind, subject=f"{APP} @ {cluster}", data=data)

    writes = (
        event("drift", "m1", "2026-11-21T09:50:00Z", outcome="held", who="kubectl"),
        event("drift", "m1", "2026-11-21T09:40:00Z", outcome="healed", who="kubectl", cause="drift", revision="r1"),
        event("updated", "m2", "2026-11-21T09:30:00Z", revision="r1"),
        event("created", "m1", "2026-11-21T09:00:00Z", revision="r1"),
    )
    copies = object_view(sight_of(drifted()), APP, writes, writes).copies
    told = [(write.action, write.who, write.time) for copy in copies if (write := copy.last_write) is not None]
    assert told == [("healed", "kubectl", "2026-11-21T09:40:00Z"), ("updated", "alice", "2026-11-21T09:30:00Z")]


def everything(sight: ViewModel, identity: Identity) -> str:
    views = (
        fleet_view(SIGNS, sight, JournalRows()),
        matrix_view(sight, MatrixQuery(kind=EVERY_KIND)),
        object_view(sight, identity),
        cluster_view(sight, "m1"),
        problems_view(sight),
    )
    return "".join(msgspec.json.encode(view).decode() for view in views)


def test_no_view_tells_what_a_secret_holds_or_a_credential_in_words_of_strangers() -> None:
    secret = Identity("", "Secret", "demo", "app")
    bed = TestBed("m1")
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "app", "namespace": "demo"},
            "stringData": {"password": PASSWORD}}  # fmt: skip
    chosen = policy("Secret", "m1")
    planned = bed.run(fleet_of(body, chosen, clusters=("m1",)))
    scene = Scene("m1")
    scene.apply()
    scene.edit("m1", "app", "by hand")
    facts = scene.facts()
    (due,) = facts.changes["m1", APP]
    fields = (FieldChange(path="data.password", before="b2xk", after="aHVudGVyMnNlY3JldA=="),)
    changed = replace(due, identity=secret, manifest=body, fields=fields)
    facts = replace(
        facts,
        schedule=planned.schedule,
        changes={("m1", secret): (changed,)},
        failures={("m1", APP): Failed(f"admission webhook says {PASSWORD}"), ("m1", secret): Failed(HOSTILE)},
        health={"m1": {APP: Degraded(HOSTILE)}},
    )
    text = everything(sight_of(facts), secret)
    for hidden in (PASSWORD, "aHVudGVyMnNlY3JldA==", "b2xk"):
        assert hidden not in text, hidden
    assert "data.password" in text
    assert "«value #" in text
    assert NOW in text
