"""The page of one cluster: its reachability, objects and capacity."""

from __future__ import annotations

from typing import Final, NamedTuple

from reconciler.report.views.questions import ROWS_MAX
from reconciler.report.views.shapes import CapacityPart, ClusterView, FleetView
from reconciler.web.pages.changes import changes
from reconciler.web.pages.drawing import draw
from reconciler.web.pages.head import Pill, head_of
from reconciler.web.pages.looks import HEALTHS, STATES
from reconciler.web.pages.needs import coming, told

_FULL: Final = 0.9
_BYTES: Final = ("memory", "ephemeral-storage", "storage")


class Gauge(NamedTuple):
    """The usage of one resource in a cluster. `filled`: of 1000."""

    name: str
    filled: int
    tone: str
    words: str


def cluster_page(fleet: FleetView, view: ClusterView, now: str) -> str:
    """Return the page as HTML. `fleet` is for its head; `now` (RFC 3339) is the reference of relative times."""
    return draw(
        "cluster.html",
        now=now,
        fleet=fleet,
        head=head_of(fleet),
        view=view,
        pills=_pills(view),
        gauges=tuple(map(_gauge, view.capacity)),
        needs=told(view.needs),
        timers=coming(view.timers),
        events=changes(view.history),
        objects_shown=ROWS_MAX,
    )


def _pills(view: ClusterView) -> tuple[Pill, ...]:
    if view.is_left:
        return (Pill("unk", "its document was taken out of the store"),)
    found = [Pill("ok", "answers") if view.is_up else Pill("bad", "does not answer")]
    if view.suspended is not None:
        found.append(Pill("warn", "suspended"))
    looks = [(STATES[name], count) for name, count in view.counts.items() if count and name in STATES]
    looks += [(HEALTHS[name], count) for name, count in view.health.items() if count and name in HEALTHS]
    found += [Pill(look.tone, f"{count} {look.words.partition(',')[0]}") for look, count in looks if look.tone != "ok"]
    if view.is_up and len(found) == 1 and any(view.counts.values()):
        found.append(Pill("ok", "all in sync and healthy"))
    return tuple(found)


def _gauge(part: CapacityPart) -> Gauge:
    if part.allocatable is None:
        return Gauge(part.name, 0, "unk", "not known")
    if part.used is None:
        return Gauge(part.name, 0, "unk", f"{_amount(part.name, part.allocatable)} in all")
    share = part.used / part.allocatable if part.allocatable else 1.0 if part.used else 0.0
    words = f"{_amount(part.name, part.used, is_bare=True)} of {_amount(part.name, part.allocatable)}, {share:.0%}"
    return Gauge(part.name, min(1000, max(0, round(1000 * share))), "warn" if share >= _FULL else "prog", words)


def _amount(name: str, value: float, *, is_bare: bool = False) -> str:
    unit, shown = "", value
    if name == "cpu":
        unit = " cores"
    elif name in _BYTES:
        unit, shown = " GiB", value / 2**30
    digits = f"{shown:,.0f}" if shown >= 100 or shown == int(shown) else f"{shown:.1f}"
    return digits if is_bare else digits + unit
