"""Moments, as observations and the journal write them: RFC 3339, UTC where no offset is given."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from math import inf
from typing import Final, TypeVar

from reconciler.api.binding import Constraint
from reconciler.api.content import JsonObject, dig
from reconciler.api.ledger import EvictionRecord, SuspensionRecord
from reconciler.api.rollouts import Approval
from reconciler.regex import regex

_FORM: Final = regex(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?(Z|[+-][0-9]{2}:[0-9]{2})")


def instant(text: str) -> datetime | None:
    """Return the moment; None for an empty text."""
    if not text:
        return None
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def moment_of(now: str) -> datetime:
    """Return the moment at which something is looked at; there is always one."""
    moment = instant(now)
    assert moment is not None, "a look has a time"
    return moment


def wait_s(moments: Iterable[str], now: str) -> float:
    """Return the seconds until the first of these moments is over; endless without any, 0 for a past one."""
    looked_at = moment_of(now)
    waits = [(at - looked_at).total_seconds() for moment in moments if (at := instant(moment)) is not None]
    return max(min(waits, default=inf), 0.0)


def api_moment(text: object) -> str:
    """Return a moment of an API server's answer; empty if invalid, so that it can be calculated with."""
    if not isinstance(text, str) or _FORM.fullmatch(text) is None:
        return ""
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return ""
    return text


_EVENT_TIMES: Final = (("series", "lastObservedTime"), ("lastTimestamp",), ("eventTime",), ("firstTimestamp",))


def event_moment(event: JsonObject) -> str:
    """Return when an event was seen last; empty: it does not say."""
    return next((moment for path in _EVENT_TIMES if (moment := api_moment(dig(event, *path)))), "")


def age_s(since: str, now: str) -> float:
    """Return seconds from one moment to another; 0 when either is not given."""
    begun, ends = instant(since), instant(now)
    return (ends - begun).total_seconds() if begun is not None and ends is not None else 0.0


def later(now: str, seconds: float) -> str:
    """Return the moment so many seconds after another one, to the second; empty when that is not given.

    >>> later("2026-11-21T10:00:00Z", 90)
    '2026-11-21T10:01:30Z'
    """
    moment = instant(now)
    if moment is None:
        return ""
    return (moment + timedelta(seconds=seconds)).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


Ending = TypeVar("Ending", Approval, Constraint, EvictionRecord, SuspensionRecord)
"""It holds until a time; empty: without end."""


def is_in_force(timed: Ending, now: str) -> bool:
    """Return whether its time is not up."""
    ends, moment = instant(timed.until), instant(now)
    return ends is None or moment is None or ends > moment


def in_force(timed: Iterable[Ending], now: str) -> tuple[Ending, ...]:
    """Return those whose time is not up."""
    return tuple(each for each in timed if is_in_force(each, now))
