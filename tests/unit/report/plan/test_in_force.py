"""Rollouts in `explain`: which revision of a resource is in force in each cluster, and why."""

from __future__ import annotations

from typing import Any

from reconciler.api.clusters import Observations
from reconciler.api.refs import Identity
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.planner import render_one
from reconciler.report.plan.plan_json import rollouts_part
from reconciler.report.status.explanation import explanation_document, explanation_text
from reconciler.scheduler import schedule_fleet
from tests.fakes.rollouts import AWAITED, NEW, OLD
from tests.fakes.worlds import NOW, deployment, fleet_of
from tests.unit.planner.test_staged import DEPLOYMENTS, rollout

APP = Identity("apps", "Deployment", "demo", "app")


def explained(*rollouts: dict[str, Any], known: bool = True) -> dict[str, Any]:
    fleet = fleet_of(deployment(), DEPLOYMENTS, *rollouts)
    schedule = schedule_fleet(fleet, Observations(), NOW, interpreters=BUILT_IN_KINDS)
    standing: Any = rollouts_part([AWAITED], str) if known else ()
    return explanation_document(schedule, render_one(schedule, APP), APP, (), standing)


def test_each_cluster_has_its_revision_and_the_reason() -> None:
    document = explained(rollout())
    assert [(one["cluster"], one["stage"], one["revision"], one["phase"]) for one in document["inForce"]] == [
        ("m1", "canary", NEW, "done"),
        ("m2", "rest", OLD, "behind"),
        ("m3", "rest", OLD, "behind"),
    ]
    text = explanation_text(document)
    assert "Revision in force\n  m1  default/canary  at bbbbbbbbbbbb (done): why m1 is done\n" in text


def test_without_a_journal_the_stage_is_known_alone() -> None:
    (first, *_) = explained(rollout(), known=False)["inForce"]
    assert (first["stage"], first["revision"], first["phase"]) == ("canary", None, None)
    assert "at a revision: where it stands is not known here" in explanation_text(explained(rollout(), known=False))


def test_what_no_rollout_speaks_for_is_explained_as_before() -> None:
    assert "inForce" not in explained()
    assert "inForce" not in explained(rollout(templates={"namespaces": ["other"]}))
