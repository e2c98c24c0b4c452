"""Plans for which the API servers are asked by dry runs: on request, and where the comparison vouches for nothing."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from reconciler.api.plan import Change
from reconciler.controller.once import plan_once
from reconciler.fleet import parse
from reconciler.store import read_directory
from tests.conftest import ThreeClusters
from tests.e2e.fleet_on_clusters import FleetOnClusters

pytestmark = pytest.mark.apiserver


@pytest.fixture
def fleet(tmp_path: Path, three_clusters: ThreeClusters) -> FleetOnClusters:
    made = FleetOnClusters(tmp_path, three_clusters)
    policy = made.policy("web", "Deployment", clusters=["m1"])
    made.write("web", made.deployment("web", replicas=0), policy)
    made.apply()
    made.write("web", made.deployment("web", replicas=0, terminationGracePeriodSeconds=7), policy)
    return made


def changes(fleet: FleetOnClusters, *, server_side: bool) -> tuple[Change, ...]:
    store = parse(read_directory(fleet.store))
    return asyncio.run(plan_once(store, fleet.access, server_side=server_side)).plan.changes


def dry_runs(fleet: FleetOnClusters, since: int) -> list[str]:
    events = fleet.clusters["m1"].writes(since, "fleet-reconciler/")
    return [event["verb"] for event in events if "dryRun=All" in event["requestURI"]]


def test_updates_are_judged_by_the_api_server_on_request(fleet: FleetOnClusters) -> None:
    since = fleet.clusters["m1"].mark()
    (plain,) = changes(fleet, server_side=False)
    assert (plain.engine, dry_runs(fleet, since)) == ("T", [])
    (judged,) = changes(fleet, server_side=True)
    assert (judged.engine, dry_runs(fleet, since)) == ("S", ["patch"])
    paths = [change.path for change in judged.fields]
    assert paths == ["spec.template.spec.terminationGracePeriodSeconds"] == [change.path for change in plain.fields]


def test_what_the_api_server_refuses_is_held_and_its_words_are_shown(fleet: FleetOnClusters) -> None:
    policy = fleet.policy("web", "Deployment", clusters=["m1"])
    fleet.write("web", fleet.deployment("web", replicas=0, activeDeadlineSeconds=5), policy)
    store = parse(read_directory(fleet.store))
    plan = asyncio.run(plan_once(store, fleet.access, server_side=True)).plan
    (judged,) = plan.changes
    assert judged.held == "the API server would refuse it"
    (problem,) = [problem for problem in plan.problems if problem.code == "refused-by-api-server"]
    assert "activeDeadlineSeconds" in problem.message
