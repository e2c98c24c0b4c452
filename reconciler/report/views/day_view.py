"""The events of a day by hour: a row for each cluster, or for each object, those with the most to look at first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, timedelta
from typing import Final, NamedTuple

from reconciler.observations import moment_of
from reconciler.report.views.live_shapes import DayCell, DayRow, DayView

HOURS: Final = 24
ROWS_MAX: Final = 40
FLEET: Final = "fleet"
"""The row of events that are about no cluster, or about no object."""
_HOUR_CHARS: Final = len("2026-11-23T10")


class HourCount(NamedTuple):
    """So many events of a kind about a subject in an hour (`2026-11-23T10`)."""

    hour: str
    subject: str
    kind: str
    events: int


def hours_of(now: str) -> tuple[str, ...]:
    """Return the beginnings of the hours of the day that ends with the present one; RFC 3339.

    >>> hours_of("2026-11-23T10:33:20Z")[0]
    '2026-11-22T11:00:00Z'
    """
    last = moment_of(now).astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    begins = (last - timedelta(hours=HOURS - 1 - number) for number in range(HOURS))
    return tuple(begin.strftime("%Y-%m-%dT%H:%M:%SZ") for begin in begins)


def day_view(counts: Iterable[HourCount], by: str, now: str) -> DayView:
    """Return the day that ends now. `by`: `cluster` or `object`."""
    hours = hours_of(now)
    places = {hour[:_HOUR_CHARS]: number for number, hour in enumerate(hours)}
    rows: dict[str, dict[int, Counter[str]]] = {}
    for found in counts:
        if found.hour in places:
            cells = rows.setdefault(_row_of(found.subject, by), {})
            cells.setdefault(places[found.hour], Counter())[found.kind] += found.events
    ordered = sorted(rows.items(), key=lambda row: (-sum(map(Counter.total, row[1].values())), row[0]))
    shown = tuple(
        DayRow(name=name, cells=tuple(DayCell(hour=hour, events=dict(cells[hour])) for hour in sorted(cells)))
        for name, cells in ordered[:ROWS_MAX]
    )
    return DayView(by=by, hours=hours, rows=shown, total=len(rows))


def _row_of(subject: str, by: str) -> str:
    named, is_copy, cluster = subject.partition(" @ ")
    is_cluster = named.startswith("cluster ")
    if by == "cluster":
        return cluster if is_copy else named.removeprefix("cluster ") if is_cluster else FLEET
    return named if " " in named and not is_cluster else FLEET
