"""Cron expressions and windows, by the case table tests/cases/rollouts/windows.yaml."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.api.clusters import Cluster
from reconciler.api.policies import ClusterAffinity
from reconciler.api.rollouts import Cron, FleetWindow, Window, WindowKind
from reconciler.documents import parse_duration
from reconciler.policy import closed_clusters, opening, parse_cron
from reconciler.policy.cron import begins_after, begins_until
from tests.examples import examples
from tests.present import present
from tests.yaml_text import load_yaml

TABLE = load_yaml((Path(__file__).parents[2] / "cases" / "rollouts" / "windows.yaml").read_text())
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Shanghai")


def cron_of(text: str) -> Cron:
    found = parse_cron(text)
    assert isinstance(found, Cron), found
    return found


def window_of(given: list[str]) -> Window:
    text, duration, zone, kind = [*given, *("", "", "UTC", "allow")[len(given) :]]
    seconds = present(parse_duration(duration))
    return Window(kind=WindowKind(kind), cron=cron_of(text), duration_s=seconds, time_zone=zone)


@pytest.mark.parametrize("row", TABLE["rows"], ids=lambda row: row["name"])
def test_windows(row: dict[str, Any]) -> None:
    windows = [window_of(given) for given in row["windows"]]
    found = opening(windows, datetime.fromisoformat(row["at"]))
    assert found.is_open is row["open"]
    assert (found.until_text or None) == row["until"]


@pytest.mark.parametrize("row", TABLE["wrong"], ids=lambda row: row["cron"])
def test_what_is_no_expression_is_told(row: dict[str, str]) -> None:
    found = parse_cron(row["cron"])
    assert isinstance(found, str)
    assert row["says"] in found


@st.composite
def expressions(draw: st.DrawFn) -> str:
    """Expressions that name a day."""
    minute = draw(st.sampled_from(["*", "*/15", "0", "30", "5-20", "59"]))
    hour = draw(st.sampled_from(["*", "*/3", "2", "1,2,3", "0-23/5"]))
    day = draw(st.sampled_from(["*", "*/7", "1", "28", "29"]))
    month = draw(st.sampled_from(["*", "3", "10-11", "jan"]))
    weekday = draw(st.sampled_from(["*", "1-5", "sun", "*/2"]))
    return f"{minute} {hour} {day} {month} {weekday}"


BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
MOMENTS = st.integers(0, 2 * 366 * 86400).map(lambda seconds: BEGINNING + timedelta(seconds=seconds))


@given(text=expressions(), zone=st.sampled_from(ZONES), moment=MOMENTS)
def test_the_last_beginning_before_the_next_one_is_the_one_before(text: str, zone: str, moment: datetime) -> None:
    cron, place = cron_of(text), ZoneInfo(zone)
    begin = present(begins_after(cron, place, moment))
    assert begin > moment
    lasts_s = int((begin - moment).total_seconds())
    assert begins_until(cron, place, begin, lasts_s) == begin
    before = begins_until(cron, place, begin - timedelta(seconds=1), lasts_s)
    assert before is None or before <= moment


@settings(max_examples=examples(20))
@given(
    windows=st.lists(
        st.builds(
            Window,
            kind=st.sampled_from(WindowKind),
            cron=expressions().map(cron_of),
            duration_s=st.sampled_from([600, 3600, 86400]),
            time_zone=st.sampled_from(ZONES),
        ),
        max_size=3,
    ),
    moment=MOMENTS,
    share=st.floats(0, 0.999),
)
def test_nothing_changes_before_the_time_that_is_told(windows: list[Window], moment: datetime, share: float) -> None:
    found = opening(windows, moment)
    if found.until is None:
        return
    assert found.until > moment
    between = moment + timedelta(seconds=int((found.until - moment).total_seconds() * share))
    assert opening(windows, between).is_open is found.is_open


def test_windows_of_the_fleet_close_clusters() -> None:
    clusters = [Cluster(name="m1"), Cluster(name="m2"), Cluster(name="m3")]
    night = window_of(["0 22 * * *", "8h"])
    freeze = window_of(["0 0 20 12 *", "336h", "UTC", "deny"])
    windows = [
        FleetWindow(window=freeze, clusters=ClusterAffinity(cluster_names=("m1",)), heals_drift=False),
        FleetWindow(window=night, clusters=ClusterAffinity(cluster_names=("m1", "m2"))),
    ]
    found = closed_clusters(windows, clusters, datetime(2026, 12, 24, 23, tzinfo=UTC))
    assert {name: each[:2] for name, each in found.items()} == {"m1": ("2027-01-03T00:00:00Z", False)}
    found = closed_clusters(windows, clusters, datetime(2026, 11, 24, 12, tzinfo=UTC))
    assert {name: each[:2] for name, each in found.items()} == {
        "m1": ("2026-11-24T22:00:00Z", True),
        "m2": ("2026-11-24T22:00:00Z", True),
    }
    assert closed_clusters((), clusters, datetime(2026, 11, 24, 12, tzinfo=UTC)) == {}
