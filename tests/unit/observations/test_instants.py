from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.observations import age_s, instant


@pytest.mark.parametrize(
    "text",
    ["2026-11-21T10:00:00Z", "2026-11-21T10:00:00+00:00", "2026-11-21T11:00:00+01:00", "2026-11-21T10:00:00",
     "2026-11-21T05:30:00.000-04:30"],
)  # fmt: skip
def test_a_moment_is_the_same_however_it_is_written(text: str) -> None:
    assert instant(text) == datetime(2026, 11, 21, 10, tzinfo=UTC)


def test_no_text_is_no_moment() -> None:
    assert instant("") is None


@pytest.mark.parametrize(
    ("since", "now", "seconds"),
    [
        ("2026-11-21T10:00:00Z", "2026-11-21T10:00:31Z", 31),
        ("2026-11-21T10:00:31Z", "2026-11-21T10:00:00Z", -31),
        ("2026-11-21T11:00:00+01:00", "2026-11-21T10:00:01Z", 1),
        ("2026-11-21T10:00:00.250Z", "2026-11-21T10:00:01Z", 0.75),
        ("", "2026-11-21T10:00:00Z", 0),
        ("2026-11-21T10:00:00Z", "", 0),
        ("", "", 0),
    ],
)
def test_an_age_is_what_lies_between(since: str, now: str, seconds: float) -> None:
    assert age_s(since, now) == seconds


MOMENTS = st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1))  # noqa: DTZ001 - given a zone below
ZONES = st.integers(-12, 12).map(lambda hours: timedelta(hours=hours))


@given(MOMENTS, MOMENTS, ZONES)
def test_an_age_does_not_depend_on_the_zone(begun: datetime, ends: datetime, offset: timedelta) -> None:
    since, now = f"{begun.isoformat()}Z", f"{ends.isoformat()}Z"
    sign, hours = ("-" if offset < timedelta() else "+"), abs(offset) // timedelta(hours=1)
    shifted = f"{(begun + offset).isoformat()}{sign}{hours:02}:00"
    assert age_s(shifted, now) == age_s(since, now) == (ends - begun).total_seconds()
