"""Pauses before something is sent again: doubled, bounded, and what the receiver asks for within bounds."""

from __future__ import annotations

import pytest

from reconciler.notify.post import ASKED_MAX_S, BACK_OFF, pause_s

NOW = "2026-11-21T10:00:00Z"
NOW_S = 1795255200


def test_it_is_doubled_up_to_a_bound_and_less_by_chance() -> None:
    steady = [pause_s(attempt, {}, NOW, lambda: 0.0) for attempt in (1, 2, 3, 4, 9, 10, 10_000)]
    assert steady == [BACK_OFF.least_s, 2, 4, 8, 256, BACK_OFF.most_s, BACK_OFF.most_s]
    assert pause_s(4, {}, NOW, lambda: 1.0) == 4


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"retry-after": "120"}, 120),
        ({"retry-after": "0"}, BACK_OFF.least_s),
        ({"retry-after": "99999999999999999999"}, ASKED_MAX_S),
        ({"retry-after": "-5"}, BACK_OFF.least_s),
        ({"retry-after": "²"}, BACK_OFF.least_s),
        ({"retry-after": "Sat, 21 Nov 2026 10:01:30 GMT"}, 90),
        ({"retry-after": "Sat, 21 Nov 2020 10:01:30 GMT"}, BACK_OFF.least_s),
        ({"retry-after": "soon"}, BACK_OFF.least_s),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(NOW_S + 600)}, 600),
        ({"x-ratelimit-remaining": "7", "x-ratelimit-reset": str(NOW_S + 600)}, BACK_OFF.least_s),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "9" * 40}, ASKED_MAX_S),
    ],
)
def test_what_is_asked_for_counts_within_bounds(headers: dict[str, str], expected: float) -> None:
    assert pause_s(1, headers, NOW, lambda: 0.0) == expected
