from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.documents import parse_duration
from reconciler.fleet.settings import parse_fleet_settings
from tests.unit.policy_cases import cases, check_problems, check_values, document_of


@pytest.mark.parametrize("case", cases("policies/fleet.yaml"))
def test_fleet_document_reads_as_documented(case: dict[str, Any]) -> None:
    settings, problems = parse_fleet_settings(document_of(case, "Fleet"))
    check_problems(case, problems)
    check_values(case, "settings", settings)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30s", 30),
        ("2m", 120),
        ("1h30m", 5400),
        ("0s", 0),
        ("0", 0),
        ("1.5m", 90),
        ("1000ms", 1),
        ("1500ms", None),
        ("1.5s", None),
        ("", None),
        ("90", None),
        ("-2m", None),
        ("2 m", None),
        ("2d", None),
        ("m", None),
        ("1s" * 40, None),
    ],
)
def test_reads_durations_of_whole_seconds(text: str, seconds: int | None) -> None:
    assert parse_duration(text) == seconds


@given(hours=st.integers(0, 99), minutes=st.integers(0, 59), seconds=st.integers(0, 59))
def test_parts_of_a_duration_add_up(hours: int, minutes: int, seconds: int) -> None:
    assert parse_duration(f"{hours}h{minutes}m{seconds}s") == hours * 3600 + minutes * 60 + seconds
