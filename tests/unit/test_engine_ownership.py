"""The owner of a live object, in whole rounds. Source: design#marks; docs/concepts/ownership.md."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.api.clusters import Read
from reconciler.api.plan import Action
from reconciler.api.refs import GVK, Identity
from reconciler.planner import plan_round
from tests.fakes.worlds import TestBed, config_map, fleet_of, policy
from tests.yaml_text import load_yaml

APP = Identity("", "ConfigMap", "demo", "app")
CONFIG_MAP = GVK("", "v1", "ConfigMap")
OVERWRITE = policy("ConfigMap", "m1", conflictResolution="Overwrite", preserveResourcesOnDeletion=False)
ABORT = policy("ConfigMap", "m1", preserveResourcesOnDeletion=False)
CASES = load_yaml((Path(__file__).parents[1] / "cases/ownership/foreign_marks.yaml").read_text())["cases"]
HELD = [
    pytest.param(
        {
            field: case[name]
            for name, field in (("labels", "labels"), ("annotations", "annotations"), ("owners", "ownerReferences"))
            if name in case
        },
        case.get("controller") or case["tool"],
        id=case["name"],
    )
    for case in CASES
    if case["tool"] or case.get("controller")
]
CHARTED = {"app.kubernetes.io/managed-by": "Helm"}


def put(bed: TestBed, **metadata: Any) -> None:
    """Somebody else's object in the place of ours."""
    body = {**config_map(theirs="1"), "metadata": {"name": "app", "namespace": "demo", **metadata}}
    bed.objects["m1"][APP] = bed.live(CONFIG_MAP, body)


def of_another_fleet() -> dict[str, Any]:
    """The marks of an object that another fleet of this tool applied."""
    bed = TestBed()
    settings = {"apiVersion": "fleet.reconciler/v1alpha1", "kind": "Fleet", "metadata": {"name": "other"}}
    bed.run(fleet_of(settings, config_map(), ABORT))
    metadata = bed.objects["m1"][APP].body["metadata"]
    return {"labels": metadata["labels"], "annotations": metadata["annotations"]}


def template(take_over: str = "") -> dict[str, Any]:
    found = config_map(ours="1")
    if take_over:
        found["metadata"]["annotations"] = {"fleet.reconciler/take-over": take_over}
    return found


def outcome(bed: TestBed, take_over: str, rule: dict[str, Any]) -> tuple[list[Action], list[str], str]:
    """Return what becomes of the object: actions, codes, and all that is said of it."""
    plan = bed.plan(fleet_of(template(take_over), rule)).plan
    told = [problem for problem in plan.problems if problem.cluster == "m1" and str(APP) in problem.message]
    actions = [change.action for change in plan.changes if change.identity == APP]
    return actions, [problem.code for problem in told], " ".join(problem.message for problem in told)


@pytest.mark.parametrize(("metadata", "tool"), HELD)
def test_what_another_tool_holds_is_refused_with_its_name_unless_it_is_taken_over(
    metadata: dict[str, Any], tool: str
) -> None:
    bed = TestBed()
    put(bed, **metadata)
    actions, codes, told = outcome(bed, "", OVERWRITE)
    assert (actions, codes) == ([], ["object-of-another-tool"])
    assert tool in told
    assert outcome(bed, "Somebody", OVERWRITE)[0] == []
    assert outcome(bed, tool, ABORT)[:2] == ([], ["object-not-ours"])
    assert outcome(bed, tool, OVERWRITE)[:2] == ([Action.ADOPT], [])


def charted(take_over: str = "") -> dict[str, Any]:
    """A template with what a rendered chart states of itself."""
    found = template(take_over)
    found["metadata"]["labels"] = {**found["metadata"].get("labels", {}), **CHARTED}
    return found


def told_of(bed: TestBed, *documents: dict[str, Any]) -> tuple[list[Action], list[tuple[str, str]]]:
    plan = bed.plan(fleet_of(*documents)).plan
    told = [problem for problem in plan.problems if problem.cluster == "m1" and str(APP) in problem.message]
    actions = [change.action for change in plan.changes if change.identity == APP]
    return actions, [(problem.code, str(problem.severity)) for problem in told]


def test_what_manifests_state_of_themselves_is_no_mark_where_the_template_states_it_too() -> None:
    bed = TestBed()
    put(bed, labels=CHARTED)
    assert told_of(bed, charted(), OVERWRITE) == ([Action.ADOPT], [])
    assert told_of(bed, charted(), ABORT) == ([], [("object-not-ours", "error")])
    put(bed, labels=CHARTED, annotations={"meta.helm.sh/release-name": "app"})
    assert told_of(bed, charted(), OVERWRITE) == ([], [("object-of-another-tool", "error")])


