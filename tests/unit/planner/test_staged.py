"""A comparison of two revisions in stages: which change waits for which stage, and how a review shows it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.api.clusters import Observations
from reconciler.api.fleet import Fleet
from reconciler.api.plan import Plan
from reconciler.api.rollout_progress import (
    ClusterProgress,
    Phase,
    RolloutProgress,
    StageKind,
    StageProgress,
    StageState,
)
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.planner import compare_revisions, with_progress
from reconciler.report.plan import plan_document, plan_text, stage_lines
from reconciler.report.plan.markdown import plan_markdown
from reconciler.server.pages.plan_page import plans_html
from tests.fakes.worlds import FLEET, NOW, config_map, deployment, fleet_of, policy

CANARY = {
    "name": "canary",
    "clusters": {"clusterNames": ["m1"]},
    "gate": {"minSuccessTime": "30m"},
    "after": {"approval": True},
}
REST = {"name": "rest", "clusters": {}, "maxConcurrency": "100%"}
DEPLOYMENTS = policy("Deployment")


def rollout(*stages: dict[str, Any], name: str = "default", **spec: Any) -> dict[str, Any]:
    spec = {"templates": {"namespaces": ["demo"]}, **spec, "stages": list(stages or (CANARY, REST))}
    return {
        "apiVersion": "fleet.reconciler/v1alpha1", "kind": "Rollout", "metadata": {"name": name}, "spec": spec,
    }  # fmt: skip


def compared(base: Fleet, head: Fleet) -> Plan:
    return compare_revisions(base, head, Observations(), NOW, interpreters=BUILT_IN_KINDS)


def stages_of(plan: Plan) -> dict[tuple[str, str, str], str]:
    """The stage of each change, by action, cluster and kind."""
    return {(str(one.action), one.cluster, one.identity.kind): one.stage for one in plan.changes}


def bump(*head: dict[str, Any], base: tuple[dict[str, Any], ...] = ()) -> Plan:
    """An image that changes in a store whose older revision has these documents (as the newer one, when none)."""
    return compared(
        fleet_of(deployment(), DEPLOYMENTS, *(base or head)),
        fleet_of(deployment(image="nginx:2"), DEPLOYMENTS, *head),
    )


def running(**revisions: str) -> RolloutProgress:
    clusters = {
        name: ClusterProgress(
            revision=revision, phase=Phase.RUNNING, why="", stage="canary" if name == "m1" else "rest"
        )
        for name, revision in revisions.items()
    }
    return RolloutProgress(
        rollout="default",
        release="1a2b3c4",
        clusters=clusters,
        stages=(
            StageProgress(name="canary", clusters=("m1",), state=StageState(StageKind.DONE)),
            StageProgress(name="rest", clusters=("m2", "m3"), state=StageState(StageKind.RUNNING, 1, 2)),
        ),
    )


def test_a_change_of_a_body_waits_for_the_stage_of_its_cluster() -> None:
    assert stages_of(bump(rollout())) == {
        ("update", "m1", "Deployment"): "default/canary",
        ("update", "m2", "Deployment"): "default/rest",
        ("update", "m3", "Deployment"): "default/rest",
    }


def test_a_store_without_a_rollout_is_told_as_before() -> None:
    base, head = fleet_of(deployment(), DEPLOYMENTS), fleet_of(deployment(image="nginx:2"), DEPLOYMENTS)
    plan = compared(base, head)
    assert plan.changes
    assert not {"stages", "rollouts"} & plan_document(plan).keys()
    assert all("stage" not in change for change in plan_document(plan)["changes"])


def test_the_review_says_what_happens_at_once_and_what_after_which_gate() -> None:
    assert stage_lines(bump(rollout())) == [
        "Stages   default: canary (m1) → rest (m2, m3, all at once)",
        "  this merge: canary at once, then waits 30m healthy and an approval of canary",
        "              then rest, then waits healthy",
    ]


def test_every_form_of_a_review_has_the_stages() -> None:
    plan = bump(rollout())
    line = "this merge: canary at once, then waits 30m healthy and an approval of canary"
    for text in (plan_text(plan), plan_markdown(plan), plans_html([plan])):
        assert line in text
    document = plan_document(plan)
    assert [(one["rollout"], one["stage"], one["clusters"]) for one in document["stages"]] == [
        ("default", "canary", ["m1"]),
        ("default", "rest", ["m2", "m3"]),
    ]
    assert document["stages"][0]["after"] is None
    assert document["stages"][1]["after"] == {
        "stage": "canary", "healthy": True, "conditions": [], "minSuccessSeconds": 1800, "waitSeconds": 0,
        "approval": True,
    }  # fmt: skip
    assert {one["stage"] for one in document["changes"]} == {"default/canary", "default/rest"}


def test_placement_is_made_at_once_and_said_so() -> None:
    moved = policy("Deployment", "m1")
    plan = compared(fleet_of(deployment(), DEPLOYMENTS, rollout()), fleet_of(deployment(), moved, rollout()))
    assert set(stages_of(plan).values()) == {""}
    assert "  this merge: nothing of what it stages changes" in stage_lines(plan)
    assert "  placement: 1 changed, at once (placement is not staged)" in stage_lines(plan)
    assert f"  at once: {len(plan.changes)} of {len(plan.changes)} changes go through no stage" in stage_lines(plan)


def test_placement_last_is_in_the_last_stage() -> None:
    moved, held = policy("Deployment", "m1"), rollout(placement="last")
    plan = compared(fleet_of(deployment(), DEPLOYMENTS, held), fleet_of(deployment(), moved, held))
    found = {stage for (_, _, kind), stage in stages_of(plan).items() if kind == "Deployment"}
    assert found == {"default/rest"}
    assert "  placement: 1 changed, when the last stage begins" in stage_lines(plan)


def test_what_no_rollout_selects_changes_at_once() -> None:
    plan = bump(rollout(templates={"namespaces": ["other"]}))
    assert set(stages_of(plan).values()) == {""}
    assert "  at once: 3 of 3 changes go through no stage" in stage_lines(plan)


def test_what_leaves_its_rollout_changes_at_once() -> None:
    staged = rollout(templates={"namespaces": ["demo"], "labelSelector": {"matchLabels": {"app": "staged"}}})
    with_label, without = deployment(), deployment(image="nginx:2")
    with_label["metadata"]["labels"] = {"app": "staged"}
    plan = compared(fleet_of(with_label, DEPLOYMENTS, staged), fleet_of(without, DEPLOYMENTS, staged))
    assert plan.changes
    assert {one.stage for one in plan.changes} == {""}
    assert f"  at once: {len(plan.changes)} of {len(plan.changes)} changes go through no stage" in stage_lines(plan)


OVER = rollout(
    {"name": "all", "clusters": {}}, name="over", templates={"policies": [f"demo/{DEPLOYMENTS['metadata']['name']}"]}
)


@pytest.mark.parametrize("confirm", ["", "a" * 16])
@pytest.mark.parametrize(
    ("rollouts", "stages"),
    [([rollout(templates={"namespaces": ["other"]})], {""}), ([], {""}), ([rollout(), OVER], {"over/all"})],
)
def test_what_a_loosened_rollout_selects_no_more_stays_in_its_stages_unless_confirmed(
    rollouts: list[dict[str, Any]], stages: set[str], confirm: str
) -> None:
    settings = {"confirm": confirm} if confirm else {}
    stages = stages if confirm else {"default/canary", "default/rest"}
    review = {"apiVersion": "fleet.reconciler/v1alpha1", "kind": "Fleet", "metadata": {"name": "f"}}
    head = fleet_of(deployment(image="nginx:2"), DEPLOYMENTS, *rollouts, {**review, "spec": {"review": settings}})
    base = fleet_of(deployment(), DEPLOYMENTS, rollout(), {**review, "spec": {}})
    plan = compared(replace(base, revision="one"), replace(head, revision="two"))
    assert {stage for (_, _, kind), stage in stages_of(plan).items() if kind == "Deployment"} == stages


@pytest.mark.parametrize("is_new", [False, True])
@pytest.mark.parametrize(("deletions", "later", "stages"), [("last", 3, [0, 0]), ("withStage", 0, [1, 2])])
def test_deletions_come_after_the_last_stage_or_with_each(
    deletions: str, later: int, stages: list[int], is_new: bool
) -> None:
    maps = policy("ConfigMap", name="maps")
    held = rollout(deletions=deletions)
    base = fleet_of(deployment(), DEPLOYMENTS, config_map(), maps, *([] if is_new else [held]))
    plan = compared(base, fleet_of(deployment(), DEPLOYMENTS, maps, held))
    (found,) = plan.rollouts
    assert found.later_deletions == later
    assert [stage.changes for stage in found.stages] == stages
    assert ("  deletions: 3 after the last stage" in stage_lines(plan)) == bool(later)


def test_a_merge_supersedes_what_is_under_way() -> None:
    plan = bump(rollout())
    progress = running(m1="1a2b3c4", m2="1a2b3c4", m3="5f3c9d2")
    live = replace(plan, rollouts=(replace(plan.rollouts[0], progress=progress),))
    lines = stage_lines(with_progress(plan, [live]))
    assert "  now    canary 1a2b3c4 (done)   rest 1a2b3c4 in 1, 5f3c9d2 in 1 (in progress, 1 of 2)" in lines
    assert "  ! supersedes the rollout of 1a2b3c4, which has not reached 1 cluster" in lines
    queued = bump(rollout(onNewCommit="queue"))
    lines = stage_lines(with_progress(queued, [live]))
    assert "  waits until the rollout of 1a2b3c4 is done, which has not reached 1 cluster" in lines


def test_what_is_done_is_not_superseded() -> None:
    plan = bump(rollout())
    done = replace(running(m1="1a2b3c4", m2="1a2b3c4", m3="1a2b3c4"), is_done=True)
    live = replace(plan, rollouts=(replace(plan.rollouts[0], progress=done),))
    assert not [line for line in stage_lines(with_progress(plan, [live])) if "supersedes" in line]


def test_a_layout_that_is_not_clear_begins_nothing_and_is_an_error() -> None:
    plan = bump(rollout(CANARY))
    assert [problem.code for problem in plan.problems if problem.code.startswith("rollout-")] == [
        "rollout-cluster-in-no-stage",
        "rollout-cluster-in-no-stage",
    ]
    assert any(line.startswith("  ! nothing begins") for line in stage_lines(plan))
    assert stages_of(plan)["update", "m2", "Deployment"] == ""


def test_a_pinned_stage_gets_nothing_of_it() -> None:
    lines = stage_lines(bump(rollout(pin={"canary": "aaaaaaa"})))
    assert "  this merge: rest at once, then waits healthy" in lines
    assert "  ! canary is pinned to aaaaaaa, and gets nothing of it" in lines


def test_an_empty_stage_is_skipped_and_windows_are_named() -> None:
    window = {"cron": "0 8 * * 1-5", "duration": "8h", "timeZone": "Asia/Shanghai"}
    empty = {"name": "none", "clusters": {"labelSelector": {"matchLabels": {"stage": "none"}}}}
    lines = stage_lines(bump(rollout(empty, {**REST, "windows": [window]})))
    assert lines[0] == "Stages   default: none (no cluster, skipped) → rest (m1, m2, m3, all at once)"
    assert '  this merge: rest at once, only "0 8 * * 1-5" for 8h (Asia/Shanghai), then waits healthy' in lines


def test_a_rollout_that_is_new_says_so() -> None:
    other = config_map("other")
    assert stage_lines(bump(rollout(), base=(other,)))[0].startswith("Stages   default (new): canary")


@pytest.mark.parametrize(("deletions", "gone", "held"), [
    ("last", ("web", "app"), {("web", "m1"), ("web", "m2"), ("web", "m3")}),
    ("last", ("app", "more"), {(name, cluster) for name in ("app", "more") for cluster in ("m1", "m2", "m3")}),
    ("withStage", ("app", "more", "extra"), {(name, "m1") for name in ("app", "more", "extra")}),
    ("withStage", ("app",), set()),
])  # fmt: skip
def test_the_guard_counts_together_what_is_due_together(
    deletions: str, gone: tuple[str, ...], held: set[tuple[str, str]]
) -> None:
    """The Rollout selects tier 1. A digest lets pass what is due, and nothing that waits for a stage."""
    fleet = {**FLEET, "spec": {"guards": {"maxDeletes": 2}}}
    own = rollout(deletions=deletions, templates={"labelSelector": {"matchLabels": {"tier": "1"}}})
    maps = {name: config_map(name) for name in ("web", "app", "more", "extra")}
    for name, body in maps.items():
        body["metadata"]["labels"] = {"tier": str(int(name != "web"))}
    beside = (fleet, own, policy("ConfigMap", name="maps", preserveResourcesOnDeletion=False))
    stay = [body for name, body in maps.items() if name not in gone]
    plan = compared(fleet_of(*beside, *maps.values()), fleet_of(*beside, *stay))
    assert {(one.identity.name, one.cluster) for one in plan.changes if one.held} == held
    assert bool(plan.held_digest) == bool(held)


def test_what_two_rollouts_speak_for_is_left_as_it_is() -> None:
    both = [rollout(name=name) for name in ("one", "other")]
    base = fleet_of(deployment(), DEPLOYMENTS, policy("ConfigMap", name="maps"), *both)
    head = fleet_of(deployment(image="nginx:2"), DEPLOYMENTS, policy("ConfigMap", name="maps"), config_map(), *both)
    plan = compared(base, head)
    assert "rollout-template-tied" in {problem.code for problem in plan.problems}
    assert not plan.changes
