"""Alerts as the page shows them: names inside the words are links."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from reconciler.report.views.shapes import Need, Timer, Weight
from reconciler.web.pages.links import cluster_link, object_link, shown_name

_ORDER = {Weight.ERROR: 0, Weight.WARNING: 1, Weight.INFO: 2}


class Piece(NamedTuple):
    """A part of a sentence, with where it leads."""

    words: str
    link: str = ""


class Told(NamedTuple):
    """An alert with its sentence in pieces. `key` identifies it; `times`: 0 if the words have the count."""

    need: Need
    key: str
    title: tuple[Piece, ...]
    times: int


class Coming(NamedTuple):
    """A timer with its sentence in pieces."""

    timer: Timer
    key: str
    words: tuple[Piece, ...]


def told(needs: Iterable[Need]) -> tuple[Told, ...]:
    """The needs, errors above warnings above hints, else in their order."""
    ordered = sorted(needs, key=lambda need: _ORDER[need.weight])
    return tuple(Told(need, _key(need), linked(need.title, _names(need)), _times(need)) for need in ordered)


def _times(need: Need) -> int:
    numbers = {found.replace(",", "") for found in re.findall(r"[0-9][0-9,]*", need.title)}
    return 0 if need.count == 1 or str(need.count) in numbers else need.count


def coming(timers: Iterable[Timer]) -> tuple[Coming, ...]:
    """Return the timers, the next one first."""
    ordered = sorted(timers, key=lambda timer: timer.ends)
    return tuple(Coming(timer, _key(timer), linked(timer.words, _names(timer))) for timer in ordered)


def linked(words: str, names: Sequence[tuple[str, str]]) -> tuple[Piece, ...]:
    """The words with the first place of each name as a link; a name that is not in them comes at the end.

    >>> linked("web waits in m1", [("m1", "/clusters/m1")])
    (Piece(words='web waits in ', link=''), Piece(words='m1', link='/clusters/m1'))
    """
    pieces: list[Piece] = [Piece(words)]
    for name, link in names:
        for number, piece in enumerate(pieces):
            at = -1 if piece.link else _found(piece.words, name)
            if at >= 0:
                split = (Piece(piece.words[:at]), Piece(name, link), Piece(piece.words[at + len(name) :]))
                pieces[number : number + 1] = split
                break
        else:
            pieces += [Piece(" · "), Piece(name, link)]
    return tuple(piece for piece in pieces if piece.words)


def _found(words: str, name: str) -> int:
    """Return the index of the name as a whole word, not as a part of a longer one; -1 if absent."""
    at = words.find(name)
    while at >= 0:
        around = words[at - 1 : at] + words[at + len(name) : at + len(name) + 1]
        if not any(char.isalnum() or char in "-/" for char in around):
            return at
        at = words.find(name, at + 1)
    return -1


def _names(found: Need | Timer) -> list[tuple[str, str]]:
    names = []
    if found.resource is not None:
        names.append((shown_name(found.resource), object_link(found.resource)))
    if found.cluster:
        names.append((found.cluster, cluster_link(found.cluster)))
    return names


def _key(found: Need | Timer) -> str:
    subject = object_link(found.resource) if found.resource else ""
    return f"{found.what} {found.cluster or ''} {subject} {'' if subject or found.cluster else _words(found)}"


def _words(found: Need | Timer) -> str:
    return found.title if isinstance(found, Need) else found.words