def test_an_object_of_a_rendered_chart_is_let_go_and_taken_back_like_any_other() -> None:
    bed = TestBed()
    bed.run(fleet_of(charted(), ABORT))
    without_label(bed, CHARTED)
    assert told_of(bed, charted(), ABORT) == ([], [("object-let-go", "warning")])
    assert told_of(bed, charted(), OVERWRITE) == ([Action.ADOPT], [])


def test_an_object_that_a_mark_of_the_template_makes_look_foreign_says_what_to_take_out() -> None:
    bed = TestBed()
    put(bed, labels={"kapp.k14s.io/app": "1"})
    marked = template()
    marked["metadata"]["labels"] = {"kapp.k14s.io/app": "1"}
    plan = bed.plan(fleet_of(marked, OVERWRITE)).plan
    (told,) = [problem.message for problem in plan.problems if problem.code == "object-of-another-tool"]
    assert "take the label kapp.k14s.io/app out of the template, too" in told


def test_the_mark_of_another_tool_on_an_object_of_ours_is_told_and_keeps_nothing_from_being_written() -> None:
    bed = TestBed()
    bed.run(fleet_of(template(), OVERWRITE))
    labels = bed.objects["m1"][APP].body["metadata"]["labels"]
    mark(bed, labels={**labels, "kustomize.toolkit.fluxcd.io/name": "apps"})
    said = [("marked-by-another-tool", "warning")]
    assert told_of(bed, template(), OVERWRITE) == ([], said)
    changed = {**template(), "data": {"ours": "2"}}
    assert told_of(bed, changed, OVERWRITE) == ([Action.UPDATE], said)
    assert told_of(bed, template("Flux"), OVERWRITE)[1] == []
    assert told_of(bed, template("Helm"), OVERWRITE)[1] == said


def test_a_mark_that_our_template_writes_is_not_told_of_our_object() -> None:
    bed = TestBed()
    marked = template()
    marked["metadata"]["labels"] = {"kapp.k14s.io/app": "1"}
    for body in (marked, charted()):
        bed.run(fleet_of(body, OVERWRITE))
        assert told_of(bed, body, OVERWRITE) == ([], [])


def test_what_was_taken_over_stays_ours_with_the_marks_that_it_had() -> None:
    bed = TestBed()
    put(bed, labels={"kapp.k14s.io/app": "1"})
    assert told_of(bed, template("kapp"), OVERWRITE) == ([Action.ADOPT], [])
    bed.run(fleet_of(template("kapp"), OVERWRITE))
    labels = bed.objects["m1"][APP].body["metadata"]["labels"]
    mark(bed, labels={**labels, "kapp.k14s.io/app": "1"})
    assert told_of(bed, template("kapp"), OVERWRITE) == ([], [])
    assert told_of(bed, template(), OVERWRITE) == ([Action.UPDATE], [("marked-by-another-tool", "warning")])


def test_what_another_fleet_holds_is_refused_with_its_name_unless_it_is_taken_over() -> None:
    bed = TestBed()
    put(bed, **of_another_fleet())
    actions, codes, told = outcome(bed, "", OVERWRITE)
    assert (actions, codes) == ([], ["object-of-another-tool"])
    assert "belongs to other;" in told
    assert outcome(bed, "other", OVERWRITE)[:2] == ([Action.ADOPT], [])


def test_what_nobody_marked_is_left_under_abort_and_adopted_under_overwrite() -> None:
    bed = TestBed()
    put(bed)
    assert outcome(bed, "", ABORT)[:2] == ([], ["object-not-ours"])
    assert outcome(bed, "", OVERWRITE)[:2] == ([Action.ADOPT], [])


def test_the_remedy_names_the_annotation_that_outranks_the_policy() -> None:
    bed = TestBed()
    put(bed)
    mine = template()
    mine["metadata"]["annotations"] = {"work.karmada.io/conflict-resolution": "abort"}
    (problem,) = bed.plan(fleet_of(mine, OVERWRITE)).plan.problems
    assert problem.message.endswith(
        "set work.karmada.io/conflict-resolution: overwrite on the template, which outranks its policy, to adopt it"
    )


def mark(bed: TestBed, **metadata: Any) -> None:
    """Somebody writes metadata of the object."""
    bed.edit("m1", APP, metadata={**bed.objects["m1"][APP].body["metadata"], **metadata})


