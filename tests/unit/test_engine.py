from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from reconciler.api.binding import Constraint, Tick
from reconciler.api.clusters import LiveObject, Observations, Read
from reconciler.api.plan import Action, Cause, Change
from reconciler.api.problem import NOWHERE
from reconciler.api.refs import GVK, Identity
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.ownership import terminating
from reconciler.planner import compare_revisions, plan_round
from reconciler.report import json_text
from reconciler.report.plan import plan_document
from tests.fakes.worlds import FLEET, NOW, TestBed, config_map, deployment, fleet_of, job, policy

APP = Identity("", "ConfigMap", "demo", "app")
WEB = Identity("apps", "Deployment", "demo", "app")
RUN = Identity("batch", "Job", "demo", "app")
SILENT = "waits for m2 healthy; it is unknown what m2 serves: no controller has reported its status"


def actions(changes: tuple[Change, ...], kind: str) -> list[tuple[str, str, str | None]]:
    return [(str(c.action), c.cluster, c.held) for c in changes if c.identity.kind == kind]


def test_first_round_creates_namespace_and_object_and_the_second_nothing() -> None:
    fleet, bed = fleet_of(config_map(a="1"), policy("ConfigMap", "m1", "m2")), TestBed()
    first = bed.run(fleet).plan
    assert [(str(c.action), c.identity.kind, c.cluster) for c in first.changes] == [
        ("create", "ConfigMap", "m1"), ("create", "ConfigMap", "m2"),
        ("create", "Namespace", "m1"), ("create", "Namespace", "m2"),
    ]  # fmt: skip
    assert [first.changes[index].identity.kind for index in first.waves[0]] == ["Namespace", "Namespace"]
    assert bed.plan(fleet).plan.changes == ()


def test_plan_is_the_same_byte_for_byte() -> None:
    fleet, bed = fleet_of(deployment(), config_map(), policy("Deployment"), policy("ConfigMap", name="b")), TestBed()
    assert json_text(plan_document(bed.plan(fleet).plan)) == json_text(plan_document(bed.plan(fleet).plan))


def test_hand_edit_is_drift_and_healed() -> None:
    fleet, bed = fleet_of(config_map(a="1"), policy("ConfigMap", "m1")), TestBed()
    bed.run(fleet)
    bed.edit("m1", APP, data={"a": "2", "theirs": "x"})
    (change,) = bed.run(fleet).plan.changes
    assert (change.action, change.cause, [field.path for field in change.fields]) == (
        Action.UPDATE,
        Cause.DRIFT,
        ["data.a"],
    )


def test_hand_edit_is_left_where_self_heal_is_off() -> None:
    settings = {**FLEET, "spec": {"drift": {"selfHeal": False}}}
    fleet, bed = fleet_of(settings, config_map(a="1"), policy("ConfigMap", "m1")), TestBed()
    bed.run(fleet)
    bed.edit("m1", APP, data={"a": "2"})
    plan = bed.plan(fleet).plan
    assert plan.waves == ()
    assert [change.held for change in plan.changes] == ["drift is left as it is (spec.drift.selfHeal: false)"]


def test_deleted_by_hand_is_created_again() -> None:
    fleet, bed = fleet_of(config_map(), policy("ConfigMap", "m1")), TestBed()
    bed.run(fleet)
    del bed.objects["m1"][APP]
    (change,) = bed.plan(fleet).plan.changes
    assert (change.action, change.cause) == (Action.CREATE, Cause.DRIFT)


def test_what_could_not_be_created_is_no_move_the_next_time() -> None:
    fleet, bed = fleet_of(config_map(), policy("ConfigMap", "m1", "m2")), TestBed()
    bed.run(fleet)
    del bed.objects["m2"][APP], bed.ledger["m2"][APP]
    (change,) = bed.plan(fleet).plan.changes
    assert (change.cluster, change.action, change.cause) == ("m2", Action.CREATE, Cause.DECLARED)
    wider = fleet_of(config_map(), policy("ConfigMap", "m1", "m2", "m3"))
    assert {change.cause for change in bed.plan(wider).plan.changes if change.identity == APP} == {Cause.PLACEMENT}


