"""Questions to the views, with the filters and folds of the matrix; and the events of a day by hour."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, timedelta
from typing import Final, NamedTuple

from msgspec import Struct

from reconciler.observations import moment_of

ROWS_MAX: Final = 500
"""So many rows of the matrix, objects of a cluster or entries of history are one answer, unless fewer are asked for."""


class MatrixQuery(Struct, frozen=True, kw_only=True):
    """Filters of the matrix: an empty field does not restrict it.

    `kind`: as people write it (`deploy`, `deployments.apps`). `q`: a part of namespace/name. `team`: the value of an
    owner label (`team`, `example.com/owner`), or a folder of the store. `label`: `key` or `key=value` of the workload.
    `cluster`: a part of its name, or `key=value` of its labels. `stage`: of a rollout. `troubles`: only rows with a
    cell that is not Synced and Healthy, the worst first. `rows`, `columns`: what they are folded by. At most `limit`
    rows, from `offset` on; with `cells_max` fewer rows where there are many columns.
    """

    namespace: str = ""
    kind: str = ""
    q: str = ""
    team: str = ""
    label: str = ""
    cluster: str = ""
    region: str = ""
    stage: str = ""
    troubles: bool = False
    rows: str = ""
    columns: str = ""
    offset: int = 0
    limit: int = ROWS_MAX
    cells_max: int = 0


class MatrixFilter(NamedTuple):
    """A field of `MatrixQuery`, its name for people, and an example. `is_first`: it is shown without unfolding."""

    name: str
    words: str
    example: str
    is_first: bool = False


FILTERS: Final = (
    MatrixFilter("q", "Name contains", "name", is_first=True),
    MatrixFilter("namespace", "Namespace", "namespace", is_first=True),
    MatrixFilter("team", "Team, by owner label or folder", "team or folder"),
    MatrixFilter("kind", "Kind", "kind"),
    MatrixFilter("label", "Label of workloads", "label=value"),
    MatrixFilter("cluster", "Clusters, by name or label", "cluster or label=value"),
    MatrixFilter("region", "Region", "region"),
    MatrixFilter("stage", "Stage of a rollout", "stage"),
)
FOLDS: Final[Mapping[str, tuple[str, ...]]] = {"rows": ("namespace", "team"), "columns": ("region", "stage")}
"""Properties by which rows and columns may be folded; each is a filter as well, which unfolds one of them."""


class HistoryQuery(Struct, frozen=True, kw_only=True):
    """A filter of history entries: an empty field does not restrict them.

    `resource`: KIND/NAME as people write it. `since`, `until`: RFC 3339 in UTC. At most `limit` entries, newest
    first; with `after`, the number of an entry, all later ones, oldest first.
    """

    resource: str = ""
    namespace: str = ""
    cluster: str = ""
    since: str = ""
    until: str = ""
    limit: int = 50
    after: int | None = None


class NotFound(Struct, frozen=True, kw_only=True):
    """The name is unknown or ambiguous. `close`: similar names, as KIND/NAME -n NAMESPACE."""

    why: str
    close: tuple[str, ...] = ()


HOURS: Final = 24
_DAY_ROWS_MAX: Final = 40
FLEET: Final = "fleet"
"""The row of events that are about no cluster, or about no object."""
_HOUR_CHARS: Final = len("2026-11-23T10")


class DayCell(Struct, frozen=True, kw_only=True, rename="camel"):
    """The events of an hour, by kind. `hour` counts from 0 in `hours` of the view."""

    hour: int
    events: dict[str, int]


class DayRow(Struct, frozen=True, kw_only=True, rename="camel"):
    """A cluster or an object; `fleet` for events about none."""

    name: str
    cells: tuple[DayCell, ...]


class DayView(Struct, frozen=True, kw_only=True, rename="camel"):
    """`GET /api/v1/day`: the events of the last 24 hours, by the hour; those with the most first, 40 of `total`."""

    version: int = 1
    by: str
    """`cluster` or `object`."""
    hours: tuple[str, ...]
    """The beginning of each."""
    rows: tuple[DayRow, ...] = ()
    total: int = 0


def hours_of(now: str) -> tuple[str, ...]:
    """Return the beginnings of the hours of the day that ends with the present one; RFC 3339.

    >>> hours_of("2026-11-23T10:33:20Z")[0]
    '2026-11-22T11:00:00Z'
    """
    last = moment_of(now).astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    begins = (last - timedelta(hours=HOURS - 1 - number) for number in range(HOURS))
    return tuple(begin.strftime("%Y-%m-%dT%H:%M:%SZ") for begin in begins)


def day_view(counts: Iterable[tuple[str, str, str, int]], by: str, now: str) -> DayView:
    """Return the day until now, by `cluster` or `object`. `counts`: hour (`2026-11-23T10`), subject, kind, count."""
    hours = hours_of(now)
    places = {begin[:_HOUR_CHARS]: number for number, begin in enumerate(hours)}
    rows: dict[str, dict[int, Counter[str]]] = {}
    for hour, subject, kind, events in counts:
        if hour in places:
            cells = rows.setdefault(_row_of(subject, by), {})
            cells.setdefault(places[hour], Counter())[kind] += events
    ordered = sorted(rows.items(), key=lambda row: (-sum(map(Counter.total, row[1].values())), row[0]))
    counted = tuple(
        DayRow(name=name, cells=tuple(DayCell(hour=hour, events=dict(cells[hour])) for hour in sorted(cells)))
        for name, cells in ordered[:_DAY_ROWS_MAX]
    )
    return DayView(by=by, hours=hours, rows=counted, total=len(rows))


def _row_of(subject: str, by: str) -> str:
    named, is_copy, cluster = subject.partition(" @ ")
    is_cluster = named.startswith("cluster ")
    if by == "cluster":
        return cluster if is_copy else named.removeprefix("cluster ") if is_cluster else FLEET
    return named if " " in named and not is_cluster else FLEET
