"""Entries of map lists that replaced ours: an entry whose key was edited by hand.

An entry with another key is another entry for an API server: server-side apply would add ours again beside the edited
one, or be refused since the two cannot stand together. So the edited one has to go with the same apply. An entry that
somebody added beside ours is theirs, and stays.

Source: design#replaced-entries; docs/concepts/three-way-diff.md.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import product
from typing import Final, NamedTuple

from reconciler.api.content import Json, JsonObject
from reconciler.api.plan import MISSING, FieldChange
from reconciler.diff.canonical import same_scalar
from reconciler.ownership import FieldPath, Keyed, entries_of, is_applied_by, parse_path, subtree

Key = tuple[Json, ...]
Entries = Mapping[Key, JsonObject]
"""The entries of a list by key, in their order."""

_ALIKE_ABOVE: Final = 0.5
"""More than this share of our entry's fields, besides its key, must be in an entry to count as its substitute."""


class SharedList(NamedTuple):
    """A map list of a live object with entries that are neither desired nor ours: `strangers`.

    `names`: the fields of a key. `sent`: the last sent entries; empty if unknown.
    """

    path: FieldPath
    names: tuple[str, ...]
    want: Entries
    found: Entries
    sent: Entries
    strangers: tuple[Key, ...]

    def place_of(self, key: Key) -> FieldPath:
        """The path of an entry."""
        return (*self.path, Keyed(tuple(zip(self.names, key, strict=True))))


class Substitutes(NamedTuple):
    """`certain`: entries that are one of ours under another key. `possible`: those that may be a substitute.

    A possible one goes only if the API server refuses ours beside it.
    """

    certain: tuple[FieldPath, ...] = ()
    possible: tuple[FieldPath, ...] = ()


def substitutes(lists: Collection[SharedList], live: JsonObject, manager: str) -> Substitutes:
    """Return the entries that replaced ours, from the live object and the last sent state.

    One of ours is gone, and the other came by an update of somebody else since our last apply, when ours was there. An
    entry that another tool applied is its declared will, and no substitute.
    """
    certain: list[FieldPath] = []
    possible: list[FieldPath] = []
    since = max((str(entry.get("time", "")) for entry in entries_of(live) if is_applied_by(entry, manager)), default="")
    for shared in lists:
        gone = [key for key in shared.sent or shared.want if key not in shared.found]
        came = []
        for key in shared.strangers if gone else ():
            place = shared.place_of(key)
            holders = [entry for entry in entries_of(live) if subtree(entry["fieldsV1"], place) is not None]
            # Times are of the last write of a manager: an entry that was there when we last applied is older.
            if holders and all(e.get("operation") == "Update" and str(e.get("time", "")) >= since for e in holders):
                came.append(key)
        renamed = _renamed(shared, gone, came)
        certain += [shared.place_of(key) for key in came if key in renamed]
        left = [shared.place_of(key) for key in came if key not in renamed]
        possible += left if len(left) <= len(gone) - len(renamed) else []
    return Substitutes(tuple(certain), tuple(possible))


def refused_beside(entries: Collection[FieldChange], refused: Collection[str]) -> tuple[FieldChange, ...]:
    """Return the removed entries in whose list an API server refused something.

    `refused`: paths of fields as API servers write them, which name entries by their position.
    """
    places = [_named_steps(parse_path(path) or ()) for path in refused]
    lists = [_named_steps((parse_path(entry.path) or ())[:-1]) for entry in entries]
    pairs = zip(entries, lists, strict=True)
    return tuple(entry for entry, steps in pairs if any(place[: len(steps)] == steps for place in places))


def _named_steps(path: FieldPath) -> FieldPath:
    return tuple(step for step in path if isinstance(step, str))


def _renamed(shared: SharedList, gone: list[Key], came: list[Key]) -> set[Key]:
    """Return the new entries that are a removed one under another key.

    The most similar come first. If more entries are equally similar than were removed, the match is ambiguous: none.
    """
    if not shared.sent:
        return set()
    alike: dict[tuple[float, int], list[tuple[Key, Key]]] = {}
    for old, new in product(gone, came):
        # Values that are encrypted in the store are known as hashes, so the desired entry counts as well.
        said = [entries[old] for entries in (shared.sent, shared.want) if old in entries]
        compared = (_compared(entry, shared.found[new], shared.names) for entry in said)
        share, more = max(compared, key=lambda found: found[0])
        if share > _ALIKE_ABOVE:
            alike.setdefault((-share, more), []).append((old, new))
    renamed: set[Key] = set()
    settled: set[Key] = set()
    for _, pairs in sorted(alike.items()):
        free = [(old, new) for old, new in pairs if old not in settled and new not in renamed]
        for olds, news in _groups(free):
            settled |= olds
            renamed |= news if len(news) <= len(olds) else set()
    return renamed


def _groups(pairs: Collection[tuple[Key, Key]]) -> list[tuple[set[Key], set[Key]]]:
    """The pairs as groups of entries that any of its own could be."""
    groups: list[tuple[set[Key], set[Key]]] = []
    for old, new in pairs:
        olds, news = {old}, {new}
        for group in [group for group in groups if old in group[0] or new in group[1]]:
            groups.remove(group)
            olds, news = olds | group[0], news | group[1]
        groups.append((olds, news))
    return groups


def _compared(said: JsonObject, found: JsonObject, names: tuple[str, ...]) -> tuple[float, int]:
    """Return the share of our entry's fields in another one, 1 if it has only a key, and the number of others there."""
    leaves = [(steps, value) for steps, value in _leaves(said, ()) if steps[0] not in names]
    there = dict(_leaves(found, ()))
    same = sum(same_scalar(value, there.get(steps, MISSING)) for steps, value in leaves)
    return (same / len(leaves) if leaves else 1.0), len(there) - same


def _leaves(value: Json, steps: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], Json]]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _leaves(inner, (*steps, name))
    elif isinstance(value, list):
        for position, inner in enumerate(value):
            yield from _leaves(inner, (*steps, position))
    else:
        yield steps, value
