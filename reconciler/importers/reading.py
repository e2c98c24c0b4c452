"""A foreign document read field by field: unread fields are reported at the end, and nothing is dropped silently."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from reconciler.api.content import Json, JsonObject, Step, dig
from reconciler.api.problem import Document, Source, dotted

_INDEX: Final = re.compile(r"\[\d+\]")
_NAMES: Final = re.compile(r"'[^']*'|(?:^|(?<=[a-z]) )[^\s']\S*[/.:_-]\S*\w|(?<=[A-Z])(\w+) [\w./-]+")
"""Names in a reason: in quotes, with a sign within, or after a kind."""
_USER: Final = re.compile(r"(?<=//)[^/@]*@")
_EMPTY: Final[tuple[Json, ...]] = (None, "", [], {}, False)
PRUNE: Final = (
    "what leaves Git is released and stays in its cluster until you are sure; then set "
    "preserveResourcesOnDeletion: false in the placement of the Render"
)
NOT_ITS_OWN: Final = "no document of the tool itself; objects that an application brings are read from its source"
NO_COUNTERPART: Final = "nothing here has this meaning; leave it, or say it in the store yourself"


class Uncarried(Exception):
    """An application that cannot be converted; the message names the reason and the remedy, without values."""


class LeftOut(NamedTuple):
    """A field without counterpart. Sorted by place."""

    source: Source
    field: str
    why: str

    @property
    def reason(self) -> str:
        """Return the field, whatever its place in lists, and the reason."""
        return f"{_INDEX.sub('[]', self.field)}: {_without_names(self.why)}"

    def __str__(self) -> str:
        """The line that is printed."""
        return f"left out: {self.source.path}:{self.source.line} {self.field}: {self.why}"


def _without_names(why: str) -> str:
    return _NAMES.sub(r"\1", why)


class Failure(NamedTuple):
    """An application that is not carried over. `subject`: its kind and name."""

    source: Source
    subject: str
    why: str

    @property
    def reason(self) -> str:
        """Return the reason, whatever it names."""
        return _without_names(self.why)

    def __str__(self) -> str:
        """The line that is printed."""
        return f"not carried over: {self.source.path}:{self.source.line} {self.subject}: {self.why}"


class NotKeptTo(NamedTuple):
    """A directive on a copied object that is not kept to here. `says`: as it is written there."""

    source: Source
    says: str
    why: str

    @property
    def reason(self) -> str:
        """Return the directive and the reason."""
        return f"{self.says}: {self.why}"

    def __str__(self) -> str:
        """The line that is printed."""
        return f"not kept to: {self.source.path}:{self.source.line} {self.says}: {self.why}"


def grouped(found: Iterable[LeftOut | Failure | NotKeptTo]) -> Iterator[str]:
    """Yield a line for each; those of one reason are one line, with their number and the first of them."""
    alike: dict[str, list[LeftOut | Failure | NotKeptTo]] = {}
    for each in found:
        alike.setdefault(each.reason, []).append(each)
    for members in alike.values():
        more = f" ({len(members)} of this reason; --all names each)" if len(members) > 1 else ""
        yield f"{members[0]}{more}"


class Notes:
    """Omissions while documents are read; the same field of the same place is reported once."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._found: set[LeftOut] = set()

    def leave(self, document: Document, steps: tuple[Step, ...], why: str) -> None:
        """Remember a field, by its place."""
        self._found.add(LeftOut(document.at(*steps), dotted(steps), why))

    def sorted(self) -> tuple[LeftOut, ...]:
        """All of them, by place."""
        return tuple(sorted(self._found))


def distinct(documents: Iterable[Document], notes: Notes) -> list[Document]:
    """Return the documents without those that stand twice: of a file and an export the one with a status is kept.

    Documents without a namespace are all kept: what gives them one is not known.
    """
    found: dict[tuple[str, ...], Document] = {}
    listed = list(documents)
    for number, document in enumerate(listed):
        metadata = document.body.get("metadata")
        place = [str(dig(metadata, key) or "") for key in ("namespace", "name")]
        group, kind = str(document.body.get("apiVersion", "")).partition("/")[0], str(document.body.get("kind"))
        key = (group, kind, *place) if all(place) else (str(number),)
        first = found.setdefault(key, document)
        if first is not document:
            found[key], left = (document, first) if document.body.get("status") else (first, document)
            notes.leave(left, ("metadata", "name"), "it stands twice in the input; one of them is taken")
    return list(found.values())


