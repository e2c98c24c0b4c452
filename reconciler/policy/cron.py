"""Cron expressions of five fields, and their moments in a time zone. Source: crontab(5) of Debian.

A moment of a fixed hour that a change of the clocks leaves out is the moment of that change, and one that comes twice
is the first of both; an expression for any hour follows the clocks as they are.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from reconciler.api.rollouts import Cron
from reconciler.regex import regex

_DAYS_SEARCHED: Final = 41 * 366
"""The 29th of February of one weekday may be forty years away."""
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_LEAST_DAYS: Final = {2: 29, 4: 30, 6: 30, 9: 30, 11: 30}
"""So many days at most have months that do not have 31."""
_NOT_EVERYWHERE: Final = ("localtime", "posixrules", "posix/", "right/")  # the first is another zone on each machine
_ITEM: Final = regex(r"(?:(?P<every>\*)|(?P<first>[0-9a-z]+)(?:-(?P<last>[0-9a-z]+))?)(?:/(?P<step>[0-9]{1,4}))?")


def parse_cron(text: str) -> Cron | str:
    """Return the expression, or its fault."""
    fields = text.lower().split()
    if len(fields) != 5:
        return f"{text!r} has {len(fields)} fields; write five: minute, hour, day of the month, month, weekday"
    parts = (
        ("minute", 0, 59, ()),
        ("hour", 0, 23, ()),
        ("day of the month", 1, 31, ()),
        ("month", 1, 12, _MONTHS),
        ("weekday", 0, 7, _WEEKDAYS),
    )
    values: list[frozenset[int]] = []
    for field, (name, least, most, names) in zip(fields, parts, strict=True):
        numbers = _values(field, least, most, names)
        if isinstance(numbers, str):
            return f"{numbers} as the {name} of {text!r}; it is from {least} to {most}"
        values.append(numbers)
    cron = Cron(
        text=text,
        minutes=values[0],
        hours=values[1],
        days=values[2],
        months=values[3],
        weekdays=frozenset(day % 7 for day in values[4]),
        any_hour=fields[1].startswith("*"),
        any_day=fields[2].startswith("*"),
        any_weekday=fields[4].startswith("*"),
    )
    by_weekday = not (cron.any_day or cron.any_weekday)
    if not by_weekday and all(min(cron.days) > _LEAST_DAYS.get(month, 31) for month in cron.months):
        return f"{text!r} names no day that there is"
    return cron


def _values(field: str, least: int, most: int, names: tuple[str, ...]) -> frozenset[int] | str:
    values: set[int] = set()
    for item in field.split(","):
        match = _ITEM.fullmatch(item)
        if match is None:
            return f"{item!r} cannot be read"
        first, last = least, most
        if not match["every"]:
            first = _number(match["first"], least, names)
            last = first if match["last"] is None else _number(match["last"], least, names)
        step = int(match["step"] or 1)
        if not least <= first <= last <= most or step == 0:
            return f"{item!r} is not possible"
        if match["step"] and not match["every"] and match["last"] is None:
            return f"{item!r} has a step without a range"
        values.update(range(first, last + 1, step))
    return frozenset(values)


def _number(text: str, least: int, names: tuple[str, ...]) -> int:
    if text in names:
        return names.index(text) + least
    return int(text) if text.isdecimal() and len(text) <= 4 else -1


def zone_of(name: str) -> tzinfo | None:
    """The time zone of a name, None when it is not known here. UTC needs no data base."""
    if name == "UTC":
        return UTC
    if name.startswith(_NOT_EVERYWHERE):
        return None
    try:
        return ZoneInfo(name)
    # A name that leads out of the data base is a ValueError, a folder of it an OSError.
    except (KeyError, ValueError, OSError):
        return None


def begins_after(cron: Cron, zone: tzinfo, moment: datetime) -> datetime | None:
    """Return the first moment of an expression after another one, in UTC; None: none in forty years."""
    day = moment.astimezone(zone).date() - timedelta(days=1)
    for _ in range(_DAYS_SEARCHED):
        moments = _moments(cron, zone, day)
        if moments and moments[-1] > moment:
            return moments[bisect_right(moments, moment)]
        day += timedelta(days=1)
    return None


def begins_until(cron: Cron, zone: tzinfo, moment: datetime, seconds: int) -> datetime | None:
    """The last moment of an expression until another one, that moment included; None when it is too long ago."""
    earliest = moment - timedelta(seconds=seconds)
    day = moment.astimezone(zone).date() + timedelta(days=1)
    last_day = earliest.astimezone(zone).date() - timedelta(days=1)
    while day >= last_day:
        moments = _moments(cron, zone, day)
        if moments and moments[0] <= moment:
            begin = moments[bisect_right(moments, moment) - 1]
            return begin if begin >= earliest else None
        day -= timedelta(days=1)
    return None


# A window that begins every minute is followed from minute to minute.
@lru_cache(maxsize=16)
def _moments(cron: Cron, zone: tzinfo, day: date) -> list[datetime]:
    """The moments of one local day in UTC, in their order."""
    by_day, by_weekday = day.day in cron.days, day.isoweekday() % 7 in cron.weekdays
    is_day = by_day and by_weekday if cron.any_day or cron.any_weekday else by_day or by_weekday
    if day.month not in cron.months or not is_day:
        return []
    moments = {
        begin
        for hour in cron.hours
        for minute in cron.minutes
        for begin in _in_zone(datetime.combine(day, time(hour, minute)), zone, follows=cron.any_hour)
    }
    return sorted(moments)


def _in_zone(local: datetime, zone: tzinfo, *, follows: bool) -> Iterator[datetime]:
    """Yield the instants of a local time: one, two or, if the clocks jump over it, none. `follows`: for any hour."""
    first = local.replace(tzinfo=zone, fold=0).astimezone(UTC)
    second = local.replace(tzinfo=zone, fold=1).astimezone(UTC)
    if first <= second:
        yield first
        if follows and second != first:
            yield second
    elif not follows:
        yield _jump(second, first, zone)


def _jump(before: datetime, after: datetime, zone: tzinfo) -> datetime:
    """The moment between two others at which the offset of a zone changes, to the second."""
    offset = after.astimezone(zone).utcoffset()
    low, high = int(before.timestamp()), int(after.timestamp())
    while high - low > 1:
        middle = (low + high) // 2
        is_after = datetime.fromtimestamp(middle, zone).utcoffset() == offset
        low, high = (low, middle) if is_after else (middle, high)
    return datetime.fromtimestamp(high, UTC)
