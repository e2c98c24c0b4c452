"""Rollouts in the views of the page and of the API."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from reconciler.api.rollout_progress import RolloutProgress
from reconciler.report.views import (
    AlertKind,
    JournalRows,
    MatrixQuery,
    ProcessState,
    SourcePart,
    ViewModel,
    Weight,
    cluster_view,
    fleet_view,
)
from reconciler.report.views.alerts import needs_of
from reconciler.server.pages import cluster_page, fleet_page
from tests.fakes.rollouts import AWAITED, DONE, ENTRY, NEW, OLD, PAUSED, PINNED
from tests.fakes.worlds import NOW
from tests.unit.report.status.test_state_document import picture, planned

SIGNS = ProcessState(fleet="shop", is_ready=True, is_progressing=True, phase="idle", source=SourcePart(description="x"))


def sight_with(*rollouts: RolloutProgress) -> ViewModel:
    return ViewModel(picture=replace(picture(planned()), rollouts=rollouts), now=NOW)


def needs(*rollouts: RolloutProgress, **given: Any) -> list[tuple[Weight, str]]:
    found = needs_of(sight_with(*rollouts), **given).listed
    return [(need.weight, need.title) for need in found if need.what is AlertKind.ROLLOUT]


def test_what_waits_for_a_person_is_a_need() -> None:
    assert needs(PAUSED) == [(Weight.ERROR, "the rollout default is paused in the stage canary")]
    assert needs(AWAITED) == [(Weight.WARNING, "the rollout default needs an approval of the stage canary")]
    assert needs(PINNED) == [(Weight.WARNING, "the stage rest of the rollout default is pinned to aaaaaaaaaaaa")]
    assert needs(DONE) == []


def test_a_need_is_told_of_the_clusters_of_its_stage() -> None:
    assert needs(PAUSED, cluster="m1") and not needs(PAUSED, cluster="m2")


def test_the_fleet_has_its_stages() -> None:
    (found,) = fleet_view(SIGNS, sight_with(AWAITED), JournalRows()).rollouts
    assert [(stage.name, stage.state, stage.there) for stage in found.stages] == [
        ("canary", "waits-for-approval", 1),
        ("rest", "waits-for-stage", 0),
    ]
    assert found.stages[0].approval == ENTRY
    assert fleet_view(SIGNS, sight_with(), JournalRows()).rollouts == ()


def test_a_cluster_says_which_revision_is_in_force_and_why() -> None:
    view = cluster_view(sight_with(AWAITED), "m2")
    assert view is not None
    (found,) = view.in_force
    assert (found.revision, found.stage, found.phase, found.why) == (OLD, "rest", "behind", "why m2 is behind")


def test_pages_show_stages_and_escape_what_clusters_say() -> None:
    hostile = "<script>alert(1)</script>"
    progress = replace(PAUSED, clusters={"m1": replace(PAUSED.clusters["m1"], why=hostile)})
    sight = sight_with(progress, replace(AWAITED, rollout="other"))
    fleet, cluster = fleet_view(SIGNS, sight, JournalRows()), cluster_view(sight, "m1")
    assert cluster is not None
    page, one = fleet_page(fleet, None, MatrixQuery(), NOW), cluster_page(fleet, cluster, NOW)
    assert "Rollout default" in page and "PAUSED: m1 failed" in page and f"<code>{ENTRY}</code>" in page
    assert NEW[:12] in one and "Revision in force" in one
    assert "<script>alert" not in page + one
    assert "&lt;script&gt;alert" in one


def test_pages_of_a_fleet_without_rollouts_have_no_place_for_them() -> None:
    sight = sight_with()
    fleet, cluster = fleet_view(SIGNS, sight, JournalRows()), cluster_view(sight, "m1")
    assert cluster is not None
    pages = fleet_page(fleet, None, MatrixQuery(), NOW) + cluster_page(fleet, cluster, NOW)
    assert "Rollout" not in pages and "Revision in force" not in pages
