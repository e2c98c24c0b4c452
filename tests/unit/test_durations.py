"""Spans and times as people write them."""

from __future__ import annotations

import pytest

from reconciler.clock import moment, seconds_in
from reconciler.errors import ConfigurationError

NOW = "2026-11-21T10:00:00Z"


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("30m", 1800), ("2h", 7200), ("1h30m", 5400), ("2d", 172_800), ("1w", 604_800)]
)
def test_a_span_is_a_sum_of_parts(text: str, seconds: int) -> None:
    assert seconds_in(text) == seconds


@pytest.mark.parametrize("text", ["", "2", "h", "2 h", "-2h", "2h ", "2y", "1.5h", "２h", "9999999h"])
def test_anything_else_is_no_span(text: str) -> None:
    with pytest.raises(ConfigurationError, match="no span of time"):
        seconds_in(text)


def test_a_time_is_given_back_in_utc() -> None:
    assert moment("2026-11-21T18:00:00+08:00", "2026-11-21T09:59:59Z") == NOW


@pytest.mark.parametrize("text", [NOW, "2026-11-21T09:00:00Z", "2026-11-21", "2026-11-21T18:00:00", "soon"])
def test_a_time_has_a_zone_and_lies_ahead(text: str) -> None:
    with pytest.raises(ConfigurationError):
        moment(text, NOW)
