"""Times as words: `12 min ago`, `in 1 min 04 s`. `page.js` has the same rules; a test holds the two together."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

_MINUTE_S: Final = 60
_HOUR_S: Final = 3600
_DAY_S: Final = 86400
_FINE_S: Final = 10 * _MINUTE_S
"""Below this, future spans show seconds."""


def seconds_of(text: str) -> float | None:
    """Return an RFC 3339 time as epoch seconds; None if it is no time."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment.replace(tzinfo=moment.tzinfo or UTC).timestamp()


def spoken_span(span_s: float, *, is_fine: bool = False) -> str:
    """A length of time in its two biggest units at most.

    >>> spoken_span(42), spoken_span(64), spoken_span(64, is_fine=True), spoken_span(7500), spoken_span(180000)
    ('42 s', '1 min', '1 min 04 s', '2 h 05 min', '2 d 2 h')
    """
    whole_s = max(0, int(span_s))
    if whole_s < _MINUTE_S:
        return f"{whole_s} s"
    if whole_s < _HOUR_S:
        rest = f" {whole_s % _MINUTE_S:02d} s" if is_fine and whole_s < _FINE_S else ""
        return f"{whole_s // _MINUTE_S} min{rest}"
    if whole_s < _DAY_S:
        return f"{whole_s // _HOUR_S} h {whole_s % _HOUR_S // _MINUTE_S:02d} min"
    return f"{whole_s // _DAY_S} d {whole_s % _DAY_S // _HOUR_S} h"


def ago(text: str, now: str) -> str:
    """Return the span since then; the text itself if either is no time."""
    then_s, now_s = seconds_of(text), seconds_of(now)
    return text if then_s is None or now_s is None else f"{spoken_span(now_s - then_s)} ago"


def lasting(text: str, now: str) -> str:
    """For how long it has been so: `for 12 min`."""
    then_s, now_s = seconds_of(text), seconds_of(now)
    return f"since {text}" if then_s is None or now_s is None else f"for {spoken_span(now_s - then_s)}"


def until(text: str, now: str) -> str:
    """Return the span until then: `in 1 min 04 s`, and `now` from then on."""
    then_s, now_s = seconds_of(text), seconds_of(now)
    if then_s is None or now_s is None:
        return f"at {text}"
    return f"in {spoken_span(then_s - now_s, is_fine=True)}" if then_s - now_s >= 1 else "now"


def clock_time(text: str, now: str) -> str:
    """The hour of a time of today, the day and the hour of another one; in UTC, as everything here.

    >>> clock_time("2026-11-23T10:31:07Z", "2026-11-23T12:00:00Z"), clock_time("2026-11-21T10:31:07Z", "2026-11-23")
    ('10:31:07', '11-21 10:31')
    """
    if seconds_of(text) is None:
        return text
    day, _, hour = text.partition("T")
    return hour[:8] if now.startswith(day) else f"{day[5:]} {hour[:5]}"
