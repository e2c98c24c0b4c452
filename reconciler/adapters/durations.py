"""Times and spans as people write them: `2h`, `1h30m`, `2026-11-21T18:00:00Z`."""

from __future__ import annotations

import re

from reconciler.adapters.clock import epoch_s, rfc3339
from reconciler.errors import ConfigurationError

_UNIT_S = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_SPAN = re.compile(r"(?:[0-9]{1,6}[smhdw])+")
_PART = re.compile(r"([0-9]+)([smhdw])")


def seconds_in(text: str) -> int:
    """Return the seconds of a span.

    Raises:
        ConfigurationError: it is none.
    """
    if not _SPAN.fullmatch(text):
        raise ConfigurationError(f"{text!r} is no span of time; write 30m, 2h, 1h30m or 2d")
    return sum(int(count) * _UNIT_S[unit] for count, unit in _PART.findall(text))


def instant(text: str) -> str:
    """Return an RFC 3339 time in UTC.

    Raises:
        ConfigurationError: it is none, or has no time zone.
    """
    try:
        return rfc3339(epoch_s(text))
    except (ValueError, OverflowError) as error:
        raise ConfigurationError(f"{text!r} is no time; write it like 2026-11-21T18:00:00Z") from error


def moment(text: str, now: str) -> str:
    """Return an RFC 3339 time in UTC, which must be after `now`.

    Raises:
        ConfigurationError: it is none, has no time zone, or has passed.
    """
    found = instant(text)
    if epoch_s(found) <= epoch_s(now):
        raise ConfigurationError(f"{text} has passed; now it is {now}")
    return found
