"""Since when applications have been unhealthy. Source: design#timers: they survive restarts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from reconciler.api.clusters import ClusterObservation, Health, Observations, Workload
from reconciler.api.refs import GVK, Identity
from reconciler.scheduler import remembered_times

DEPLOYMENT = GVK("apps", "v1", "Deployment")
WEB, API = (Identity("apps", "Deployment", "demo", name) for name in ("web", "api"))
KEY = "unhealthy Deployment demo/web @ m1"
EARLY, LATE = "2026-11-21T10:00:00Z", "2026-11-21T10:05:00Z"


def seen(since: str | None, *, health: Health | None = None, reachable: bool = True) -> Observations:
    """m1 with `web` unhealthy since then, or healthy."""
    return Observations(clusters={"m1": cluster("m1", since, health, reachable)})


def cluster(name: str, since: str | None, health: Health | None = None, reachable: bool = True) -> ClusterObservation:
    state = health or (Health.HEALTHY if since is None else Health.UNHEALTHY)
    workload = Workload(gvk=DEPLOYMENT, identity=WEB, health=state, unhealthy_since=since or "")
    return ClusterObservation(name=name, reachable=reachable, workloads={WEB: workload} if reachable else {})


def since_in(observations: Observations, name: str = "m1") -> str:
    return observations.clusters[name].workloads[WEB].unhealthy_since


def test_the_first_sight_begins_a_timer() -> None:
    observations, timers = remembered_times(seen(EARLY), {})
    assert timers == {KEY: EARLY}
    assert observations == seen(EARLY)


def test_a_condition_that_began_anew_does_not_begin_the_timer_anew() -> None:
    observations, timers = remembered_times(seen(LATE), {KEY: EARLY})
    assert (since_in(observations), timers) == (EARLY, {KEY: EARLY})


def test_a_cluster_that_knows_an_earlier_time_is_believed() -> None:
    observations, timers = remembered_times(seen(EARLY), {KEY: LATE})
    assert (since_in(observations), timers) == (EARLY, {KEY: EARLY})


def test_a_workload_that_is_well_or_gone_ends_its_timer() -> None:
    for state in (Health.HEALTHY, Health.PROGRESSING, Health.UNKNOWN):
        observations, timers = remembered_times(seen(None, health=state), {KEY: EARLY})
        assert (since_in(observations), timers) == ("", {})
    assert remembered_times(Observations(clusters={"m1": ClusterObservation(name="m1")}), {KEY: EARLY})[1] == {}


def test_a_cluster_that_does_not_answer_ends_none() -> None:
    observations, timers = remembered_times(seen(EARLY, reachable=False), {KEY: EARLY})
    assert timers == {KEY: EARLY}
    assert observations == seen(EARLY, reachable=False)
    back, timers = remembered_times(seen(LATE), timers)
    assert (since_in(back), timers) == (EARLY, {KEY: EARLY})


def test_a_cluster_whose_name_ends_alike_does_not_keep_the_timers_of_another() -> None:
    away = {"east-m1": cluster("east-m1", EARLY), "m1": cluster("m1", None, reachable=False)}
    known = {KEY: EARLY, "unhealthy Deployment demo/web @ east-m1": EARLY, "unhealthy Deployment demo/api @ m1": LATE}
    assert remembered_times(Observations(clusters=away), known)[1] == known
    well = {**away, "east-m1": cluster("east-m1", None)}
    assert remembered_times(Observations(clusters=well), known)[1].keys() == {
        KEY, "unhealthy Deployment demo/api @ m1"
    }  # fmt: skip


def test_a_cluster_that_has_left_the_store_ends_its_timers() -> None:
    assert remembered_times(Observations(), {KEY: EARLY})[1] == {}


SECONDS = st.integers(0, 59).map(lambda second: f"2026-11-21T10:00:{second:02}Z")
LOOKS = st.lists(st.one_of(st.just("down"), st.just("well"), SECONDS), min_size=1, max_size=12)


@given(LOOKS)
def test_a_time_is_that_of_the_first_look_since_it_was_last_well(looks: list[str]) -> None:
    """Never later than first seen, kept while the cluster does not answer, ended by recovery."""
    timers: dict[str, str] = {}
    expected = ""
    for look in looks:
        given_now = seen(None, reachable=False) if look == "down" else seen(None if look == "well" else look)
        observations, timers = remembered_times(given_now, timers)
        if look == "well":
            expected = ""
        elif look != "down":
            expected = min(expected, look) if expected else look
            assert since_in(observations) == expected
        assert timers == ({KEY: expected} if expected else {})
        assert remembered_times(observations, timers) == (observations, timers)


def test_that_it_failed_by_itself_is_remembered_when_its_pods_are_gone() -> None:
    failed = Workload(
        gvk=DEPLOYMENT, identity=WEB, health=Health.UNHEALTHY, unhealthy_since=EARLY, ended_by_itself=True
    )
    _, timers = remembered_times(_with(failed), {KEY: "2026-11-21T09:00:00Z"})
    for forgotten in (failed, replace(failed, ended_by_itself=False)):
        observations, after = remembered_times(_with(forgotten), timers)
        assert observations.clusters["m1"].workloads[WEB].ended_by_itself
        assert after == timers
    later = replace(failed, ended_by_itself=False, unhealthy_since=LATE)
    observations, _ = remembered_times(_with(later), timers)
    assert not observations.clusters["m1"].workloads[WEB].ended_by_itself, "that is another end"


def _with(workload: Workload) -> Observations:
    return Observations(clusters={"m1": ClusterObservation(name="m1", workloads={WEB: workload})})
