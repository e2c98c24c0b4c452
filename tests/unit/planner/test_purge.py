"""The old copy of a failed application is deleted or kept. Source: design#purge-modes; the modes of the page."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.api.binding import Constraint, Tick
from reconciler.api.clusters import ClusterObservation, Workload
from reconciler.api.plan import HeldBy, Hold
from reconciler.api.policies import ApplicationFailover, PurgeMode
from reconciler.api.refs import GVK, Identity
from reconciler.observations import ActivePlacement, Available, CopyAvailability, NotAvailable, Replicas
from reconciler.planner import effective_after_failure, failures_of
from reconciler.planner.plan_moves import KEPT_BY_POLICY
from reconciler.scheduler import have_nodes
from tests.tick_cases import NOW, moment

WEB = Identity("apps", "Deployment", "demo", "web")


def exclusion(cluster: str = "m1", age_s: float = 0, tick: Tick = Tick.FAILOVER) -> Constraint:
    return Constraint(identity=WEB, cluster=cluster, replicas_max=0, reason="", excludes=True, since=moment(age_s),
                      tick=tick)  # fmt: skip


def copy_of(*, is_available: bool = False, is_written: bool = False) -> CopyAvailability:
    return CopyAvailability(availability=Available() if is_available else NotAvailable(None), is_written=is_written)


def after(
    mode: PurgeMode,
    target: dict[str, Replicas],
    old: dict[str, Replicas],
    *,
    failed: tuple[str, ...] = ("m1",),
    age_s: float = 0,
    grace_s: int | None = 600,
    ready: str = "",
    with_nodes: str = "",
    written: str = "m2",
) -> ActivePlacement:
    """`ready`, `with_nodes`, `written`: names of clusters."""
    return effective_after_failure(
        target,
        old,
        {name: exclusion(name, age_s) for name in failed},
        ApplicationFailover(purge_mode=mode, grace_period_s=grace_s),
        {
            name: copy_of(is_available=name in ready.split(), is_written=name in written.split())
            for name in {*target, *old}
        },
        [name for name in target if name in with_nodes.split()],
        NOW,
    )


GRACIOUSLY, IMMEDIATELY, NEVER = PurgeMode.GRACIOUSLY, PurgeMode.IMMEDIATELY, PurgeMode.NEVER
MOVED: dict[str, Replicas] = {"m2": 2}
WAITS = ActivePlacement(targets={"m1": 2, "m2": 2}, holds={"m1": Hold(HeldBy.MOVE, "waits for m2 healthy")})
GONE = ActivePlacement(targets={"m2": 2})


@pytest.mark.parametrize(
    ("age_s", "ready", "with_nodes", "expected"),
    [
        (0, "", "", WAITS),
        (0, "", "m2", WAITS),
        (599, "", "m2", WAITS),
        (600, "", "m2", GONE),
        (600, "", "", WAITS),
        (90_000, "", "", WAITS),
        (0, "m2", "", GONE),
        (900, "m2", "", GONE),
    ],
)
def test_graciously_the_old_copy_waits_for_health_or_after_a_while_for_nodes(
    age_s: float, ready: str, with_nodes: str, expected: ActivePlacement
) -> None:
    assert after(GRACIOUSLY, MOVED, {"m1": 2}, age_s=age_s, ready=ready, with_nodes=with_nodes) == expected


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        ({"without_node": 0}, True),
        ({"assigned": 3, "without_node": 0}, True),
        ({"assigned": 3, "without_node": 1}, False),
        ({"assigned": 3, "without_node": 0, "unschedulable": 1}, False),
        ({"assigned": 3, "without_node": 0, "missing": 3}, False),
        ({"assigned": 2, "without_node": 0}, False),
        ({"assigned": 3}, False),
        ({"assigned": 3, "missing": 1}, False),
    ],
)
def test_only_pods_that_are_known_to_have_nodes_have_them(seen: dict[str, Any], expected: bool) -> None:
    workload = Workload(gvk=GVK("apps", "v1", "Deployment"), identity=WEB, **seen)
    observed = {"m2": ClusterObservation(name="m2", workloads={WEB: workload})}
    assert have_nodes(observed, WEB, "m2", 3) is expected
    assert not have_nodes(observed, WEB, "m3", 3)


def test_another_grace_period() -> None:
    assert after(GRACIOUSLY, MOVED, {"m1": 2}, age_s=29, grace_s=30, with_nodes="m2") == WAITS
    assert after(GRACIOUSLY, MOVED, {"m1": 2}, age_s=30, grace_s=30, with_nodes="m2") == GONE


def test_of_two_failures_the_grace_of_both_must_be_over() -> None:
    old: dict[str, Replicas] = {"m1": 1, "m3": 1}
    failed = {"m1": exclusion("m1", 600), "m3": exclusion("m3", 599)}
    terms = ApplicationFailover(purge_mode=GRACIOUSLY, grace_period_s=600)

    def state() -> ActivePlacement:
        return effective_after_failure(
            MOVED, old, failed, terms, dict.fromkeys({*MOVED, *old}, copy_of(is_written=True)), list(MOVED), NOW
        )

    assert state().targets == {"m1": 1, "m2": 2, "m3": 1}
    failed["m3"] = exclusion("m3", 600)
    assert state() == GONE


def test_graciously_the_end_of_the_grace_concerns_the_failed_copy_alone() -> None:
    state = after(GRACIOUSLY, MOVED, {"m1": 1, "m2": 2, "m3": 1}, age_s=600, with_nodes="m2")
    assert state == ActivePlacement(targets={"m2": 2, "m3": 1}, holds={"m3": Hold(HeldBy.MOVE, "waits for m2 healthy")})
    shrinks = after(GRACIOUSLY, {"m2": 3, "m3": 1}, {"m1": 1, "m2": 3, "m3": 2}, age_s=600, with_nodes="m2 m3",
                    written="m2 m3")  # fmt: skip
    assert shrinks == ActivePlacement(
        targets={"m2": 3, "m3": 2}, holds={"m3": Hold(HeldBy.MOVE, "waits for m2 healthy")}
    )


def test_immediately_the_old_copy_goes_once_another_is_written() -> None:
    assert after(IMMEDIATELY, MOVED, {"m1": 2, "m2": 2}) == GONE
    assert after(IMMEDIATELY, {"m2": 3}, {"m1": 2, "m2": 3}) == ActivePlacement(targets={"m2": 3})


@pytest.mark.parametrize(("old", "written"), [({}, ""), ({"m2": 1}, "m2"), ({"m2": 2}, "")])
def test_what_cannot_be_written_takes_nothing_over(old: dict[str, Replicas], written: str) -> None:
    waits = ActivePlacement(targets={"m1": 2, "m2": 2}, holds={"m1": Hold(HeldBy.MOVE, "waits for m2 to take over")})
    assert after(IMMEDIATELY, MOVED, {"m1": 2, **old}, written=written) == waits


def test_immediately_concerns_the_failed_copy_alone() -> None:
    state = after(IMMEDIATELY, MOVED, {"m1": 1, "m2": 2, "m3": 1})
    assert state == ActivePlacement(targets={"m2": 2, "m3": 1}, holds={"m3": Hold(HeldBy.MOVE, "waits for m2 healthy")})
    assert after(IMMEDIATELY, MOVED, {"m1": 1, "m2": 2, "m3": 1}, ready="m2") == GONE


@pytest.mark.parametrize("ready", ["", "m2"])
@pytest.mark.parametrize("age_s", [0, 90_000])
def test_never_the_failed_copy_stays(ready: str, age_s: float) -> None:
    state = after(NEVER, MOVED, {"m1": 2}, age_s=age_s, ready=ready, with_nodes=ready)
    assert state == ActivePlacement(targets={"m1": 2, "m2": 2}, holds={"m1": KEPT_BY_POLICY})


def test_never_concerns_the_failed_copy_alone() -> None:
    state = after(NEVER, MOVED, {"m1": 1, "m3": 1})
    assert state.targets == {"m1": 1, "m2": 2, "m3": 1}
    assert state.holds == {"m1": KEPT_BY_POLICY, "m3": Hold(HeldBy.MOVE, "waits for m2 healthy")}
    assert after(NEVER, MOVED, {"m1": 1, "m3": 1}, ready="m2").targets == {"m1": 1, "m2": 2}


def test_what_is_without_replicas_moves_alike() -> None:
    assert after(GRACIOUSLY, {"m2": None}, {"m1": None}).targets == {"m1": None, "m2": None}
    assert after(IMMEDIATELY, {"m2": None}, {"m1": None, "m2": None}).targets == {"m2": None}
    assert after(NEVER, {"m2": None}, {"m1": None}, ready="m2").targets == {"m1": None, "m2": None}


def test_only_exclusions_of_failover_are_failures() -> None:
    other = Identity("apps", "Deployment", "demo", "other")
    ticked = {
        (WEB, "m1"): exclusion("m1"),
        (WEB, "m2"): exclusion("m2", tick=Tick.DESCHEDULING),
        (WEB, "m3"): exclusion("m3", tick=Tick.EVICTION),
        (WEB, "m4"): exclusion("m4"),
        (other, "m5"): exclusion("m5"),
    }
    assert failures_of(ticked, WEB, ("m1", "m2", "m3", "m5", "m6")) == {"m1": ticked[WEB, "m1"]}
