"""The usual YAML of Kubernetes, read line by line: in a third of the time that libyaml's nodes take.

Usual is block style: a key or an item a line, values that are plain, quoted, in flow style on their line, or a literal
text. A value that deserves a note is usual, too: most charts have a mode in octal. Of everything else (anchors, tags,
escapes, folding, tabs, keys that surprise, every fault) this reader judges nothing: it says None for the whole file,
and `nodes` reads it. Source: ADR 11.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final, NamedTuple

from reconciler.api.content import Json
from reconciler.regex import regex
from reconciler.yaml.nodes import KEYS, Note, remark_of
from reconciler.yaml.scalars import MAX_MEMO_TEXT, key_text, plain_value, remember, surprise
from reconciler.yaml.yaml_limits import MAX_NODES, YamlRefused

_SMALL_BYTES: Final = 50_000
"""A file this short cannot hold more values than are read, whatever its content."""
_MAX_DEPTH: Final = 50
_MAX_FLOW_DEPTH: Final = 10
_MAX_LINES: Final = 10_000

_unusual = cache(lambda: regex("[^\n -~\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"))
"""Characters that YAML forbids, line breaks but for \\n, tabs, byte order marks. Compiled for the first text that
is not ASCII: so many ranges take 3 ms."""
_USUAL_ASCII: Final = bytes((10, *range(32, 127)))
_LINE: Final = regex(r"( *)(- +)?(?:([A-Za-z0-9_/.][A-Za-z0-9_/.-]{0,200}):(?: +|$))?(.*)", re.ASCII)
"""Indentation, dash, key, and the rest."""
_QUOTED: Final = regex(r"""(?:"([^"\\]*)"|'([^']*)') *(?: #.*)?""")
_NO_PLAIN_START: Final = frozenset("?:,[]{}#&*!|>'\"%@`")
_TOKEN: Final = regex(
    r"""\ *(?:("[^"\\]*"|'[^']*')|([A-Za-z0-9_/.][A-Za-z0-9_/.-]*)(?:(:)\ +)?|([\[\]{},]))""", re.ASCII | re.VERBOSE
)
"""In flow style: quoted text, plain text, the colon that makes it a key, a bracket or comma."""
_END: Final = regex(r" *(?: #.*)?")


class _Unsure(Exception):
    """There is something in the file that is left to the other reader."""


class _LateValue(NamedTuple):
    """Placeholder for a value that is made again each time, continues on later lines, or has a remark."""

    value: Json = None
    remarks: tuple[Note, ...] = ()


_NESTED, _CLIPPED, _STRIPPED = _LateValue(), _LateValue(), _LateValue()
_LATE: Final = {"": _NESTED, "|": _CLIPPED, "|-": _STRIPPED}

_Line = tuple[int, int, str | None, Any]
"""Indentation, the column after a dash (-1: there is none), key, and value or `_LateValue`."""

_Document = tuple[int, dict[str, Json], list[Note]]
"""The line where it begins (from 1), its value, and its remarks."""

_lines: dict[str, _Line | None] = {}
"""Recent lines, since most of a store's lines occur many times. None: blank, or a comment."""
_earlier_lines: dict[str, _Line | None] = {}
"""Lines seen before these: recurring ones outlive the many that occur in one file only."""
_values: dict[str, Any] = {}
"""Texts after a key with their values. Values are immutable, so sharing is safe."""
_UNSEEN: Final = object()


def read_block(data: bytes) -> list[_Document] | None:
    """Line (from 1), value and notes of each document with content; None when something in the file is not usual."""
    if not data.endswith(b"\n") or (len(data) > _SMALL_BYTES and _most_nodes(data) > MAX_NODES):
        return None
    if b"\r" in data:
        # YAML reads both line ends as one. A carriage return alone is not usual, and is found below.
        data = data.replace(b"\r\n", b"\n")
    try:
        text = data.decode()
        # Deleting the usual from ASCII is ten times as quick as a search for the unusual.
        is_usual = not data.translate(None, _USUAL_ASCII) if text.isascii() else not _unusual().search(text)
        return _documents(text.split("\n")) if is_usual else None
    except (UnicodeDecodeError, _Unsure):
        return None