def without_label(bed: TestBed, left: dict[str, str] | None = None) -> None:
    mark(bed, labels=left or {})


def without_annotation(bed: TestBed) -> None:
    metadata = bed.objects["m1"][APP].body["metadata"]
    bed.edit("m1", APP, metadata={**metadata, "annotations": {}})


def with_an_annotation_that_cannot_be_read(bed: TestBed) -> None:
    metadata = bed.objects["m1"][APP].body["metadata"]
    bed.edit("m1", APP, metadata={**metadata, "annotations": {"fleet.reconciler/owner": "{"}})


def without_fields(bed: TestBed) -> None:
    metadata = bed.objects["m1"][APP].body["metadata"]
    others = [{**metadata["managedFields"][0], "manager": "kubectl"}]
    bed.edit("m1", APP, metadata={**metadata, "managedFields": others})


def with_another_uid(bed: TestBed) -> None:
    bed.objects["m1"][APP] = replace(bed.objects["m1"][APP], uid="another")


def with_an_owner(bed: TestBed) -> None:
    metadata = bed.objects["m1"][APP].body["metadata"]
    owners = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u"}]
    bed.edit("m1", APP, metadata={**metadata, "ownerReferences": owners})


def with_a_mark_of_another_tool(bed: TestBed) -> None:
    labels = bed.objects["m1"][APP].body["metadata"]["labels"]
    mark(bed, labels={**labels, "kustomize.toolkit.fluxcd.io/name": "apps"})


LACKING = [without_fields, with_another_uid, with_an_owner, with_a_mark_of_another_tool]


@pytest.mark.parametrize("change", LACKING)
def test_what_lacks_a_witness_is_reported_and_not_deleted(change: Any) -> None:
    bed = TestBed()
    bed.run(fleet_of(config_map(), ABORT))
    change(bed)
    plan = bed.plan(fleet_of(ABORT)).plan
    assert [found for found in plan.changes if found.identity == APP] == []
    assert [problem.code for problem in plan.problems if str(APP) in problem.message] == ["not-deleted"]


def with_a_mark_that_its_template_wrote(bed: TestBed) -> None:
    with_a_mark_of_another_tool(bed)
    (entry,) = bed.objects["m1"][APP].body["metadata"]["managedFields"]
    fields: dict[str, Any] = {"f:metadata": {"f:labels": {"f:kustomize.toolkit.fluxcd.io/name": {}}}}
    mark(bed, managedFields=[{**entry, "fieldsV1": fields}])


def with_a_mark_of_whom_it_was_taken_over_from(bed: TestBed) -> None:
    with_a_mark_of_another_tool(bed)
    annotations = bed.objects["m1"][APP].body["metadata"]["annotations"]
    mark(bed, annotations={**annotations, "fleet.reconciler/take-over": "Flux"})


def with_what_a_rendered_chart_states(bed: TestBed) -> None:
    mark(bed, labels={**bed.objects["m1"][APP].body["metadata"]["labels"], **CHARTED})


@pytest.mark.parametrize(
    "change",
    [
        with_a_mark_that_its_template_wrote,
        with_a_mark_of_whom_it_was_taken_over_from,
        with_what_a_rendered_chart_states,
    ],
)
def test_a_mark_that_nobody_else_stands_for_keeps_nothing(change: Any) -> None:
    bed = TestBed()
    bed.run(fleet_of(config_map(), ABORT))
    change(bed)
    assert told_of(bed, ABORT) == ([Action.DELETE], [])


@pytest.mark.parametrize("change", LACKING)
def test_a_copy_that_moved_and_lacks_a_witness_is_not_deleted(change: Any) -> None:
    moved = policy("ConfigMap", "m2", preserveResourcesOnDeletion=False)
    bed = TestBed()
    bed.run(fleet_of(config_map(), ABORT))
    bed.run(fleet_of(config_map(), moved))
    change(bed)
    plan = bed.plan(fleet_of(config_map(), moved)).plan
    assert [found for found in plan.changes if found.identity == APP] == []
    assert [problem.code for problem in plan.problems if str(APP) in problem.message] == ["not-deleted"]


@pytest.mark.parametrize("change", [without_label, without_annotation, with_an_annotation_that_cannot_be_read])
def test_what_has_no_mark_of_ours_is_not_deleted(change: Any) -> None:
    bed = TestBed()
    bed.run(fleet_of(config_map(), ABORT))
    change(bed)
    plan = bed.plan(fleet_of(ABORT)).plan
    assert [found for found in plan.changes if found.identity == APP] == []