def test_move_creates_first_and_deletes_when_the_new_copy_is_healthy() -> None:
    bed = TestBed()
    bed.run(fleet_of(deployment(), policy("Deployment", "m1")))
    moved = fleet_of(deployment(), policy("Deployment", "m2"))
    assert actions(bed.run(moved).plan.changes, "Deployment") == [
        ("delete", "m1", "waits for m2 healthy"), ("create", "m2", None)
    ]  # fmt: skip
    assert actions(bed.plan(moved).plan.changes, "Deployment") == [("delete", "m1", SILENT)]
    bed.healthy("m2", WEB)
    assert actions(bed.run(moved).plan.changes, "Deployment") == [("delete", "m1", None)]
    assert bed.plan(moved).plan.changes == ()


def weighted(*weights: int, kind: str = "Deployment") -> dict[str, object]:
    entries = [
        {"targetCluster": {"clusterNames": [f"m{n}"]}, "weight": weight}
        for n, weight in enumerate(weights, 1)
        if weight
    ]
    scheduling = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted",
                  "weightPreference": {"staticWeightList": entries}}  # fmt: skip
    return policy(kind, placement={"replicaScheduling": scheduling})


def test_replicas_that_move_stay_until_the_others_are_up() -> None:
    bed = TestBed()
    bed.run(fleet_of(deployment(replicas=6), weighted(2, 1)))
    moved = fleet_of(deployment(replicas=6), weighted(1, 2))
    planned = bed.run(moved)
    counts = {
        cluster: objects[WEB].body["spec"]["replicas"] for cluster, objects in bed.objects.items() if WEB in objects
    }
    assert counts == {"m1": 4, "m2": 4}
    held = [change for change in planned.plan.changes if change.held]
    assert [(c.cluster, c.held, {f.path: f.after for f in c.fields}["spec.replicas"]) for c in held] == [
        ("m1", SILENT, 2)
    ]
    bed.healthy("m2", WEB)
    bed.run(moved)
    assert bed.objects["m1"][WEB].body["spec"]["replicas"] == 2
    assert bed.plan(moved).plan.changes == ()


def test_new_image_reaches_the_cluster_whose_replicas_wait() -> None:
    bed = TestBed()
    bed.run(fleet_of(deployment(replicas=6), weighted(2, 1)))
    bed.run(fleet_of(deployment(replicas=6, image="nginx:2"), weighted(1, 2)))
    container = bed.objects["m1"][WEB].body["spec"]["template"]["spec"]["containers"][0]
    assert (container["image"], bed.objects["m1"][WEB].body["spec"]["replicas"]) == ("nginx:2", 4)


def test_unreachable_cluster_is_frozen_and_the_plan_incomplete() -> None:
    fleet, bed = fleet_of(config_map(), policy("ConfigMap")), TestBed()
    bed.down = {"m2"}
    plan = bed.run(fleet).plan
    assert not plan.is_complete
    assert {change.cluster for change in plan.changes} == {"m1", "m3"}
    assert [problem.cluster for problem in plan.problems if problem.code == "cluster-not-read"] == ["m2"]


def test_nothing_is_deleted_before_a_complete_round_was_recorded() -> None:
    bed = TestBed()
    bed.run(fleet_of(config_map(), policy("ConfigMap", "m1", preserveResourcesOnDeletion=False)))
    bed.has_history = False
    gone = fleet_of(policy("ConfigMap", "m1", preserveResourcesOnDeletion=False))
    held = actions(bed.plan(gone).plan.changes, "ConfigMap")
    assert held == [("delete", "m1", "nothing is deleted before one complete round has been recorded")]


def test_object_with_another_uid_than_recorded_is_reported_and_left() -> None:
    bed = TestBed()
    bed.run(fleet_of(config_map(), policy("ConfigMap", "m1", preserveResourcesOnDeletion=False)))
    row = bed.ledger["m1"][APP]
    bed.ledger["m1"][APP] = replace(row, uid="another")
    plan = bed.plan(fleet_of(policy("ConfigMap", "m1", preserveResourcesOnDeletion=False))).plan
    assert actions(plan.changes, "ConfigMap") == []
    assert [problem.code for problem in plan.problems if problem.cluster == "m1"] == ["not-deleted"]


@pytest.mark.parametrize("has_template", [False, True])
def test_a_namespace_that_only_followed_says_why_it_is_released(has_template: bool) -> None:
    bed = TestBed()
    namespace = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "demo"}}] if has_template else []
    keep = policy("ConfigMap", "m1", preserveResourcesOnDeletion=False)
    bed.run(fleet_of(config_map(), keep, *namespace))
    released = [c for c in bed.plan(fleet_of(keep, *namespace)).plan.changes if c.action is Action.RELEASE]
    assert [(c.identity.kind, c.reason.text if c.reason else "") for c in released] == [
        ("Namespace", "nothing in it goes there any more")
    ]