class Reading:
    """One mapping of a document. `below`: its place there; getters record the fields that were read."""

    def __init__(self, document: Document, body: JsonObject, below: tuple[Step, ...], notes: Notes) -> None:
        """Read a mapping of `document`; `body` may be a copy of it with its templates filled in."""
        self.document, self.body, self.below, self.notes = document, body, below, notes
        self._asked: set[str] = set()

    def path(self, key: str) -> str:
        """The path of a field as people write it."""
        return dotted((*self.below, key))

    def value(self, key: str) -> Json:
        """Return any value; None if missing."""
        self._asked.add(key)
        return self.body.get(key)

    def text(self, key: str, default: str = "") -> str:
        """Return a text; a number is converted as written.

        Raises:
            Uncarried: it is something else.
        """
        found = self.value(key)
        if found is None:
            return default
        if isinstance(found, bool) or not isinstance(found, str | int | float):
            raise Uncarried(f"{self.path(key)} is no text")
        return str(found)

    def flag(self, key: str, *, default: bool = False) -> bool:
        """A truth value.

        Raises:
            Uncarried: it is something else.
        """
        found = self.value(key)
        if found is None:
            return default
        if not isinstance(found, bool):
            raise Uncarried(f"{self.path(key)} is neither true nor false")
        return found

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts.

        Raises:
            Uncarried: it is something else.
        """
        found = self.value(key)
        if found is None:
            return ()
        if not isinstance(found, list) or not all(isinstance(item, str) for item in found):
            raise Uncarried(f"{self.path(key)} is no list of texts")
        return tuple(str(item) for item in found)

    def map(self, key: str) -> dict[str, Any]:
        """Return a mapping as a whole, with every field of it read; empty if missing.

        Raises:
            Uncarried: it is something else.
        """
        found = self.value(key)
        if found is None:
            return {}
        if not isinstance(found, Mapping):
            raise Uncarried(f"{self.path(key)} is no mapping")
        return dict(found)

    def child(self, key: str) -> Reading:
        """Return a mapping below, empty if missing. Its own fields are to be read, and `rest` called.

        Raises:
            Uncarried: it is something else.
        """
        return Reading(self.document, self.map(key), (*self.below, key), self.notes)

    def children(self, key: str) -> tuple[Reading, ...]:
        """The mappings of a list.

        Raises:
            Uncarried: it is something else.
        """
        found = self.value(key)
        if found is None:
            return ()
        if not isinstance(found, list) or not all(isinstance(item, Mapping) for item in found):
            raise Uncarried(f"{self.path(key)} is no list of mappings")
        return tuple(
            Reading(self.document, item, (*self.below, key, index), self.notes) for index, item in enumerate(found)
        )

    def has(self, key: str) -> bool:
        """Return whether a field is there and not empty; this does not count as reading it."""
        return self.body.get(key) not in _EMPTY

    def leave(self, key: str, why: str) -> None:
        """Tell that a field is left out, if it is there."""
        self._asked.add(key)
        if self.has(key):
            self.notes.leave(self.document, (*self.below, key), why)

    def refuse(self, key: str, why: str) -> None:
        """End with an application that has a field, if it is there.

        Raises:
            Uncarried: it is there.
        """
        self._asked.add(key)
        if self.has(key):
            raise Uncarried(f"{self.path(key)}: {why}")

    def rest(self) -> None:
        """Report every unread field."""
        for key in sorted(self.body.keys() - self._asked):
            self.leave(key, NO_COUNTERPART)


def checked_url(text: str) -> str:
    """An address without user and password, which are in no file of ours.

    >>> checked_url("https://user:pass@example.com/x")
    'https://example.com/x'
    """
    return _USER.sub("", text)
