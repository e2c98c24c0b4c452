"""Windows: their fields, their documents, their cron expressions, and their opening at a time.

Source: Sveltos, ClusterPromotion promotionWindow; Argo CD, sync windows: deny wins over allow, and where anything
allows, nothing else is allowed. A window lasts its duration as clocks without summer time count it.

Cron expressions have five fields (crontab(5) of Debian). A moment of a fixed hour that a change of the clocks leaves
out is the moment of that change, and one that comes twice is the first of both; an expression for any hour follows the
clocks as they are.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import lru_cache
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from msgspec.structs import replace

from reconciler.api.clusters import Cluster
from reconciler.api.fleet import FleetSettings
from reconciler.api.policies import ClusterAffinity
from reconciler.api.problem import NOWHERE
from reconciler.api.rollouts import Cron, FleetWindow, Window, WindowKind
from reconciler.documents import AFFINITY_SHAPE, Fields, exactly, object_field, read_seconds, shape, text_field
from reconciler.policy.match import matches_cluster, matching_clusters
from reconciler.policy.placement_policy import read_affinity
from reconciler.regex import regex

_DAYS_SEARCHED: Final = 41 * 366
"""The 29th of February of one weekday may be forty years away."""
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_LEAST_DAYS: Final = {2: 29, 4: 30, 6: 30, 9: 30, 11: 30}
"""So many days at most have months that do not have 31."""
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


WINDOW_FIELDS = (
    text_field(
        "kind",
        "allow: changes are made in such windows alone; deny: none are made in it, whatever allows them.",
        values=exactly("allow", "deny"),
        default="allow",
    ),
    text_field("cron", "When it begins: minute, hour, day of the month, month, weekday.", required=True),
    text_field("duration", "How long it lasts, at most 744h.", required=True),
    text_field("timeZone", "The time zone of cron, as the IANA names it.", default="UTC"),
)

WINDOW_SHAPE = shape(*WINDOW_FIELDS)

FLEET_WINDOW_SHAPE = shape(
    object_field("clusters", "The clusters that it is for.", default="every cluster", shape=AFFINITY_SHAPE),
    *WINDOW_FIELDS,
    text_field(
        "drift",
        "heal: drift is put back while its clusters are closed; hold: that waits as well.",
        values=exactly("heal", "hold"),
        default="heal",
    ),
)

_LONGEST_S: Final = 31 * 24 * 3600


def read_window(fields: Fields) -> Window | None:
    """A window, None with errors when it is not whole or not legal."""
    cron = parse_cron(fields.text("cron")) if fields.has("cron") else None
    if isinstance(cron, str):
        fields.error("cron-illegal", cron, "cron")
    zone = fields.text("timeZone", "UTC")
    if not (is_zone := zone_of(zone) is not None):
        message = f"{zone!r} is no time zone that is known here; write a name such as Europe/Berlin, or UTC"
        fields.error("time-zone-unknown", message, "timeZone")
    duration_s = read_seconds(fields, "duration", 0, least=60)
    if duration_s > _LONGEST_S:
        fields.error("window-too-long", f"{fields.text('duration')} is longer than 31 days (744h)", "duration")
        return None
    if not isinstance(cron, Cron) or not is_zone or duration_s < 60:
        return None
    return Window(
        kind=WindowKind(fields.text("kind") or "allow"),
        cron=cron,
        duration_s=duration_s,
        time_zone=zone,
        source=fields.source(),
    )


def read_fleet_windows(spec: Fields) -> tuple[FleetWindow, ...]:
    """`spec.windows` of a Fleet document in order; those with an error are left out."""
    windows: list[FleetWindow] = []
    for fields in spec.children("windows"):
        window, clusters = read_window(fields), fields.child("clusters")
        affinity = read_affinity(clusters) if clusters else ClusterAffinity()
        if window is not None:
            heals = fields.text("drift", "heal") == "heal"
            windows.append(FleetWindow(window=window, clusters=affinity, heals_drift=heals))
    return tuple(windows)


_AHEAD: Final = timedelta(days=2)
"""A window that is on for longer than this, begun again and again, is looked at again then."""
_STEPS_MAX: Final = 64
"""The limit of steps that keep the state open; then it is computed again."""


class Opening(NamedTuple):
    """The state of windows, open for changes or not, and its earliest end; None: never."""

    is_open: bool
    until: datetime | None

    @property
    def until_text(self) -> str:
        """RFC 3339, empty when it never ends."""
        return self.until.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if self.until else ""


class Closed(NamedTuple):
    """A cluster that windows close. `until`: RFC 3339, empty when no opening is known.

    `is_former`: by windows of the revision before alone.
    """

    until: str
    heals_drift: bool
    is_former: bool = False


class _OpenWindow(NamedTuple):
    is_on: bool
    changes_at: datetime | None
    is_endless: bool = False
    """It begins again before it ends, for as long as it was followed."""


def opening(windows: Sequence[Window], now: datetime) -> Opening:
    """Return whether the windows are open, and until when. Without any they are open for ever."""
    moment, is_open, is_endless = now, True, False
    has_allowing = any(window.kind is WindowKind.ALLOW for window in windows)
    for step in range(_STEPS_MAX):
        standings = [_window_at(window, moment) for window in windows]
        on = [window.kind for window, standing in zip(windows, standings, strict=True) if standing.is_on]
        is_on = WindowKind.DENY not in on and (not has_allowing or WindowKind.ALLOW in on)
        if step == 0:
            is_open = is_on
        elif is_on is not is_open or is_endless:
            break
        changes = [each.changes_at for each in standings if each.changes_at is not None]
        if not changes:
            return Opening(is_open, None)
        moment = min(changes)
        is_endless = any(each.is_endless and each.changes_at == moment for each in standings)
    return Opening(is_open, moment)


def closed_clusters(
    windows: Sequence[FleetWindow], clusters: Iterable[Cluster], now: datetime, former: Sequence[FleetWindow] = ()
) -> Mapping[str, Closed]:
    """The clusters that windows of the Fleet document close now, or those of the revision before that count too."""
    clusters = tuple(clusters)
    closed = _closed_by(windows, clusters, now)
    for name, before in _closed_by(former, clusters, now).items():
        own = closed.get(name)
        if own is None:
            closed[name] = before._replace(is_former=True)
        else:
            until = max(own.until, before.until) if own.until and before.until else ""
            closed[name] = Closed(until, own.heals_drift and before.heals_drift)
    return closed


_EVERY_DAY = parse_cron("0 0 * * *")
assert isinstance(_EVERY_DAY, Cron), "an expression of our own"
OBSERVED: Final = FleetWindow(
    window=Window(kind=WindowKind.DENY, cron=_EVERY_DAY, duration_s=2 * 86_400), heals_drift=False
)
"""The window of a fleet that is only observed: every cluster, those that come later too, is closed for ever."""


def named_windows(settings: FleetSettings, clusters: Iterable[Cluster]) -> tuple[FleetWindow, ...]:
    """Return windows with the names of the clusters that they are for, to be met whatever labels these get.

    `spec.mode: observe` is one of them.
    """
    windows, clusters = [OBSERVED] if settings.observe_only else [], tuple(clusters)
    for one in settings.windows:
        names = tuple(sorted(matching_clusters(one.clusters, clusters)))
        if names:
            is_every = replace(one.clusters, source=NOWHERE) == ClusterAffinity()
            affinity = ClusterAffinity() if is_every else ClusterAffinity(cluster_names=names)
            windows.append(replace(one, window=replace(one.window, source=NOWHERE), clusters=affinity))
    return tuple(windows)


def _closed_by(windows: Sequence[FleetWindow], clusters: Iterable[Cluster], now: datetime) -> dict[str, Closed]:
    closed: dict[str, Closed] = {}
    known: dict[tuple[int, ...], Closed | None] = {}
    for cluster in clusters if windows else ():
        own = tuple([index for index, one in enumerate(windows) if matches_cluster(one.clusters, cluster)[0]])
        if own not in known:
            here = [windows[index] for index in own]
            state = opening([each.window for each in here], now)
            known[own] = None
            if not state.is_open:
                on = [
                    each for each in here if each.window.kind is WindowKind.DENY and _window_at(each.window, now).is_on
                ]
                closing = on or [each for each in here if each.window.kind is WindowKind.ALLOW]
                known[own] = Closed(until=state.until_text, heals_drift=all(each.heals_drift for each in closing))
        closing_now = known[own]
        if closing_now is not None:
            closed[cluster.name] = closing_now
    return closed


def _window_at(window: Window, moment: datetime) -> _OpenWindow:
    """Return whether a window is on at a moment, and the latest time of the next change."""
    zone, lasts = zone_of(window.time_zone), timedelta(seconds=window.duration_s)
    assert zone is not None, "its reader knew the zone"
    begin = begins_until(window.cron, zone, moment, window.duration_s)
    if begin is None or begin + lasts <= moment:
        return _OpenWindow(False, begins_after(window.cron, zone, moment))
    end = begin + lasts
    while end < moment + _AHEAD:
        later = begins_until(window.cron, zone, end, window.duration_s)
        if later is None or later + lasts <= end:
            break
        end = later + lasts
    return _OpenWindow(True, end, is_endless=end - begin > lasts and end >= moment + _AHEAD)
