"""The test that holds a page to what it promises: pages in pieces, maps of promises to tests, names of tests.

A map in `tests/docs/promises/` belongs to one page. Under `promises`, `says` quotes a sentence, a clause, a row of a
table or several of them, and `tests` names what would fail if it were not so: `tests/….py::test_name` or
`tests/cases/….yaml#name of the case`. Under `explains` stands what promises nothing: definitions, examples, the way
to other pages. Headings and code blocks are nobody's promise; what commands print is compared by `test_pages.py`. Pages
of the reference name tests in their last column: `` `file`: case; another case ``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from msgspec import Struct, ValidationError, convert

from tests.docs.pages import ROOT

MAPS = ROOT / "tests/docs/promises"
_BEGINS_A_PIECE = re.compile(r"\s*(?:[-*] |\d+\. |\|)")
_RULE_OF_A_TABLE = re.compile(r"\|[\s|:-]+\|")
_IN_A_CELL = re.compile(r"`((?:tests/)?[a-z_/]+/[\w-]+\.(?:yaml|py))`(?:: ([^|`]+))?")
_WORD = re.compile(r"\w")
_NOT_IN_NAMES = re.compile(r"\W+")


class Promise(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Words of a page and the tests that would fail if they were not so."""

    says: str
    tests: tuple[str, ...]


class PromiseMap(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    page: str
    promises: tuple[Promise, ...]
    explains: tuple[str, ...] = ()

    def quotations(self) -> tuple[str, ...]:
        """All words of the page that are accounted for."""
        return (*(_plain(promise.says) for promise in self.promises), *map(_plain, self.explains))


class Piece(Struct, frozen=True, kw_only=True):
    """A paragraph, an item of a list or a row of a table, with single blanks; the line it begins at."""

    line: int
    text: str


@cache
def maps() -> tuple[PromiseMap, ...]:
    """Every map, in the order of file names."""
    return tuple(_map(path) for path in sorted(MAPS.glob("*.yaml")))


def _map(path: Path) -> PromiseMap:
    try:
        return convert(_loaded(path), PromiseMap)
    except ValidationError as error:
        error.add_note(f"in {path.relative_to(ROOT)}; a name with `: ` in it needs quotes")
        raise


def pieces(markdown: str) -> Iterator[Piece]:
    """The pieces of a page, without code blocks, headings and heads of tables."""
    lines = markdown.splitlines()
    begin, held, inside = 0, list[str](), False
    for number, line in enumerate([*lines, ""], 1):
        fence = line.lstrip().startswith("```")
        is_head = number < len(lines) and line.startswith("|") and bool(_RULE_OF_A_TABLE.fullmatch(lines[number]))
        ends = fence or inside or is_head or not line.strip() or line.startswith("#") or _BEGINS_A_PIECE.match(line)
        if held and ends:
            yield Piece(line=begin, text=_plain(" ".join(held)))
            held = []
        inside ^= fence
        if fence or inside or is_head or not line.strip() or line.startswith("#") or _RULE_OF_A_TABLE.fullmatch(line):
            continue
        begin = begin if held else number
        held.append(line)


def unaccounted(piece: Piece, quotations: tuple[str, ...]) -> list[str]:
    """The parts of a piece with words in them that no quotation covers."""
    covered = bytearray(len(piece.text))
    for quotation in quotations:
        begin = piece.text.find(quotation)
        if begin >= 0:
            covered[begin : begin + len(quotation)] = b"\1" * len(quotation)
    rest = "".join("\0" if is_covered else letter for letter, is_covered in zip(piece.text, covered, strict=True))
    return [part.strip() for part in re.split("\0+", rest) if _WORD.search(re.sub(r"^\s*\d+\. ", "", part))]


def named_in(cell: str) -> list[str]:
    """The tests that a cell names, in the form of maps. A file alone is given without a test."""
    found = []
    for match in _IN_A_CELL.finditer(cell):
        file, names = match[1], [name.strip().rstrip(",.") for name in (match[2] or "").split(";")]
        path = file if file.startswith("tests/") else f"tests/cases/{file}"
        found += [_named(path, name) for name in names if name and not name.startswith("[")] or [path]
    return found


def _named(path: str, words: str) -> str:
    return f"{path}::test_{_NOT_IN_NAMES.sub('_', words)}" if path.endswith(".py") else f"{path}#{words}"


def fault_of(test: str) -> str:
    """Return why the name of a test leads nowhere; empty if it exists."""
    separator = "::" if ".py" in test else "#"
    file, _, name = test.partition(separator)
    path = ROOT / file
    if not path.is_file():
        return f"there is no file {file}"
    if not name:
        return f"{file} is a file: name the test in it ({file}{separator}…)"
    if name not in (_functions(path) if separator == "::" else _cases(path)):
        return f"{file} has no {'test' if separator == '::' else 'case'} {name!r}"
    return ""


@cache
def _functions(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    bodies = [tree.body, *(node.body for node in tree.body if isinstance(node, ast.ClassDef))]
    found = [node for body in bodies for node in body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    return frozenset(node.name for node in found if node.name.startswith("test_") and not _is_left_out(node))


def _is_left_out(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return whether the test cannot fail, since it is skipped or expected to."""
    marks = {
        part.attr for found in function.decorator_list for part in ast.walk(found) if isinstance(part, ast.Attribute)
    }
    return bool(marks & {"skip", "xfail"})


@cache
def _cases(path: Path) -> frozenset[str]:
    """The names of the cases of a table: a list of mappings, or such lists under keys."""
    content = _loaded(path)
    lists = content.values() if isinstance(content, dict) else [content]
    cases = [case for cases in lists if isinstance(cases, list) for case in cases if isinstance(case, dict)]
    return frozenset(str(case[key]) for case in cases for key in ("case", "name", "rule", "loss") if key in case)


def _loaded(path: Path) -> Any:
    return yaml.load(path.read_bytes(), yaml.CSafeLoader)


def _plain(text: str) -> str:
    return " ".join(text.split())
