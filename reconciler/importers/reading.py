"""A foreign document read field by field: unread fields are reported at the end, and nothing is dropped silently."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from reconciler.api.content import Json, JsonObject, Step, dig
from reconciler.api.problem import Document, Source, dotted

_INDEX: Final = re.compile(r"\[\d+\]")
_NAMES: Final = re.compile(r"'[^']*'|(?:^|(?<=[a-z]) )[^\s']\S*[/.:_-]\S*\w|(?<=[A-Z])(\w+) [\w./-]+")
"""Names in a reason: in quotes, with a sign within, or after a kind."""
_USER: Final = re.compile(r"(?<=//)[^/@]*@")
_TEXT: Final = (str, int, float)
_EMPTY: Final[tuple[Json, ...]] = (None, "", [], {}, False)
LEFT_OUT: Final = "left out"
FAILED: Final = "not carried over"
NOT_KEPT_TO: Final = "not kept to"
PRUNE: Final = (
    "what leaves Git is released and stays in its cluster until you are sure; then set "
    "preserveResourcesOnDeletion: false in the placement of the Render"
)
NOT_ITS_OWN: Final = "no document of the tool itself; objects that an application brings are read from its source"
NO_COUNTERPART: Final = "nothing here has this meaning; leave it, or say it in the store yourself"


class Uncarried(Exception):
    """An application that cannot be converted; the message names the reason and the remedy, without values."""


class Remark(NamedTuple):
    """A line about a field, an application or a directive of a copied object. Sorted by place.

    `subject`: the path of the field, the kind and name of the application, or the directive as it is written.
    """

    source: Source
    subject: str
    why: str
    what: str = LEFT_OUT

    @property
    def reason(self) -> str:
        """Return what lines of one reason share: the field, whatever its place in lists; not what the reason names."""
        if self.what == NOT_KEPT_TO:
            return f"{self.subject}: {self.why}"
        why = _NAMES.sub(r"\1", self.why)
        return f"{_INDEX.sub('[]', self.subject)}: {why}" if self.what == LEFT_OUT else why

    def __str__(self) -> str:
        """The line that is printed."""
        return f"{self.what}: {self.source.path}:{self.source.line} {self.subject}: {self.why}"


def grouped(notes: Iterable[Remark]) -> Iterator[str]:
    """Yield a line for each; those of one reason are one line, with their number and the first of them."""
    alike: dict[str, list[Remark]] = {}
    for each in notes:
        alike.setdefault(each.reason, []).append(each)
    for members in alike.values():
        more = f" ({len(members)} of this reason; --all names each)" if len(members) > 1 else ""
        yield f"{members[0]}{more}"


class Notes:
    """Omissions while documents are read; the same field of the same place is reported once."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._lines: set[Remark] = set()

    def leave(self, document: Document, steps: tuple[Step, ...], why: str) -> None:
        """Remember a field, by its place."""
        self._lines.add(Remark(document.at(*steps), dotted(steps), why))

    def sorted(self) -> tuple[Remark, ...]:
        """All of them, by place."""
        return tuple(sorted(self._lines))


def distinct(documents: Iterable[Document], notes: Notes) -> list[Document]:
    """Return the documents without those that stand twice: of a file and an export the one with a status is kept.

    Documents without a namespace are all kept: what gives them one is not known.
    """
    unique: dict[tuple[str, ...], Document] = {}
    for number, document in enumerate(documents):
        metadata = document.body.get("metadata")
        place = [str(dig(metadata, key) or "") for key in ("namespace", "name")]
        group, kind = str(document.body.get("apiVersion", "")).partition("/")[0], str(document.body.get("kind"))
        key = (group, kind, *place) if all(place) else (str(number),)
        first = unique.setdefault(key, document)
        if first is not document:
            unique[key], left = (document, first) if document.body.get("status") else (first, document)
            notes.leave(left, ("metadata", "name"), "it stands twice in the input; one of them is taken")
    return list(unique.values())


class Reading:
    """One mapping of a document. `below`: its place there; getters record the fields that were read.

    A getter raises Uncarried if the field is something else; a missing one is the default, or empty.
    """

    def __init__(self, document: Document, body: JsonObject, below: tuple[Step, ...], notes: Notes) -> None:
        """Read a mapping of `document`; `body` may be a copy of it with its templates filled in."""
        self.document, self.body, self.below, self.notes = document, body, below, notes
        self._keys_read: set[str] = set()

    def path(self, key: str) -> str:
        """The path of a field as people write it."""
        return dotted((*self.below, key))

    def value(self, key: str) -> Json:
        """Return any value; None if missing."""
        self._keys_read.add(key)
        return self.body.get(key)

    def _fit(self, key: str, default: Any, what: str, fits: Callable[[Any], bool]) -> Any:
        value = self.value(key)
        if value is not None and not fits(value):
            raise Uncarried(f"{self.path(key)} is {what}")
        return default if value is None else value

    def text(self, key: str, default: str = "") -> str:
        """Return a text; a number is converted as written."""
        return str(self._fit(key, default, "no text", lambda one: type(one) is not bool and isinstance(one, _TEXT)))

    def flag(self, key: str, *, default: bool = False) -> bool:
        """A truth value."""
        return bool(self._fit(key, default, "neither true nor false", lambda one: isinstance(one, bool)))

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts."""
        return tuple(self._fit(key, (), "no list of texts", lambda one: _is_list_of(str, one)))

    def map(self, key: str) -> dict[str, Any]:
        """Return a mapping as a whole, with every field of it read."""
        return dict(self._fit(key, {}, "no mapping", lambda one: isinstance(one, Mapping)))

    def child(self, key: str) -> Reading:
        """Return a mapping below. Its own fields are to be read, and `rest` called."""
        return Reading(self.document, self.map(key), (*self.below, key), self.notes)

    def children(self, key: str) -> tuple[Reading, ...]:
        """The mappings of a list."""
        items = self._fit(key, (), "no list of mappings", lambda one: _is_list_of(Mapping, one))
        return tuple(
            Reading(self.document, item, (*self.below, key, index), self.notes) for index, item in enumerate(items)
        )

    def has(self, key: str) -> bool:
        """Return whether a field is there and not empty; this does not count as reading it."""
        return self.body.get(key) not in _EMPTY

    def leave(self, key: str, why: str) -> None:
        """Tell that a field is left out, if it is there."""
        self._keys_read.add(key)
        if self.has(key):
            self.notes.leave(self.document, (*self.below, key), why)

    def refuse(self, key: str, why: str) -> None:
        """End with an application that has a field, if it is there. Raises Uncarried: it is there."""
        self._keys_read.add(key)
        if self.has(key):
            raise Uncarried(f"{self.path(key)}: {why}")

    def rest(self) -> None:
        """Report every unread field."""
        for key in sorted(self.body.keys() - self._keys_read):
            self.leave(key, NO_COUNTERPART)


def _is_list_of(kind: type, value: Json) -> bool:
    return isinstance(value, list) and all(isinstance(item, kind) for item in value)


def checked_url(text: str) -> str:
    """An address without user and password, which are in no file of ours.

    >>> checked_url("https://user:pass@example.com/x")
    'https://example.com/x'
    """
    return _USER.sub("", text)
