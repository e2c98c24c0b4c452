"""Shapes of `/api/v1` that are read on demand: one copy in its cluster now, and a day of history."""

from __future__ import annotations

from msgspec import Struct

from reconciler.report.views.view_shapes import ResourceView


class DiffLine(Struct, frozen=True, kw_only=True, rename="camel"):
    """A line of a difference. `sign`: `-` live, `+` wanted, a space for both, `@` where lines are left out."""

    sign: str
    text: str


class OwnedObject(Struct, frozen=True, kw_only=True, rename="camel"):
    """An object below its owner. `depth`: 0 is the object itself; `words`: its phase or the reason of a container."""

    depth: int
    kind: str
    name: str
    words: str = ""
    ready: str = ""
    restarts: int = 0
    is_broken: bool = False


class LiveEvent(Struct, frozen=True, kw_only=True, rename="camel"):
    """An event of the cluster. `type`: Normal or Warning; `about`: kind and name."""

    time: str | None
    type: str
    reason: str
    message: str
    about: str
    count: int = 1


class LiveLog(Struct, frozen=True, kw_only=True, rename="camel"):
    """The last lines of a container's log. `is_previous`: of the run before the present one."""

    pod: str
    container: str
    lines: tuple[str, ...]
    is_previous: bool = False


class LiveView(Struct, frozen=True, kw_only=True, rename="camel"):
    """`GET /api/v1/live/CLUSTER/KIND/NAMESPACE/NAME`: a copy as its cluster has it now, masked and cut.

    `why`: the reason why it could not be read; `notes`: what else could not. `manifest`: the lines of its YAML, at most
    1,500 of `manifest_lines`; `difference`: to what is wanted, where a change is due. `owned`: the tree below it, at
    most 60 of `owned_total`; `logs`: of broken pods, where `--page-logs` allows it.
    """

    version: int = 1
    cluster: str
    resource: ResourceView
    time: str
    why: str = ""
    manifest: tuple[str, ...] = ()
    manifest_lines: int = 0
    difference: tuple[DiffLine, ...] = ()
    owned: tuple[OwnedObject, ...] = ()
    owned_total: int = 0
    events: tuple[LiveEvent, ...] = ()
    logs: tuple[LiveLog, ...] = ()
    notes: tuple[str, ...] = ()


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
