"""Alerts and history entries as a page shows them: names inside the words are links."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from reconciler.api.ledger import EventKind
from reconciler.report.status.history_text import event_detail
from reconciler.report.views.queries import FLEET, DayView
from reconciler.report.views.view_shapes import Alert, Timer, Weight
from reconciler.server.pages.page_links import cluster_link, history_link, object_link, shown_name, subject_link
from reconciler.server.pages.styles import EVENTS

_ORDER = {Weight.ERROR: 0, Weight.WARNING: 1, Weight.INFO: 2}


class Piece(NamedTuple):
    """A part of a sentence, with where it leads."""

    words: str
    link: str = ""


def alert_texts(needs: Iterable[Alert]) -> list[tuple[Alert, str, tuple[Piece, ...], int]]:
    """Return alerts, errors first, with key, sentence in pieces, and count; 0: the words say it."""
    ordered = sorted(needs, key=lambda need: _ORDER[need.weight])
    rows = []
    for need in ordered:
        numbers = {number.replace(",", "") for number in re.findall(r"[0-9][0-9,]*", need.title)}
        times = 0 if need.count == 1 or str(need.count) in numbers else need.count
        rows.append((need, _key(need), linked(need.title, _names(need)), times))
    return rows


def coming(timers: Iterable[Timer]) -> list[tuple[Timer, str, tuple[Piece, ...]]]:
    """Return the timers, the next one first, each with its key and its sentence in pieces."""
    ordered = sorted(timers, key=lambda timer: timer.ends)
    return [(timer, _key(timer), linked(timer.words, _names(timer))) for timer in ordered]


def linked(words: str, names: Sequence[tuple[str, str]]) -> tuple[Piece, ...]:
    """The words with the first place of each name as a link; a name that is not in them comes at the end.

    >>> linked("web waits in m1", [("m1", "/clusters/m1")])
    (Piece(words='web waits in ', link=''), Piece(words='m1', link='/clusters/m1'))
    """
    pieces: list[Piece] = [Piece(words)]
    for name, link in names:
        for number, piece in enumerate(pieces):
            at = -1 if piece.link else _word_at(piece.words, name)
            if at >= 0:
                split = (Piece(piece.words[:at]), Piece(name, link), Piece(piece.words[at + len(name) :]))
                pieces[number : number + 1] = split
                break
        else:
            pieces += [Piece(" · "), Piece(name, link)]
    return tuple(piece for piece in pieces if piece.words)


def _word_at(words: str, name: str) -> int:
    """Return the index of the name as a whole word, not as a part of a longer one; -1 if absent."""
    at = words.find(name)
    while at >= 0:
        around = words[at - 1 : at] + words[at + len(name) : at + len(name) + 1]
        if not any(char.isalnum() or char in "-/" for char in around):
            return at
        at = words.find(name, at + 1)
    return -1


def _names(item: Alert | Timer) -> list[tuple[str, str]]:
    names = []
    if item.resource is not None:
        names.append((shown_name(item.resource), object_link(item.resource)))
    if item.cluster:
        names.append((item.cluster, cluster_link(item.cluster)))
    return names


def _key(item: Alert | Timer) -> str:
    subject = object_link(item.resource) if item.resource else ""
    words = item.title if isinstance(item, Alert) else item.words
    return f"{item.what} {item.cluster or ''} {subject} {'' if subject or item.cluster else words}"


_TONES: Final[Mapping[str, str]] = {
    EventKind.FAILED: "bad",
    EventKind.SOURCE_FAILED: "bad",
    EventKind.STORE_BROKEN: "bad",
    EventKind.CLUSTER_AWAY: "bad",
    EventKind.KIND_UNREAD: "bad",
    EventKind.JOURNAL_FULL: "bad",
    EventKind.CLUSTER_WENT_BACK: "warn",
    EventKind.OBJECT_REFUSED: "bad",
    EventKind.ROLLOUT_PAUSED: "bad",
    EventKind.APPROVAL_AWAITED: "warn",
    EventKind.PINNED: "warn",
    EventKind.FROZEN: "warn",
    EventKind.FIGHT_DETECTED: "warn",
    EventKind.DRIFT: "warn",
    EventKind.DELETED: "warn",
    EventKind.EVICTED: "warn",
    EventKind.SUSPENDED: "warn",
}


def day_rows(day: DayView) -> list[dict[str, Any]]:
    """Return the rows of a day, a cell for each hour; None: nothing happened. `link`: its page, or empty."""
    rows = []
    for row in day.rows:
        is_object = day.by == "object" and " " in row.name
        subject = row.name if is_object else f"cluster {row.name}" if day.by == "cluster" and row.name != FLEET else ""
        cells: list[dict[str, Any] | None] = [None] * len(day.hours)
        for cell in row.cells:
            start, end = (*day.hours, "")[cell.hour : cell.hour + 2]
            if not cell.events:
                continue
            tones = {_TONES.get(kind, "plain") for kind in cell.events}
            words = ", ".join(f"{count} {EVENTS.get(kind, kind)}" for kind, count in sorted(cell.events.items()))
            cells[cell.hour] = {
                "events": sum(cell.events.values()),
                # The worst of them as a colour.
                "tone": next(tone for tone in ("bad", "warn", "plain") if tone in tones),
                "words": f"{row.name} at {start[11:16]}: {words}",
                "link": history_link(subject, since=start, until=end),
            }
        rows.append({"name": row.name, "link": subject_link(subject) if subject else "", "cells": cells})
    return rows


def changes(entries: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return history entries as pages show them. `link`: its subject's page; `todo`: only of an edit by hand."""
    return [
        {
            **{name: entry[name] or "" for name in ("time", "subject", "who", "revision")},
            "event": EVENTS.get(entry["event"], entry["event"]),
            "tone": _TONES.get(entry["event"], "plain"),
            "link": subject_link(entry["subject"]),
            "cluster": "" if entry["subject"] == f"cluster {entry['cluster']}" else entry["cluster"] or "",
            "detail": "" if (detail := event_detail(entry)) == "-" else detail,
            "todo": entry.get("todo") or "" if entry["event"] == EventKind.DRIFT else "",
        }
        for entry in entries
    ]
