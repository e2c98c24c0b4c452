"""Timers: each thing that runs out, the next first, and nothing that has ended."""

from __future__ import annotations

from msgspec.structs import replace

from reconciler.api.binding import Constraint, Tick
from reconciler.api.clusters import ClusterObservation, Health, Observations, Workload
from reconciler.api.ledger import SuspensionRecord
from reconciler.api.plan import Cause
from reconciler.api.refs import GVK, Identity
from reconciler.report.views import JournalRows
from reconciler.report.views.rollout_views import timers_of
from reconciler.state import Fought, StateFacts
from tests.fakes.worlds import TestBed, deployment, fleet_of, policy
from tests.unit.report.views.sights import sight_of
from tests.unit.state.scenes import APP, Scene

SOON, LATER, PAST = "2026-11-21T10:01:00Z", "2026-11-21T10:05:00Z", "2026-11-21T09:00:00Z"


def constraint(until: str, tick: Tick, *, excludes: bool, reason: str = "it failed") -> Constraint:
    return Constraint(
        identity=APP, cluster="m1", replicas_max=1, reason=reason, until=until, excludes=excludes, tick=tick
    )


def drifted(held: str) -> StateFacts:
    scene = Scene("m1", "m2")
    scene.apply()
    scene.edit("m1", "app", "by hand")
    scene.held = {("m1", APP): held}
    return scene.facts()


def test_each_that_runs_out_is_told_and_the_next_comes_first() -> None:
    facts = drifted("waits for m2 healthy")
    facts = replace(
        facts,
        changes={
            copy: tuple(replace(one, cause=Cause.PLACEMENT) for one in due) for copy, due in facts.changes.items()
        },
        fights={("m2", APP): Fought(("kubectl",), SOON)},
    )
    noted = JournalRows(
        constraints=(
            constraint(LATER, Tick.FAILOVER, excludes=True),
            constraint("2026-11-21T10:06:00Z", Tick.GIVEN, excludes=False),
            constraint("2026-11-21T10:07:00Z", Tick.EVICTION, excludes=True),
            constraint(PAST, Tick.FAILOVER, excludes=True),
            constraint("", Tick.DESCHEDULING, excludes=False),
        ),
        suspensions=(SuspensionRecord(scope="cluster m2", who="bob", until="2026-11-21T10:08:00Z"),
                     SuspensionRecord(scope="fleet", who="eve")),
        timers={f"move {APP} @ m1": "2026-11-21T09:59:00Z"},
    )  # fmt: skip
    sight = sight_of(facts, noted)
    found = timers_of(sight)
    assert [(timer.what, timer.ends) for timer in found] == [
        ("fight", SOON),
        ("exclusion", LATER),
        ("cap", "2026-11-21T10:06:00Z"),
        ("eviction", "2026-11-21T10:07:00Z"),
        ("suspension", "2026-11-21T10:08:00Z"),
        ("move", "2026-11-21T10:09:00Z"),
    ]
    assert found[4].words == "the suspension of cluster m2 by bob ends"
    assert [timer.what for timer in timers_of(sight, cluster="m2")] == ["fight", "suspension"]
    assert "suspension" not in [timer.what for timer in timers_of(sight, identity=APP)]
    namesake = APP._replace(group="apps.example.com")
    assert timers_of(sight, identity=namesake) == ()


def test_a_broken_application_leaves_when_it_was_tolerated_for_long_enough() -> None:
    bed = TestBed("m1", "m2")
    chosen = policy(
        "Deployment", "m1", "m2", failover={"application": {"decisionConditions": {"tolerationSeconds": 120}}}
    )
    schedule = bed.run(fleet_of(deployment(), chosen, clusters=("m1", "m2"))).schedule
    identity = Identity("apps", "Deployment", "demo", "app")
    broken = Workload(gvk=GVK("apps", "v1", "Deployment"), identity=identity, health=Health.UNHEALTHY,
                      unhealthy_since="2026-11-21T09:59:00Z")  # fmt: skip
    seen = {"m1": ClusterObservation(name="m1", workloads={identity: broken})}
    facts = StateFacts(schedule=schedule, manifests={}, members={})
    (timer,) = timers_of(sight_of(facts, observations=Observations(clusters=seen)))
    assert (timer.what, timer.ends, timer.cluster) == ("failover", SOON, "m1")
    assert timer.words == "Deployment demo/app leaves m1 unless it recovers"
    excluded = (replace(constraint(LATER, Tick.FAILOVER, excludes=True), identity=identity),)
    found = timers_of(sight_of(facts, observations=Observations(clusters=seen, constraints=excluded)))
    assert [timer.what for timer in found] == ["exclusion"]