def terminating_app(bed: TestBed, cluster: str) -> None:
    """Somebody deleted the app, and a finalizer keeps it."""
    metadata = bed.objects[cluster][APP].body["metadata"]
    ending = {"deletionTimestamp": NOW, "finalizers": ["example.com/backup"]}
    bed.edit(cluster, APP, metadata={**metadata, **ending})


@pytest.mark.parametrize("is_recorded", [True, False], ids=["deleted by others", "deleted by us"])
def test_an_unwanted_object_that_is_being_deleted_is_not_deleted_again(is_recorded: bool) -> None:
    bed = TestBed()
    keep = policy("ConfigMap", "m1", preserveResourcesOnDeletion=False)
    bed.run(fleet_of(config_map(), keep))
    terminating_app(bed, "m1")
    if not is_recorded:
        del bed.ledger["m1"][APP]
    plan = bed.plan(fleet_of(keep)).plan
    assert actions(plan.changes, "ConfigMap") == []
    (problem,) = (found for found in plan.problems if found.cluster == "m1")
    assert problem.code == "being-deleted"
    assert problem.message == f"{APP} is being deleted; it waits for its finalizers example.com/backup"


def test_a_namespace_that_does_not_end_is_told_with_what_its_controller_says() -> None:
    failure = {"type": "NamespaceDeletionDiscoveryFailure", "status": "True", "message": "dead.example/v1: stale"}
    done = {"type": "NamespaceContentRemaining", "status": "False", "message": "All content removed"}
    body = {"metadata": {"name": "demo", "deletionTimestamp": NOW},
            "spec": {"finalizers": ["kubernetes"]}, "status": {"conditions": [done, failure]}}  # fmt: skip
    identity = Identity("", "Namespace", "", "demo")
    live = LiveObject(gvk=GVK("", "v1", "Namespace"), identity=identity, uid="u", resource_version="1", body=body)
    told = terminating(live, "m1", NOWHERE, is_wanted=False).message
    assert told.endswith("is being deleted; it waits for its finalizers kubernetes: dead.example/v1: stale")


def test_a_wanted_object_that_is_being_deleted_is_told_and_made_anew_when_it_is_gone() -> None:
    bed = TestBed()
    fleet = fleet_of(config_map(), policy("ConfigMap", "m1"))
    bed.run(fleet)
    terminating_app(bed, "m1")
    plan = bed.plan(fleet).plan
    assert plan.changes == ()
    (problem,) = (found for found in plan.problems if found.code == "being-deleted")
    assert "is being deleted, and is made again when it is gone" in problem.message
    del bed.objects["m1"][APP]
    assert actions(bed.plan(fleet).plan.changes, "ConfigMap") == [("create", "m1", None)]


def test_nothing_leaves_a_cluster_for_a_copy_that_is_being_deleted() -> None:
    bed = TestBed()
    bed.run(fleet_of(config_map(), policy("ConfigMap", "m1", preserveResourcesOnDeletion=False)))
    moved = fleet_of(config_map(), policy("ConfigMap", "m2", preserveResourcesOnDeletion=False))
    bed.run(moved)
    terminating_app(bed, "m2")
    assert [found[:2] for found in actions(bed.plan(moved).plan.changes, "ConfigMap")] == [("delete", "m1")]
    assert actions(bed.plan(moved).plan.changes, "ConfigMap")[0][2] is not None


@pytest.mark.parametrize(
    "text", ["a: [", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app, namespace: demo}\ndata: {a: 1}\n"]
)
def test_broken_file_deletes_nothing(text: str) -> None:
    bed = TestBed()
    keep = policy("ConfigMap", "m1", preserveResourcesOnDeletion=False)
    bed.run(fleet_of(config_map(), keep))
    plan = bed.plan(fleet_of(keep, broken=text)).plan
    assert actions(plan.changes, "ConfigMap") == []
    assert not plan.is_complete


def test_started_job_is_not_run_a_second_time_elsewhere() -> None:
    bed = TestBed()
    bed.run(fleet_of(job(), policy("Job", "m1")))
    bed.edit("m1", RUN, status={"active": 1})
    plan = bed.plan(fleet_of(job(), policy("Job", "m2"))).plan
    assert actions(plan.changes, "Job") == [("delete", "m1", "the run has started and is not moved")]


