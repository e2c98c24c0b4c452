"""Durations and moments as documents write them."""

from __future__ import annotations

from datetime import datetime
from fractions import Fraction

from reconciler.regex import regex
from reconciler.stages.documents.fields import Fields

_DURATION = regex(r"(\d+(?:\.\d+)?(?:ns|us|µs|ms|s|m|h))+")
_DURATION_PART = regex(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)")
_RFC3339 = regex(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:\d\d)")
_UNIT_S = {
    "ns": Fraction(1, 10**9), "us": Fraction(1, 10**6), "µs": Fraction(1, 10**6), "ms": Fraction(1, 1000),
    "s": Fraction(1), "m": Fraction(60), "h": Fraction(3600),
}  # fmt: skip


def read_seconds(fields: Fields | None, name: str, default: int, *, least: int) -> int:
    """Return a duration in whole seconds; the default if missing, and with an error if invalid."""
    if fields is None or not fields.has(name):
        return default
    text = fields.text(name)
    seconds = parse_duration(text)
    if seconds is None:
        message = f"{text!r} is no duration in whole seconds; write it as 30s, 2m or 1h30m"
        fields.report.error("duration-illegal", message, *fields.path(name))
        return default
    if seconds < least:
        fields.report.error("duration-illegal", f"{name} is at least {least}s, not {text}", *fields.path(name))
    return seconds


def read_moment(fields: Fields, name: str) -> str:
    """Return a moment (RFC 3339), empty if missing; with an error if invalid."""
    text = fields.text(name)
    if fields.has(name) and not _is_rfc3339(text):
        message = f"{text!r} is no time; write one as 2026-11-21T10:00:00Z"
        fields.report.error("time-illegal", message, *fields.path(name))
    return text


def parse_duration(text: str) -> int | None:
    """A Kubernetes duration in whole seconds, None when it is malformed or has a fraction of a second.

    >>> parse_duration("1h30m"), parse_duration("500ms"), parse_duration("1.5m"), parse_duration("90")
    (5400, None, 90, None)
    """
    if len(text) > 64 or not _DURATION.fullmatch(text):
        return 0 if text == "0" else None
    total = sum((Fraction(number) * _UNIT_S[unit] for number, unit in _DURATION_PART.findall(text)), Fraction(0))
    return int(total) if total.denominator == 1 else None


def _is_rfc3339(text: str) -> bool:
    if not _RFC3339.fullmatch(text):
        return False
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False  # the form is right, the day or the hour does not exist
    return True
