"""The page of one object of the store: its clusters, reasons, health, differences and history."""

from __future__ import annotations

from itertools import groupby

from reconciler.report.views.shapes import CopyPart, Difference, FleetView, ObjectView
from reconciler.web.pages.changes import changes
from reconciler.web.pages.drawing import draw
from reconciler.web.pages.head import Pill, head_of
from reconciler.web.pages.looks import HEALTHS, STATES, copy_look
from reconciler.web.pages.needs import coming, told

_WORST = {"bad": 0, "warn": 1, "unk": 2, "prog": 3, "ok": 4}


def object_page(fleet: FleetView, view: ObjectView, now: str) -> str:
    """Return the page as HTML. `fleet` is for its head; `now` (RFC 3339) is the reference of relative times."""
    return draw(
        "object.html",
        now=now,
        fleet=fleet,
        head=head_of(fleet),
        view=view,
        pills=_pills(view.copies),
        copies=worst_first(view.copies),
        differences=_by_cluster(view.differences),
        needs=told(view.needs),
        timers=coming(view.timers),
        events=changes(view.history),
    )


def worst_first(copies: tuple[CopyPart, ...]) -> tuple[CopyPart, ...]:
    """The copies, those with troubles first, else in their order."""
    return tuple(sorted(copies, key=lambda copy: _WORST[_tone(copy)]))


def _tone(copy: CopyPart) -> str:
    return copy_look(copy.state, copy.health, copy.replicas, copy.ready).tone


def _pills(copies: tuple[CopyPart, ...]) -> tuple[Pill, ...]:
    """Return the number of clusters in each state, the worst first."""
    if not copies:
        return (Pill("unk", "placed nowhere"),)
    states = [STATES[copy.state] for copy in copies if copy.state in STATES]
    healths = [HEALTHS[copy.health] for copy in copies if copy.health in HEALTHS and copy.state != "unknown"]
    wrong = [look for look in (*states, *healths) if look.tone != "ok"]
    kinds = sorted(set(wrong), key=lambda look: (_WORST[look.tone], look.words))
    found = [Pill(look.tone, f"{look.words.partition(',')[0]} in {wrong.count(look)}") for look in kinds]
    fine = sum(_tone(copy) == "ok" for copy in copies)
    return (*found, Pill("ok" if fine else "unk", f"in sync and healthy in {fine} of {len(copies)}"))


def _by_cluster(differences: tuple[Difference, ...]) -> tuple[tuple[str, tuple[Difference, ...]], ...]:
    ordered = sorted(differences, key=lambda difference: difference.cluster)
    return tuple((name, tuple(found)) for name, found in groupby(ordered, key=lambda difference: difference.cluster))