@pytest.mark.parametrize(
    ("mode", "changes"),
    [
        ("Graciously", [("create", "m2", "waits until the run in m1 is gone"), ("delete", "m1", None)]),
        ("Never", [("delete", "m1", "purgeMode Never keeps the failed copy until `reconciler evict` takes it away")]),
    ],
)
def test_a_job_that_was_interrupted_runs_elsewhere_unless_never_keeps_it(
    mode: str, changes: list[tuple[str, str, str | None]]
) -> None:
    failover = {"application": {"purgeMode": mode}}
    rule = policy("Job", "m1", "m2", failover=failover, propagateDeps=True)
    rule["spec"]["placement"]["spreadConstraints"] = [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]
    bed, fleet = TestBed("m1", "m2"), fleet_of(job(), rule, clusters=("m1", "m2"))
    bed.run(fleet)
    condition = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}
    bed.edit("m1", RUN, status={"failed": 1, "conditions": [condition]})
    excluded = Constraint(identity=RUN, cluster="m1", replicas_max=0, excludes=True, reason="", tick=Tick.FAILOVER)
    bed.observations = replace(bed.observations, constraints=(excluded,))
    assert sorted(actions(bed.plan(fleet).plan.changes, "Job")) == changes


CLOSED_TARGETS: dict[str, tuple[dict[str, Any], dict[str, str], str]] = {
    "the policy suspends it": ({"suspension": {"dispatchingOnClusters": {"clusterNames": ["m2"]}}}, {}, ""),
    "a person suspended the cluster": ({}, {"cluster m2": "cluster m2 is suspended by anna"}, ""),
    "a person suspended the fleet": ({}, {"fleet": "fleet is suspended by anna"}, ""),
    "a person suspended the Job": ({}, {"Job demo/app": "Job demo/app is suspended by anna"}, ""),
    "a foreign object": ({}, {}, "foreign"),
    "the cluster does not answer": ({}, {}, "down"),
    "its kind is not served": ({}, {}, "not served"),
}


@pytest.mark.parametrize("case", CLOSED_TARGETS)
@pytest.mark.parametrize("tick", [Tick.FAILOVER, Tick.EVICTION, Tick.DESCHEDULING])
def test_a_run_stays_where_nothing_can_take_it_over(case: str, tick: Tick) -> None:
    spec, closed, obstacle = CLOSED_TARGETS[case]
    rule = policy("Job", "m1", "m2", failover={"application": {"purgeMode": "Immediately"}}, propagateDeps=True, **spec)
    rule["spec"]["placement"]["spreadConstraints"] = [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]
    bed, fleet = TestBed("m1", "m2"), fleet_of(job(), rule, clusters=("m1", "m2"))
    bed.run(fleet)
    bed.edit("m1", RUN, status={"active": 1})
    excluded = Constraint(identity=RUN, cluster="m1", replicas_max=0, excludes=True, reason="", tick=tick)
    bed.observations = replace(bed.observations, constraints=(excluded,), closed=closed)
    if obstacle == "foreign":
        bed.objects["m2"][RUN] = bed.live(GVK("batch", "v1", "Job"), job())
    if obstacle == "down":
        bed.down.add("m2")
    world = bed.world(fleet)
    if obstacle == "not served":
        member = world.members["m2"]
        assert isinstance(member, Read)
        served = {gvk: namespaced for gvk, namespaced in member.served.items() if gvk.kind != "Job"}
        world = replace(world, members={**world.members, "m2": replace(member, served=served)})
    planned = plan_round(world)
    if not obstacle:
        assert actions(planned.plan.changes, "Job") == []
        assert "suspended by" in str(planned.schedule.bindings[RUN].cluster_reasons["m2"])
        return
    [(action, cluster, held)] = actions(planned.plan.changes, "Job")
    assert (action, cluster) == ("delete", "m1")
    assert held is not None
    assert held.startswith("m2 cannot take the run over: ")


