"""Limits that are checked before anything recursive reads a file, and remedies for syntax errors of YAML.

libyaml is quadratic in flow nesting and both it and PyYAML's composer recurse in C, so 100 KB of brackets would end the
process: depth is bounded by a streaming pass over events, which stops at the limit. The pass costs as much as the
parse, so only files that could be deep or huge (by counting bytes) pay for it. libyaml reports where it stopped, which
is often the line after the mistake.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from yaml import YAMLError
from yaml._yaml import CParser
from yaml.error import Mark, MarkedYAMLError
from yaml.events import AliasEvent, CollectionEndEvent, CollectionStartEvent, ScalarEvent
from yaml.reader import ReaderError

from reconciler.regex import regex

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
        super().__init__(message)
        self.code = code
        self.line = line


def check_file(data: bytes) -> None:
    """Return when the file as a whole may be read: size, number of documents, directives, UTF-8.

    Raises YamlRefused: it may not.
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
    """Return when the bytes are UTF-8. Raises YamlRefused: with the line of the first byte that is not."""
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

    Raises YamlRefused: it is, or it is no YAML (found on the way).
    """
    is_shallow = data.count(b"[") + data.count(b"{") <= _CHEAP_BRACKETS
    is_plain = data.count(b"-") + data.count(b"? ") + data.count(b"?\t") <= _CHEAP_DASHES
    # Nearly all files are shorter than that, and need not be counted.
    is_small = len(data) <= _CHEAP_TOKENS or data.count(b"\n") + data.count(b",") + data.count(b":") <= _CHEAP_TOKENS
    if is_shallow and is_plain and is_small:
        return
    depth = nodes = 0
    try:
        parser = CParser(data)
        while parser.check_event():
            event: Any = parser.get_event()
            if isinstance(event, CollectionStartEvent):
                depth += 1
                nodes += 1
            elif isinstance(event, CollectionEndEvent):
                depth -= 1
            elif isinstance(event, ScalarEvent | AliasEvent):
                nodes += 1
            if depth > MAX_DEPTH:
                raise too_deep(event.start_mark.line + 1)
            if nodes > MAX_NODES:
                line = event.start_mark.line + 1
                raise YamlRefused("too-many-nodes", f"more than {MAX_NODES:,} values; split it", line)
    except YAMLError as error:
        raise refused(error, data) from error


def too_deep(line: int) -> YamlRefused:
    """Return the refusal of a value nested too deeply."""
    return YamlRefused("too-deep", f"nested deeper than {MAX_DEPTH} levels", line)


def refused(error: YAMLError, data: bytes) -> YamlRefused:
    """Return libyaml's error as ours, with its line and a hint."""
    if isinstance(error, ReaderError):
        # libyaml reports a byte offset for encodings, and a character offset for characters that YAML forbids.
        line = data.count(b"\n", 0, min(max(error.position, 0), len(data))) + 1
        tip = "save the file as UTF-8" if b"\0" in data else "write it as an escape in double quotes"
        return YamlRefused("control-character", f"{error.reason}: {tip}", line)
    if not isinstance(error, MarkedYAMLError) or error.problem_mark is None:
        return YamlRefused("yaml-syntax", str(error))
    if conflict := _CONFLICT.search(data):
        message = "a merge conflict is not resolved; keep one side of it, and take the markers out"
        return YamlRefused("yaml-syntax", message, data.count(b"\n", 0, conflict.start()) + 1)
    lines = data.decode("utf-8", errors="replace").splitlines()
    remedy, line = _remedy(str(error.problem), error.problem_mark, error.context_mark, lines)
    context = f" {error.context}" if error.context else ""
    text = f"{error.problem}{context}" + (f"; {remedy}" if remedy else "")
    return YamlRefused("yaml-syntax", text, line + 1)


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


_CONFLICT: Final = regex(rb"^(?:<{7} |>{7} |\|{7} |={7}\r?$)", re.MULTILINE)
_DASHES: Final = regex(r"\s*(?:- +)*")
_NO_SPACE: Final = regex(r"\s*-[A-Za-z]")
_COLON: Final = "write ':' and a space after the key"
_MUST_BE_QUOTED: Final = "quote a value that begins with {}"

_REMEDIES: Final = {
    "undefined alias": "*NAME repeats what &NAME marks above it",
    "expected node content": "a value is missing, or the bracket is not closed",
    "unknown escape character": "write each backslash twice, or use single quotes",
    "tab character": "indent with spaces",
    "cannot start any token": "indent with spaces",
    "expected <document start>": "a line --- begins a new document",
}
"""Remedies of errors at the place where libyaml stops, by a part of its message."""


def _remedy(problem: str, mark: Mark, begun: Mark | None, lines: Sequence[str]) -> tuple[str, int]:
    """Return what a person would change, empty if that is unknown, and in which line."""
    here = lines[mark.line] if mark.line < len(lines) else ""
    if any("{{" in line for line in lines[max(0, mark.line - 1) : mark.line + 1]):
        return "render templates first ('reconciler hydrate'), and list them in .reconcilerignore", mark.line
    if "cannot start any token" in problem and here[mark.column : mark.column + 1] != "\t":
        return _MUST_BE_QUOTED.format(here[mark.column : mark.column + 1]), mark.line
    if "alphabetic or numeric character" in problem:
        return _MUST_BE_QUOTED.format(here[: mark.column].rstrip()[-1:] or "* or &"), mark.line
    for part, remedy in _REMEDIES.items():
        if part in problem:
            return remedy, mark.line
    for number in (mark.line, mark.line - 1, begun.line if begun is not None else mark.line):
        near = "".join(lines[number : number + 1])
        if "\xa0" in near or _NO_SPACE.match(near):
            missing = "a list item needs a space after its dash"
            return "write a space in place of the no-break space" if "\xa0" in near else missing, number
    if begun is not None:
        rest = "".join((here[mark.column + 1 :], *lines[mark.line + 1 :])).strip()
        is_separator = begun.line < len(lines) and not lines[begun.line].strip(" -")
        for part, remedy, line in (
            ("could not find expected ':'", "a line --- separates documents" if is_separator else _COLON, begun.line),
            ("unexpected end of stream", "the quote that begins here is not closed", begun.line),
            ("',' or", "a ',' is missing, or the bracket is not closed", mark.line if rest else begun.line),
        ):
            if part in problem:
                return remedy, line
    if "mapping values are not allowed" in problem and here[: mark.column].strip().count(": "):
        return "quote the value: it holds a colon and a space", mark.line
    tip = "check the indentation here and above" if "expected key" in problem else ""
    return _levels(lines, mark.line) or tip, mark.line


def _levels(lines: Sequence[str], number: int) -> str:
    """Return the indentation of a line, and those that lines before it allow; empty if it is one of these."""
    if number >= len(lines) or not lines[number].strip():
        return ""
    indent = len(lines[number]) - len(lines[number].lstrip(" "))
    allowed: list[int] = []
    for line in reversed(lines[:number]):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        first = len(line) - len(line.lstrip(" "))
        content = _DASHES.match(line)
        columns = {first, content.end() if content is not None else first}
        allowed += [column for column in columns if not allowed or column < min(allowed)]
    if indent in allowed:
        return ""
    near = sorted(sorted(set(allowed), key=lambda column: abs(column - indent))[:2])
    levels = " or ".join(map(str, near))
    return f"it is indented by {indent}, where {levels} would go on with what is above" if near else ""
