"""A file with other values in its documents, by the smallest edits of its text.

A file of a person keeps its comments and its layout: only the text of what differs is written, at the places that the
reader knows. The result is read again; unless it has exactly the wanted values, nothing is written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from reconciler.api.content import Json, JsonObject, is_same
from reconciler.errors import ConfigurationError
from reconciler.regex import regex
from reconciler.yaml.scalars import plain_value
from reconciler.yaml.yaml_reader import Locator, key_of, read_yaml

_BREAK: Final = regex(r"\r\n|[\n\r\x85\u2028\u2029]")
_PROPERTIES: Final = regex(r"(?:[&!]\S*\s+)*")
_ALIAS: Final = regex(r"\s*:\s*(\*[^\s,\]}]+)")
_PLAIN: Final = regex(r"[A-Za-z0-9_./-](?:[A-Za-z0-9_./@+-]|:(?=[A-Za-z0-9_./@+-]))*", re.ASCII)
_DASH: Final = regex(r"\s*- +")
_MERGE: Final = "<<"
_BOM: Final = "\ufeff"


class NotEdited(ConfigurationError):
    """The values cannot be written into the text as it is laid out, for a `reason` at a `place`."""

    def __init__(self, place: object, reason: str, *, is_for_hand: bool = False) -> None:
        """`is_for_hand`: a person can make the edit, and is told to."""
        super().__init__(f"{place}: {reason}{'; edit it by hand' if is_for_hand else ''}")
        self.place = str(place)
        self.reason = reason


Write = Callable[[Json], str]
"""A value as one YAML document in block style, with a line break at its end."""


class _Span(NamedTuple):
    start: int
    end: int
    text: str


def edited(path: str, data: bytes, bodies: Sequence[JsonObject], write: Write) -> bytes:
    """Return the file with these bodies in place of those of its documents, in their order.

    Raises:
        NotEdited: it cannot be read, has other documents, or what differs is laid out so that no edit of it alone fits.
    """
    try:
        # An edit of an anchor is seen wherever it is named: only what is wrong afterwards is written out.
        once = _edited(path, data, bodies, write, is_first=True)
    except NotEdited:
        once = data
    text = _edited(path, once, bodies, write)
    again = read_yaml(path, text)
    read_bodies = [document.body for document in again.documents]
    if again.broken or len(read_bodies) != len(bodies) or not all(map(is_same, read_bodies, bodies)):
        documents = read_yaml(path, data).documents
        wrong = next(old for old, new in zip(documents, bodies, strict=True) if not is_same(old.body, new))
        raise NotEdited(wrong.source, "an edit of its text would change something else as well", is_for_hand=True)
    return text


def _edited(path: str, data: bytes, bodies: Sequence[JsonObject], write: Write, *, is_first: bool = False) -> bytes:
    read = read_yaml(path, data)
    if read.broken or len(read.documents) != len(bodies):
        raise NotEdited(path, f"it is not read as {len(bodies)} documents; correct it first")
    text = data.decode()
    spans: list[_Span] = []
    for document, body in zip(read.documents, bodies, strict=True):
        if is_same(document.body, body):
            continue
        assert isinstance(document.locate, Locator), "a document that was read"
        before, node = document.locate.node()
        if node is None:
            raise NotEdited(document.source, "its layout is not known", is_for_hand=True)
        editor = _Editor(path, text.removeprefix(_BOM), before, write, is_first=is_first)
        editor.change(node, document.body, body, is_flow=False)
        spans += editor.spans
    spliced = _spliced(path, text.removeprefix(_BOM), spans)
    return ((_BOM if text.startswith(_BOM) else "") + spliced).encode()


def _spliced(path: str, text: str, spans: list[_Span]) -> str:
    # An anchor is reached by each of its aliases: the same edit of it counts once.
    ordered = sorted(dict.fromkeys(spans), key=lambda span: (span.start, span.end))
    if any(after.start < before.end for before, after in pairwise(ordered)):
        raise NotEdited(path, "one text stands for several values that become different; write them out by hand")
    parts, done = [], 0
    for span in ordered:
        parts += [text[done : span.start], span.text]
        done = span.end
    return "".join([*parts, text[done:]])


class _Editor:
    def __init__(self, path: str, text: str, before: int, write: Write, *, is_first: bool) -> None:
        """`before`: lines of the text above the part that the nodes were read from.

        `is_first`: values that an anchor gives stay, for the edit of the anchor may be what is wanted of them.
        """
        self._path, self._text, self._before, self._write = path, text, before, write
        self._is_first = is_first
        self._starts = [0, *(match.end() for match in _BREAK.finditer(text))]
        self._newline = "\r\n" if "\r\n" in text else "\n"
        self.spans: list[_Span] = []

    def change(self, node: Node, old: Json, new: Json, *, is_flow: bool) -> None:
        if is_same(old, new):
            return
        is_flow = is_flow or bool(getattr(node, "flow_style", False))
        if isinstance(node, MappingNode) and isinstance(new, Mapping) and new:
            self._mapping(node, old, new, is_flow=is_flow)
        elif isinstance(node, SequenceNode) and isinstance(new, list) and new:
            self._sequence(node, old, new, is_flow=is_flow)
        else:
            self._replace(node, new, is_flow=is_flow)

    def _mapping(self, node: MappingNode, old: JsonObject, new: JsonObject, *, is_flow: bool) -> None:
        entries = [(key_of(key), key, value) for key, value in node.value if isinstance(key, ScalarNode)]
        places = {name: index for index, (name, _, _) in enumerate(entries)}
        gone, added = [name for name in old if name not in new], [name for name in new if name not in old]
        places_left = [index for index, (name, _, _) in enumerate(entries) if name in new or name == _MERGE]
        if not places_left:
            return self._replace(node, new, is_flow=is_flow)
        for name in gone:
            if name not in places and not self._is_first:
                raise self._refused(node, f"{name} comes from an anchor")
        gone = [name for name in gone if name in places]
        if not is_flow:
            for name in gone:
                self._drop_entry(entries, places[name])
        for name in new:
            if name in old and not is_same(old[name], new[name]):
                if name not in places:
                    added += [] if self._is_first else [name]
                    continue
                _, key, value = entries[places[name]]
                if self._at(value.start_mark) < self._at(key.start_mark):
                    start, end = self._alias(key)
                    self.spans += [] if self._is_first else [_Span(start, end, self._flow(new[name]))]
                else:
                    self.change(value, old[name], new[name], is_flow=is_flow)
        if is_flow and (gone or added):
            held = [(self._at(key.start_mark), self._entry_end(key, value)) for _, key, value in entries]
            texts = [f"{self._flow(name)}: {self._flow(new[name])}" for name in added]
            self._flow_items(held, {places[name] for name in gone}, texts, places_left[-1] + 1)
        elif added:
            column = " " * entries[places_left[0]][1].start_mark.column
            lines = [line for name in added for line in self._write({name: new[name]}).splitlines()]
            end = self._line_end(self._entry_end(*entries[places_left[-1]][1:]))
            self.spans.append(_Span(end, end, "".join(self._newline + self._indented(line, column) for line in lines)))
        return None

    def _drop_entry(self, entries: Sequence[tuple[str, Node, Node]], index: int) -> None:
        _, key, value = entries[index]
        start = self._at(key.start_mark)
        first = self._line_start(start)
        if not self._text[first:start].strip():
            self.spans.append(_Span(first, self._next_line(self._entry_end(key, value)), ""))
        elif index + 1 < len(entries):
            self.spans.append(_Span(start, self._at(entries[index + 1][1].start_mark), ""))
        else:
            raise self._refused(key, "it is the only field of its line")

    def _sequence(self, node: SequenceNode, old: list[Json], new: list[Json], *, is_flow: bool) -> None:
        pairs, gone, added, at = _moves(old, new)
        aliases = self._aliases(node)
        if is_flow and (gone or added) and (aliases or not node.value):
            return self._replace(node, new, is_flow=True)
        for index, to in pairs:
            if index not in aliases:
                self.change(node.value[index], old[index], new[to], is_flow=is_flow)
            elif not (self._is_first or is_same(old[index], new[to])):
                raise self._refused(node, "an item is written elsewhere, and named by its anchor")
        if is_flow and (gone or added):
            held = [(self._at(item.start_mark), self._end(item)) for item in node.value]
            return self._flow_items(held, set(gone), [self._flow(new[index]) for index in added], at)
        if aliases and (gone or added):
            raise self._refused(node, "an item is written elsewhere, and named by its anchor")
        for index in gone:
            start = self._at(node.value[index].start_mark)
            first = self._line_start(start)
            if not _DASH.fullmatch(self._text[first:start]):
                raise self._refused(node.value[index], "it shares its line with other items")
            self.spans.append(_Span(first, self._next_line(self._end(node.value[index])), ""))
        if not added:
            return None
        column = " " * node.start_mark.column
        lines = [self._indented(line, column) for line in self._write([new[index] for index in added]).splitlines()]
        if at:
            end = self._line_end(self._end(node.value[at - 1]))
            self.spans.append(_Span(end, end, "".join(self._newline + line for line in lines)))
        else:
            first = self._line_start(self._at(node.value[0].start_mark))
            self.spans.append(_Span(first, first, "".join(line + self._newline for line in lines)))
        return None

    def _aliases(self, node: SequenceNode) -> set[int]:
        aliases, last = set(), self._at(node.start_mark) - 1
        for index, item in enumerate(node.value):
            start = self._at(item.start_mark)
            if start <= last:
                aliases.add(index)
            last = max(last, start)
        return aliases

    def _flow_items(self, held: Sequence[tuple[int, int]], gone: set[int], added: list[str], at: int) -> None:
        """Drop and add items between brackets.

        `held`: where each begins and ends; `at`: the number of items that the added ones follow.
        """
        last = max(index for index in range(len(held)) if index not in gone)
        self.spans += [_Span(held[index][0], held[index + 1][0], "") for index in gone if index < last]
        if last + 1 < len(held):
            self.spans.append(_Span(held[last][1], held[-1][1], ""))
        start, end = held[max(at - 1, 0)]
        indent = self._text[self._line_start(start) : start]
        apart = ", " if indent.strip() else f",{self._newline}{indent}"
        if added and at:
            self.spans.append(_Span(end, end, "".join(apart + text for text in added)))
        elif added:
            self.spans.append(_Span(start, start, "".join(text + apart for text in added)))

    def _replace(self, node: Node, new: Json, *, is_flow: bool) -> None:
        start, end = self._start(node), self._end(node)
        if isinstance(node, ScalarNode):
            text = self._scalar(node, new) if not isinstance(new, Mapping | list) else self._flow(new)
            if isinstance(new, str) and "\n" in new and node.style in ("|", ">") and not is_flow:
                text = self._literal(node, new) or text
            is_close = start == end and not self._text[start - 1 : start].isspace()
            self.spans.append(_Span(start, end, f" {text}" if is_close else text))
        elif is_flow or not new or not isinstance(new, Mapping | list):
            # A list may begin in the column of its key, where nothing else may stand.
            self.spans.append(_Span(start, end, self._flow(new) if is_flow else f"  {self._flow(new)}"))
        else:
            column = " " * (start - self._line_start(start))
            lines = [self._indented(line, column) for line in self._write(new).splitlines()]
            self.spans.append(_Span(start, end, self._newline.join(lines).lstrip(" ")))

    def _scalar(self, node: ScalarNode, new: Json) -> str:
        """Return a value in the style of the one before it."""
        if isinstance(new, str) and (node.style == '"' or self._is_json):
            return json.dumps(new, ensure_ascii=False)
        if isinstance(new, str) and node.style == "'" and new.isprintable():
            return "'" + new.replace("'", "''") + "'"
        if isinstance(new, str) and _PLAIN.fullmatch(new) and plain_value(new) == new:
            return new
        return self._flow(new)

    def _literal(self, node: ScalarNode, new: str) -> str:
        """Return a text of several lines below a `|`; empty where that would not show it."""
        below = self._text[self._start(node) : self._end(node)].splitlines()[1:]
        indent = next((line[: len(line) - len(line.lstrip(" "))] for line in below if line.strip()), "")
        lines = self._write({"a": new}).splitlines()
        if not indent or not lines[0].startswith("a: |"):
            return ""
        return self._newline.join([lines[0][3:], *(self._indented(line[2:], indent) for line in lines[1:])])

    def _flow(self, value: Json) -> str:
        if isinstance(value, Mapping) and value:
            return "{" + ", ".join(f"{self._flow(name)}: {self._flow(below)}" for name, below in value.items()) + "}"
        if isinstance(value, list) and value:
            return "[" + ", ".join(map(self._flow, value)) + "]"
        if isinstance(value, str) and self._is_json:
            return json.dumps(value, ensure_ascii=False)
        return self._write(value).rstrip("\n")

    @property
    def _is_json(self) -> bool:
        return self._path.endswith(".json")

    @staticmethod
    def _indented(line: str, indent: str) -> str:
        return indent + line if line else ""

    def _at(self, mark: Any) -> int:
        return int(self._starts[self._before + mark.line] + mark.column)

    def _start(self, node: Node) -> int:
        start = self._at(node.start_mark)
        match = _PROPERTIES.match(self._text, start)
        return match.end() if match is not None and self._text[start : start + 1] in ("&", "!") else start

    def _end(self, node: Node) -> int:
        if isinstance(node, ScalarNode):
            end = self._at(node.end_mark)
            if node.style not in ("|", ">"):
                return end
            # A literal text ends with the line after it, and blank lines belong to it only if they count.
            header = self._text[self._start(node) :].split("\n", 1)[0].partition("#")[0]
            text = self._text[:end]
            return len(text.removesuffix("\n").removesuffix("\r")) if "+" in header else len(text.rstrip())
        if getattr(node, "flow_style", False) or not node.value:
            return self._at(node.end_mark)
        last = node.value[-1]
        if isinstance(node, MappingNode):
            return self._entry_end(*last)
        if self._at(last.start_mark) < self._at(node.start_mark):
            raise self._refused(node, "its last item is written elsewhere, and named by its anchor")
        return self._end(last)

    def _entry_end(self, key: Node, value: Node) -> int:
        return self._alias(key)[1] if self._at(value.start_mark) < self._at(key.start_mark) else self._end(value)

    def _alias(self, key: Node) -> tuple[int, int]:
        match = _ALIAS.match(self._text, self._at(key.end_mark))
        if match is None:
            raise self._refused(key, "its value is written elsewhere")
        return match.start(1), match.end(1)

    def _line_start(self, place: int) -> int:
        return max(start for start in self._starts if start <= place)

    def _line_end(self, place: int) -> int:
        match = _BREAK.search(self._text, place)
        return match.start() if match is not None else len(self._text)

    def _next_line(self, place: int) -> int:
        match = _BREAK.search(self._text, place)
        return match.end() if match is not None else len(self._text)

    def _refused(self, node: Node, why: str) -> NotEdited:
        return NotEdited(f"{self._path}:{self._before + node.start_mark.line + 1}", why, is_for_hand=True)


def _moves(old: list[Json], new: list[Json]) -> tuple[list[tuple[int, int]], list[int], list[int], int]:
    """Return how a list becomes another one: by the names of its items, else by their places.

    Kept items with their new places, removed ones, added ones, and the number of items that those come after.
    """
    before, after = _names(old), _names(new)
    if before is not None and after is not None:
        stays = [name for name in before if name in after]
        added = [name for name in after if name not in before]
        if [*stays, *added] == [*after]:
            gone = [place for name, place in before.items() if name not in after]
            at = max((before[name] for name in stays), default=-1) + 1
            if at:
                return [(before[name], after[name]) for name in stays], gone, [after[name] for name in added], at
    shorter = min(len(old), len(new))
    first = next((place for place in range(shorter) if not is_same(old[place], new[place])), shorter)
    rest = shorter - first
    last = next((place for place in range(rest) if not is_same(old[-1 - place], new[-1 - place])), rest)
    paired = rest - last
    pairs = [(first + index, first + index) for index in range(paired)]
    gone = list(range(first + paired, len(old) - last))
    return pairs, gone, list(range(first + paired, len(new) - last)), first + paired


def _names(items: list[Json]) -> dict[str, int] | None:
    names = [item.get("name") if isinstance(item, Mapping) else None for item in items]
    if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        return None
    return {str(name): index for index, name in enumerate(names)}