def test_nothing_is_deleted_of_a_kind_whose_list_was_not_complete() -> None:
    bed = TestBed()
    bed.run(fleet_of(config_map(), ABORT))
    world = bed.world(fleet_of(ABORT))
    members = {
        name: replace(found, kinds=found.kinds - {CONFIG_MAP.group_kind}) if isinstance(found, Read) else found
        for name, found in world.members.items()
    }
    plan = plan_round(replace(world, members=members)).plan
    assert [found for found in plan.changes if found.identity == APP] == []
    assert [problem.code for problem in plan.problems if str(APP) in problem.message] == ["not-deleted"]


def without_marks(bed: TestBed) -> None:
    without_annotation(bed)
    without_label(bed)


TAKEN_OFF = [without_label, without_annotation, without_marks, with_an_annotation_that_cannot_be_read]


@pytest.mark.parametrize("take_off", TAKEN_OFF)
def test_what_lost_a_mark_is_left_alone_and_reported(take_off: Any) -> None:
    bed = TestBed()
    bed.run(fleet_of(config_map(), ABORT))
    take_off(bed)
    assert outcome(bed, "", ABORT)[:2] == ([], ["object-let-go"])
    plan = bed.plan(fleet_of(ABORT)).plan
    assert [found for found in plan.changes if found.identity == APP] == [], "nor is it deleted without its template"


@pytest.mark.parametrize("take_off", TAKEN_OFF)
def test_what_lost_a_mark_is_adopted_under_overwrite(take_off: Any) -> None:
    bed = TestBed()
    bed.run(fleet_of(config_map(), ABORT))
    take_off(bed)
    assert outcome(bed, "", OVERWRITE)[:2] == ([Action.ADOPT], [])


def test_what_lost_its_label_before_the_journal_was_rebuilt_is_left_alone_too() -> None:
    bed = TestBed()
    bed.run(fleet_of(config_map(), ABORT))
    without_label(bed)
    bed.ledger["m1"].clear()
    assert outcome(bed, "", ABORT)[:2] == ([], ["object-let-go"])


def test_a_mark_that_is_put_back_makes_it_ours_again() -> None:
    bed = TestBed()
    bed.run(fleet_of(config_map(), ABORT))
    before = bed.objects["m1"][APP].body["metadata"]
    without_label(bed)
    assert outcome(bed, "", ABORT)[0] == []
    bed.edit("m1", APP, metadata=before)
    assert outcome(bed, "", ABORT)[:2] == ([Action.UPDATE], [])


def test_another_object_in_the_place_of_ours_was_never_ours() -> None:
    bed = TestBed()
    bed.run(fleet_of(config_map(), ABORT))
    put(bed)
    assert outcome(bed, "", ABORT)[:2] == ([], ["object-not-ours"])


def test_a_copied_label_is_no_mark_that_somebody_took_off() -> None:
    bed = TestBed()
    bed.run(fleet_of(config_map(), ABORT))
    labels = bed.objects["m1"][APP].body["metadata"]["labels"]
    put(bed, labels=labels)
    assert outcome(bed, "", ABORT)[:2] == ([], ["object-not-ours"])


NAMESPACE = Identity("", "Namespace", "", "demo")


@pytest.mark.parametrize(
    ("of_template", "live", "lacking"),
    [
        (None, {}, ""),
        ({}, {"labels": {"theirs": "1"}}, ""),
        ({"labels": {"mesh": "on"}}, {"labels": {"mesh": "on"}}, ""),
        ({"labels": {"mesh": "on"}, "annotations": {"a": "b"}}, {"labels": {"mesh": "off"}}, "a, mesh"),
    ],
    ids=["no template", "nothing is said of it", "it has what is said", "it lacks what is said"],
)
def test_a_namespace_that_is_used_as_it_is_is_told_of_only_where_it_lacks_something(
    of_template: dict[str, Any] | None, live: dict[str, Any], lacking: str
) -> None:
    def namespace(metadata: dict[str, Any]) -> dict[str, Any]:
        return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "demo", **metadata}}

    bed = TestBed()
    gvk = GVK("", "v1", "Namespace")
    bed.objects["m1"][NAMESPACE] = bed.live(gvk, namespace(live))
    templates = [] if of_template is None else [namespace(of_template)]
    for _ in range(2):
        plan = bed.run(fleet_of(config_map(), ABORT, *templates)).plan
        told = [problem.message for problem in plan.problems if problem.code == "namespace-not-ours"]
        assert len(told) == bool(lacking)
        assert all(f"its template says of {lacking};" in message for message in told)
