"""The head of every page: whether and since when all is in step, by which commit, and alerts."""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct

from reconciler.report.views.shapes import FleetView, Weight
from reconciler.web.pages.looks import HEALTHS, STATES


class Pill(NamedTuple):
    """A few words with a colour. `is_since`: they began at the fleet's `since`."""

    tone: str
    words: str
    is_since: bool = False


class Band(Struct, frozen=True):
    """A part of a bar: its start and width (of 1000), its colour and its meaning."""

    at: int
    width: int
    tone: str
    count: int
    sign: str
    words: str


class Head(NamedTuple):
    """`mark`: the sign of the tab. `lead`: the text before the title of the tab."""

    pills: tuple[Pill, ...]
    mark: str
    lead: str
    bands: tuple[Band, ...]
    fares: tuple[Band, ...]


def head_of(fleet: FleetView) -> Head:
    """Return the content of the page's head."""
    pills = _pills(fleet)
    errors = sum(need.weight is Weight.ERROR for need in fleet.needs)
    is_bad = errors > 0 or any(pill.tone == "bad" for pill in pills)
    mark = "bad" if is_bad else "ok" if all(pill.tone == "ok" for pill in pills) and not fleet.needs else "warn"
    lead = f"{fleet.needs_total} to look at" if fleet.needs_total else {"ok": "in sync"}.get(mark, "look")
    order = {name: (look.sign, look.tone, look.words.partition(",")[0]) for name, look in STATES.items()}
    fares = {name: (look.sign, look.tone, look.words) for name, look in HEALTHS.items()}
    return Head(pills, mark, lead, _bands(fleet.objects, order), _bands(fleet.health, fares))


def _pills(fleet: FleetView) -> tuple[Pill, ...]:
    clusters, found = fleet.clusters, list[Pill]()
    if fleet.source.error:
        found.append(Pill("bad", "store cannot be read"))
    if not fleet.is_progressing:
        found.append(Pill("bad", f"stalled while {fleet.phase}"))
    if fleet.time is None:
        return (*found, Pill("unk", "no round yet"))
    if clusters.total == 0:
        return (*found, Pill("unk", "no clusters"))
    words = f"{clusters.in_sync} of {clusters.total} clusters in sync"
    found.append(Pill("ok" if clusters.in_sync == clusters.total else "warn", words, is_since=fleet.since is not None))
    if clusters.away:
        found.append(Pill("bad", f"{clusters.away} away"))
    found += [
        Pill("bad", f"{fleet.health[name]} {HEALTHS[name].words}")
        for name in ("Degraded", "Missing")
        if fleet.health.get(name)
    ]
    if not fleet.is_ready:
        found.append(Pill("bad", "not ready"))
    return tuple(found)


def _bands(counts: dict[str, int], order: dict[str, tuple[str, str, str]]) -> tuple[Band, ...]:
    """Each at least a little wide, so that one of 25,000 is seen; the widest pays for it."""
    shown = [(name, counts[name]) for name in (*order, *(counts.keys() - order)) if counts.get(name)]
    total = sum(count for _, count in shown)
    widths = [max(12, round(1000 * count / total)) for _, count in shown]
    if widths:
        widths[widths.index(max(widths))] += 1000 - sum(widths)
    bands, at = list[Band](), 0
    for (name, count), width in zip(shown, widths, strict=True):
        sign, tone, words = order.get(name, ("?", "unk", name))
        bands.append(Band(at, width, tone, count, sign, words))
        at += width
    return tuple(bands)