def _most_nodes(data: bytes) -> int:
    """No less than the values that usual text of this shape may hold, as `check_shape` counts them.

    A line holds a list, a mapping, a key and a value at most, and in flow style three more after a bracket or comma.
    """
    return 4 * data.count(b"\n") + 3 * (data.count(b",") + data.count(b"[") + data.count(b"{"))


def _documents(lines: list[str]) -> list[_Document]:
    documents = []
    number, end = 0, len(lines)
    while number < end:
        if lines[number] == "---" or _read_line(lines[number]) is None:
            number += 1
        else:
            begins = number + 1
            notes: list[Note] = []
            number, body = _document(lines, number, notes)
            documents.append((begins, body, notes))
    return documents


def _document(lines: list[str], number: int, notes: list[Note]) -> tuple[int, dict[str, Json]]:
    """Return the line after a document that begins at `number`, and its value; add remarks to `notes`."""
    # One loop without a call for a line that was seen before: this is where a cold start spends its time.
    known = _lines
    root: dict[str, Json] = {}
    box: Any = root  # The innermost mapping or list, whose entries begin in the column `at`.
    at = 0
    awaiting: str | None = None  # The key in `box` whose value may follow.
    outer: list[tuple[int, Any]] = []
    end = len(lines)
    while number < end and (text := lines[number]) != "---":
        number += 1
        try:
            line = known[text]
        except KeyError:
            line = _read_line(text)
        if line is None:
            continue
        indent, column, key, value = line
        if awaiting is not None and (indent > at or (indent == at and column >= 0)):
            outer.append((at, box))
            below: Any = {} if column < 0 else []
            box[awaiting] = below
            at, box = indent, below
        awaiting = None
        while (at > indent or (column < 0 and box.__class__ is list)) and outer:
            at, box = outer.pop()
        if at != indent or (box.__class__ is list) != (column >= 0) or len(outer) > _MAX_DEPTH:
            raise _Unsure
        if key is None:
            box.append(_with_notes(value, number, notes) if value.__class__ is _LateValue else value)
            continue
        if column >= 0:
            outer.append((at, box))
            below = {}
            box.append(below)
            at, box = column, below
        if key in box:
            raise _Unsure
        if value is _NESTED:
            box[key], awaiting = None, key
        elif value is _CLIPPED or value is _STRIPPED:
            number, box[key] = _literal(lines, number, at, value)
        else:
            box[key] = _with_notes(value, number, notes) if value.__class__ is _LateValue else value
    return number, root


def _with_notes(late: _LateValue, number: int, notes: list[Note]) -> Json:
    notes.extend([remark._replace(line=number) for remark in late.remarks])
    return _copied(late.value)


def _copied(value: Json) -> Json:
    if value.__class__ is dict:
        return {key: _copied(item) for key, item in value.items()}
    return [_copied(item) for item in value] if value.__class__ is list else value


def _literal(lines: list[str], number: int, at: int, late: _LateValue) -> tuple[int, str]:
    """The line after a literal text of a key in the column `at`, and the text."""
    first = lines[number]
    width = len(first) - len(first.lstrip(" "))
    if width <= at or width == len(first):
        raise _Unsure
    prefix, end = first[:width], len(lines)
    rows = []
    while number < end:
        line = lines[number]
        if line.startswith(prefix):
            rows.append(line[width:])
        elif line.strip(" "):
            break
        else:
            rows.append("")
        number += 1
    text = "\n".join(rows).rstrip("\n")
    return number, text + "\n" if late is _CLIPPED else text