@pytest.mark.parametrize("is_partial", [False, True], ids=["everything", "this Job alone"])
def test_live_parts_of_a_divided_job_keep_their_completions(is_partial: bool) -> None:
    """Source: design#jobs: split at creation and fixed; an API server refuses another number."""
    divided = job()
    divided["spec"] |= {"parallelism": 4, "completions": 9}
    identity = Identity("batch", "Job", "demo", "app")

    def parts(weights: tuple[int, int]) -> dict[str, int]:
        fleet = fleet_of(divided, weighted(*weights, kind="Job"))
        world = replace(bed.world(fleet), only=frozenset({identity}) if is_partial else None)
        manifests = plan_round(world).manifests
        return {name: manifests[name][identity].body["spec"]["completions"] for name in ("m1", "m2")}

    bed = TestBed("m1", "m2")
    assert parts((3, 1)) == {"m1": 7, "m2": 2}
    bed.run(fleet_of(divided, weighted(1, 1, kind="Job")))
    assert parts((3, 1)) == {"m1": 5, "m2": 4}


@pytest.mark.parametrize(
    "status", [{}, {"conditions": [{"type": "Complete", "status": "True"}]}], ids=["runs", "ended"]
)
def test_a_part_that_was_sent_with_parallelism_alone_stays_so(status: dict[str, Any]) -> None:
    """A single run was sent so by earlier versions; an API server refuses to give it completions."""
    bed, fleet = TestBed("m1"), fleet_of(job(), policy("Job", "m1"), clusters=("m1",))
    queue = job()
    queue["spec"]["parallelism"] = 1
    bed.run(fleet_of(queue, policy("Job", "m1"), clusters=("m1",)))
    bed.edit("m1", RUN, status=status)
    assert actions(bed.plan(fleet).plan.changes, "Job") == []
    (manifest,) = (found for found in bed.plan(fleet).manifests["m1"].values() if found.identity == RUN)
    assert "completions" not in manifest.body["spec"]


def test_a_single_run_is_sent_as_it_was_written() -> None:
    bed, fleet = TestBed("m1"), fleet_of(job(), policy("Job", "m1"), clusters=("m1",))
    bed.run(fleet)
    assert bed.objects["m1"][RUN].body["spec"].keys() == {"template"}


def test_suspended_policy_holds_its_changes() -> None:
    fleet = fleet_of(
        config_map(), policy("ConfigMap", "m1", "m2", suspension={"dispatchingOnClusters": {"clusterNames": ["m1"]}})
    )
    held = {cluster: hold for _, cluster, hold in actions(TestBed().plan(fleet).plan.changes, "ConfigMap")}
    assert held == {"m1": "dispatching is suspended by PropagationPolicy demo/app", "m2": None}


def test_policy_waits_for_the_override_that_it_names() -> None:
    fleet = fleet_of(config_map(), policy("ConfigMap", "m1", dependentOverrides=["missing"]))
    plan = TestBed().plan(fleet).plan
    assert actions(plan.changes, "ConfigMap") == [("create", "m1", "waits for OverridePolicy demo/missing")]
    assert "waits-for-override" in [problem.code for problem in plan.problems]


def test_mass_deletion_is_held_until_its_digest_is_confirmed() -> None:
    names = [f"c{n}" for n in range(12)]
    rule = policy("ConfigMap", "m1", preserveResourcesOnDeletion=False)
    bed = TestBed()
    bed.run(fleet_of(*(config_map(name) for name in names), rule))
    plan = bed.plan(fleet_of(rule)).plan
    assert plan.waves == () or all(plan.changes[i].identity.kind == "Namespace" for wave in plan.waves for i in wave)
    confirmed = {**FLEET, "spec": {"guards": {"confirm": plan.held_digest}}}
    bed.run(fleet_of(confirmed, rule))
    assert [identity for identity in bed.objects["m1"] if identity.kind == "ConfigMap"] == []


def test_partial_round_settles_only_what_it_is_asked_for() -> None:
    fleet, bed = fleet_of(config_map("a"), config_map("b"), policy("ConfigMap", "m1")), TestBed()
    world = bed.world(fleet)
    only = frozenset({Identity("", "ConfigMap", "demo", "a")})
    plan = plan_round(replace(world, only=only)).plan
    assert [change.identity.name for change in plan.changes] == ["a"]


def test_offline_comparison_says_what_the_members_would_see() -> None:
    base = fleet_of(
        config_map("a", x="1"), config_map("b"), policy("ConfigMap", "m1", preserveResourcesOnDeletion=False)
    )
    head = fleet_of(
        config_map("a", x="2"), config_map("c"), policy("ConfigMap", "m1", preserveResourcesOnDeletion=False)
    )
    plan = compare_revisions(base, head, Observations(), NOW, interpreters=BUILT_IN_KINDS)
    assert [(str(c.action), c.identity.name) for c in plan.changes] == [
        ("update", "a"),
        ("delete", "b"),
        ("create", "c"),
    ]


