"""Limits that are checked before anything recursive reads a file, and the error of a violation.

libyaml is quadratic in flow nesting and both it and PyYAML's composer recurse in C, so 100 KB of brackets would end the
process: depth is bounded by a streaming pass over events, which stops at the limit. The pass costs as much as the
parse, so only files that could be deep or huge (by counting bytes) pay for it.
"""

from __future__ import annotations

import re
from typing import Final

from yaml import YAMLError
from yaml._yaml import CParser
from yaml.error import MarkedYAMLError
from yaml.events import (
    AliasEvent,
    CollectionEndEvent,
    CollectionStartEvent,
    Event,
    ScalarEvent,
)
from yaml.reader import ReaderError

from reconciler.regex import regex
from reconciler.yaml.syntax_errors import syntax_error

MAX_BYTES: Final = 4 * 2**20
MAX_DOCUMENTS: Final = 10_000
MAX_DEPTH: Final = 100
MAX_NODES: Final = 300_000
"""Scalars, lists and mappings of a document, aliases written out. Kubernetes stores objects up to 1.5 MB."""
MAX_DIRECTIVES: Final = 16

_CHEAP_BRACKETS: Final = 1_000
_CHEAP_DASHES: Final = 2_000
_CHEAP_TOKENS: Final = 100_000
_SEPARATOR: Final = regex(rb"^---(?=[ \t\r\n]|$)", re.MULTILINE)
_BIDI: Final = regex("[\u202a-\u202e\u2066-\u2069]")


class YamlRefused(ValueError):
    """A text that is not read. `line` counts from 1 within the text that was given; `code` is the problem's."""

    def __init__(self, code: str, message: str, line: int = 1) -> None:
        """Keep the place and the code beside the message."""
        super().__init__(message)
        self.code = code
        self.line = line


def check_file(data: bytes) -> None:
    """Return when the file as a whole may be read: size, number of documents, directives, UTF-8.

    Raises:
        YamlRefused: it may not.
    """
    if len(data) > MAX_BYTES:
        raise YamlRefused("file-too-large", f"more than {MAX_BYTES:,} bytes; split the file", 0)
    # Small files cannot hold so many documents, and most have no percent sign: then nothing is counted.
    if len(data) > MAX_DOCUMENTS and data.count(b"\n---") > MAX_DOCUMENTS:
        raise YamlRefused("too-many-documents", f"more than {MAX_DOCUMENTS:,} documents; split the file", 0)
    if (
        b"%" in data
        and data.count(b"\n%") > MAX_DIRECTIVES
        and len(re.findall(rb"^%", data, re.MULTILINE)) > MAX_DIRECTIVES
    ):
        raise YamlRefused("too-many-directives", f"more than {MAX_DIRECTIVES} lines begin with %", 0)


def check_encoding(data: bytes) -> None:
    """Return when the bytes are UTF-8.

    Raises:
        YamlRefused: with the line of the first byte that is not.
    """
    if data.isascii():
        return
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise YamlRefused(
            "not-utf-8", f"byte 0x{data[error.start]:02x} is not UTF-8; save the file as UTF-8", line
        ) from error


def bidi_line(data: bytes) -> int:
    """The first line with a character that reorders text on the screen, so that a reviewer sees other than is read."""
    if data.isascii() or (b"\xe2\x80" not in data and b"\xe2\x81" not in data):
        return 0
    text = data.decode("utf-8", errors="replace")
    match = _BIDI.search(text)
    return text.count("\n", 0, match.start()) + 1 if match else 0


def check_shape(data: bytes) -> None:
    """Return when the text is neither too deep nor too large to compose; streams over events where that is unsure.

    Raises:
        YamlRefused: it is, or it is no YAML (found on the way).
    """
    is_shallow = data.count(b"[") + data.count(b"{") <= _CHEAP_BRACKETS
    is_plain = data.count(b"-") + data.count(b"? ") + data.count(b"?\t") <= _CHEAP_DASHES
    # Nearly all files are shorter than that, and need not be counted.
    is_small = len(data) <= _CHEAP_TOKENS or data.count(b"\n") + data.count(b",") + data.count(b":") <= _CHEAP_TOKENS
    if is_shallow and is_plain and is_small:
        return
    try:
        _stream(CParser(data))
    except YAMLError as error:
        raise refused(error, data) from error


def _stream(parser: CParser) -> None:
    depth = nodes = 0
    while parser.check_event():
        event = parser.get_event()
        if isinstance(event, CollectionStartEvent):
            depth += 1
            nodes += 1
        elif isinstance(event, CollectionEndEvent):
            depth -= 1
        elif isinstance(event, ScalarEvent | AliasEvent):
            nodes += 1
        if depth > MAX_DEPTH:
            raise too_deep(_event_line(event))
        if nodes > MAX_NODES:
            raise YamlRefused("too-many-nodes", f"more than {MAX_NODES:,} values; split it", _event_line(event))


def _event_line(event: Event | None) -> int:
    return event.start_mark.line + 1 if event is not None and event.start_mark is not None else 1


def too_deep(line: int) -> YamlRefused:
    """Return the refusal of a value nested too deeply."""
    return YamlRefused("too-deep", f"nested deeper than {MAX_DEPTH} levels", line)


def refused(error: YAMLError, data: bytes) -> YamlRefused:
    """Return libyaml's error as ours, with its line and a hint."""
    if isinstance(error, ReaderError):
        # libyaml reports a byte offset for encodings, and a character offset for characters that YAML forbids.
        line = data.count(b"\n", 0, min(max(error.position, 0), len(data))) + 1
        return YamlRefused("control-character", f"{error.reason}: write it as an escape in double quotes", line)
    if isinstance(error, MarkedYAMLError) and error.problem_mark is not None:
        return YamlRefused("yaml-syntax", *syntax_error(error, data))
    return YamlRefused("yaml-syntax", str(error))


def parts(data: bytes) -> list[tuple[int, bytes]]:
    """The documents of a stream as (line before it, text), cut where a line begins with `---`.

    YAML itself ends every construct there, so one broken document does not hide the others.
    """
    starts = [match.start() for match in _SEPARATOR.finditer(data)]
    if not starts or data[: starts[0]].strip():
        starts.insert(0, 0)
    bounds = zip(starts, [*starts[1:], len(data)], strict=True)
    cut = []
    line, counted = 0, 0
    for start, end in bounds:
        line += data.count(b"\n", counted, start)
        counted = start
        cut.append((line, data[start:end]))
    return cut
