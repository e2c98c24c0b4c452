"""Markdown pages as tests see them: code blocks with the heading above, commands, links.

Conventions of the pages. A `console` block holds commands after `$ ` with their output below; `…` stands for any text,
alone on a line for any lines. A section that has the words **Needs clusters.** before a block needs clusters for what
comes after. A line that is only a file name in code and a colon says where the YAML block below it is written to.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

ROOT = Path(__file__).resolve().parents[2]
TOP = tuple(ROOT / f"{name}.md" for name in ("README", "CHANGELOG", "CONTRIBUTING", "SECURITY"))
PAGES = tuple(path.relative_to(ROOT).as_posix() for path in (*TOP, *sorted((ROOT / "docs").rglob("*.md"))))
NEEDS_CLUSTERS = "**Needs clusters.**"
_FENCE = re.compile(r"```(\w*)$")
_FILE = re.compile(r"`([\w./-]+)`:$")
_HEADING = re.compile(r"(#+) (.+)")
_ANCHOR = re.compile(r'<a id="([^"]+)"></a>')
_LINK = re.compile(r"\[[^]]*\]\(([^)\s]+)\)")


class Block(Struct, frozen=True, kw_only=True):
    """A fenced block. `file`: where the line above says that it is written to; empty: nowhere."""

    page: str
    line: int
    language: str
    text: str
    needs_clusters: bool
    file: str


class Command(Struct, frozen=True, kw_only=True):
    """A command of a console block with the output that the page promises; None when it shows none."""

    text: str
    output: tuple[str, ...] | None
    line: int


def blocks(page: str) -> Iterator[Block]:
    language, begin, held = "", 0, list[str]()
    needs_clusters, level, file = False, 0, ""
    inside = False
    for number, line in enumerate((ROOT / page).read_text(encoding="utf-8").splitlines(), 1):
        fence = _FENCE.match(line)
        if inside and line == "```":
            yield Block(
                page=page,
                line=begin,
                language=language,
                text="\n".join(held) + "\n",
                needs_clusters=needs_clusters,
                file=file,
            )
            inside, file = False, ""
        elif inside:
            held.append(line)
        elif fence:
            inside, language, begin, held = True, fence[1], number, []
        elif heading := _HEADING.match(line):
            if needs_clusters and len(heading[1]) <= level:
                needs_clusters = False
            level = len(heading[1]) if not needs_clusters else level
        elif NEEDS_CLUSTERS in line:
            needs_clusters = True
        elif line.strip():
            named = _FILE.match(line)
            file = named[1] if named else ""


def commands(block: Block) -> Iterator[Command]:
    text, output, begin = "", list[str](), 0
    for number, line in enumerate([*block.text.splitlines(), "$ "], block.line + 1):
        if line.startswith("$ "):
            if text:
                yield Command(text=text, output=tuple(output) or None, line=begin)
            text, output, begin = line[2:], [], number
        elif text.endswith("\\"):
            text = f"{text[:-1]}{line.lstrip()}"
        else:
            output.append(line)


def links(page: str) -> Iterator[tuple[int, str]]:
    """Line and target of every link outside of code."""
    inside = False
    for number, line in enumerate((ROOT / page).read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("```"):
            inside = not inside
        elif not inside:
            for found in _LINK.finditer(re.sub(r"`[^`]*`", "", line)):
                yield number, found[1]


def anchors(page: Path) -> set[str]:
    """Return the anchors of the page: of headings and of `<a id="…"></a>`."""
    return {*heading_anchors(page), *named_anchors(page)}


def heading_anchors(page: Path) -> list[str]:
    """The anchors that headings make, in order."""
    lines = page.read_text(encoding="utf-8").splitlines()
    headings = [heading[2] for line in lines if (heading := _HEADING.match(line))]
    return [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]


def named_anchors(page: Path) -> list[str]:
    """The anchors that stand as `<a id="…"></a>`, in order."""
    return _ANCHOR.findall(page.read_text(encoding="utf-8"))


def shows(promised: tuple[str, ...], printed: str) -> str:
    """The first promised line that the output lacks, in order; empty when all are there. Widths of gaps are free."""
    lines = iter([" ".join(line.split()) for line in printed.splitlines()])
    for line in promised:
        if line == "…":
            continue
        pattern = re.compile(".*".join(re.escape(part) for part in " ".join(line.split()).split("…")))
        if not any(pattern.fullmatch(found) for found in lines):
            return line
    return ""