def _read_line(text: str) -> _Line | None:
    line = _earlier_lines[text] if text in _earlier_lines else _new_line(text)
    if len(text) <= MAX_MEMO_TEXT:
        if len(_lines) >= _MAX_LINES:
            _earlier_lines.clear()
            _earlier_lines.update(_lines)
            _lines.clear()
        _lines[text] = line
    return line


def _new_line(text: str) -> _Line | None:
    match = _LINE.fullmatch(text)
    assert match is not None, "the pattern ends with anything"
    blanks, dash, key, rest = match.groups()
    if not key and not dash and (not rest or rest[0] == "#"):
        return None
    if key is not None:
        key = KEYS.get(key) or _new_key(key)
    value = _values.get(rest, _UNSEEN)
    if value is _UNSEEN:
        value = _new_value(rest)
    if key is None and (not dash or (value.__class__ is _LateValue and value.value is None)):
        raise _Unsure
    indent = len(blanks)
    return (indent, indent + len(dash) if dash else -1, key, value)


def _new_key(text: str) -> str:
    try:
        is_usual = key_text(text) == text and not surprise(text, is_key=True)
    except YamlRefused as error:
        raise _Unsure from error
    if not is_usual:
        raise _Unsure
    remember(KEYS, text, text)
    return text


def _new_value(text: str) -> Any:
    if text in _LATE or text[0] == "#":
        return _LATE.get(text, _NESTED)
    value: Any
    if text[0] in "\"'":
        match = _QUOTED.fullmatch(text)
        if match is None:
            raise _Unsure
        value = match[2] if match[1] is None else match[1]
    elif text[0] in "[{":
        remarks: list[Note] = []
        value_read, end = _flow(text, 0, 0, remarks)
        if not _END.fullmatch(text, end):
            raise _Unsure
        value = _LateValue(value_read, tuple(remarks))
    else:
        plain = text.partition(" #")[0].rstrip(" ")
        is_usual = plain[0] not in _NO_PLAIN_START and ": " not in plain and plain[-1] != ":"
        if not is_usual or plain == "-" or plain.startswith("- "):
            raise _Unsure
        value, remark = _plain(plain)
        if remark is not None:
            value = _LateValue(value, (remark,))
    remember(_values, text, value)
    return value


def _flow(text: str, start: int, depth: int, remarks: list[Note]) -> tuple[Json, int]:
    """Return a value in flow style that begins at `start`, and its end; add remarks to `remarks`."""
    match = _TOKEN.match(text, start)
    if match is None or match[3] or depth > _MAX_FLOW_DEPTH:
        raise _Unsure
    quoted, plain, _, sign = match.groups()
    if quoted:
        return quoted[1:-1], match.end()
    if plain:
        value, remark = _plain(plain)
        remarks += [remark] if remark is not None else []
        return value, match.end()
    if sign not in ("[", "{"):
        raise _Unsure
    box: Any = [] if sign == "[" else {}
    last, at = "]" if sign == "[" else "}", match.end()
    while True:
        match = _TOKEN.match(text, at)
        if match is not None and match[4] == last and not box:
            return box, match.end()
        if sign == "{":
            if match is None or not match[3]:
                raise _Unsure
            key, at = KEYS.get(match[2]) or _new_key(match[2]), match.end()
            if key in box:
                raise _Unsure
            box[key], at = _flow(text, at, depth + 1, remarks)
        else:
            item, at = _flow(text, at, depth + 1, remarks)
            box.append(item)
        match = _TOKEN.match(text, at)
        if match is None or match[4] not in (",", last):
            raise _Unsure
        at = match.end()
        if match[4] == last:
            return box, at


def _plain(text: str) -> tuple[Json, Note | None]:
    try:
        value = plain_value(text)
    except YamlRefused as error:
        raise _Unsure from error
    # A value equal to its text needs no remark.
    return value, None if value.__class__ is str else remark_of(text, value)
