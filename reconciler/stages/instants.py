"""Moments, as observations and the journal write them: RFC 3339, UTC where no offset is given."""

from __future__ import annotations

from datetime import UTC, datetime


def instant(text: str) -> datetime | None:
    """The moment; None for an empty text."""
    if not text:
        return None
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def age_s(since: str, now: str) -> float:
    """Seconds from one moment to another; 0 when either is not given."""
    begun, ends = instant(since), instant(now)
    return (ends - begun).total_seconds() if begun is not None and ends is not None else 0.0