edits = st.lists(
    st.sampled_from(["replicas", "image", "clusters", "map", "drop-map", "drop-policy", "keep"]), min_size=1, max_size=5
)


@given(edits)
def test_any_sequence_of_edits_comes_to_rest_where_a_fresh_start_would(sequence: list[str]) -> None:
    bed, fleet = TestBed(), fleet_of()
    replicas, image, clusters, data, has_map, has_policy, keep = 2, 1, ["m1"], 1, True, True, False
    for edit in ["start", *sequence]:
        replicas += edit == "replicas"
        image += edit == "image"
        clusters = ["m2", "m3"] if edit == "clusters" else clusters
        data += edit == "map"
        has_map, has_policy, keep = (
            has_map and edit != "drop-map",
            has_policy and edit != "drop-policy",
            keep or edit == "keep",
        )
        documents = [
            deployment(replicas=replicas, image=f"nginx:{image}"),
            policy("Deployment", *clusters, name="web", preserveResourcesOnDeletion=keep),
        ]
        documents += [config_map(x=str(data))] if has_map else []
        documents += [policy("ConfigMap", *clusters, preserveResourcesOnDeletion=keep)] if has_policy else []
        fleet = fleet_of(*documents)
        for _ in range(4):
            bed.run(fleet)
            for cluster, objects in bed.objects.items():
                if WEB in objects:
                    bed.healthy(cluster, WEB)
    assert bed.plan(fleet).plan.changes == ()
    ours = {name: {i for i in rows if i.kind != "Namespace"} for name, rows in bed.ledger.items()}
    fresh = TestBed()
    fresh.run(fleet)
    assert ours == {name: {i for i in rows if i.kind != "Namespace"} for name, rows in fresh.ledger.items()}


def test_renamed_fleet_takes_its_fields_along() -> None:
    bed = TestBed()
    bed.run(fleet_of(config_map(a="1", b="2"), policy("ConfigMap", "m1")))
    renamed = {**FLEET, "metadata": {"name": "new"}, "spec": {"previousNames": ["test"]}}
    (change,) = (
        c for c in bed.plan(fleet_of(renamed, config_map(a="1"), policy("ConfigMap", "m1"))).plan.changes
        if c.identity == APP
    )  # fmt: skip
    assert change.predecessors == ("fleet-reconciler/test",)
    assert "data.b" in [field.path for field in change.fields]


def test_object_of_a_renamed_fleet_can_leave_in_the_same_commit() -> None:
    bed, rule = TestBed(), policy("ConfigMap", "m1", preserveResourcesOnDeletion=False)
    bed.run(fleet_of(config_map(), rule))
    renamed = {**FLEET, "metadata": {"name": "new"}, "spec": {"previousNames": ["test"]}}
    assert actions(bed.plan(fleet_of(renamed, rule)).plan.changes, "ConfigMap") == [("delete", "m1", None)]


def test_suspended_policy_holds_deletions_too() -> None:
    bed = TestBed()
    bed.run(fleet_of(config_map(), policy("ConfigMap", "m1", "m2")))
    left = fleet_of(config_map(), policy("ConfigMap", "m2", suspension={"dispatching": True}))
    assert actions(bed.plan(left).plan.changes, "ConfigMap") == [
        ("delete", "m1", "dispatching is suspended by PropagationPolicy demo/app")
    ]


@pytest.mark.parametrize(("written", "expected"), [("overwrite", "adopt"), ("abort", None), ("what", None)])
def test_conflict_annotation_of_the_template_outranks_the_policy(written: str, expected: str | None) -> None:
    template = config_map(a="1")
    template["metadata"]["annotations"] = {"work.karmada.io/conflict-resolution": written}
    bed = TestBed()
    foreign = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "app", "namespace": "demo"}, "data": {}}
    bed.objects["m1"][APP] = bed.live(GVK("", "v1", "ConfigMap"), foreign)
    plan = bed.plan(fleet_of(template, policy("ConfigMap", "m1"))).plan
    assert [str(c.action) for c in plan.changes if c.identity == APP] == ([expected] if expected else [])
