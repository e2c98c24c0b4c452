"""Ignored parts of a store: hidden folders, editors' leftovers, and the paths of `.reconcilerignore`.

The same rules hold for a directory and for a commit.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TYPE_CHECKING, Final, NamedTuple

from reconciler.model.fleet import StoreFile
from reconciler.model.problem import Problem, Source

if TYPE_CHECKING:
    from reconciler.adapters.store.ignore_pattern import IgnorePattern

IGNORE_FILE: Final = ".reconcilerignore"
MAX_IGNORE_BYTES: Final = 65_536
MAX_PATTERNS: Final = 1_000
MAX_PATTERN: Final = 256
MAX_STARS: Final = 8


class IgnoreRules(NamedTuple):
    """The patterns of one ignore file, the last one first, and of those above it.

    `folder` ends in a slash, or is empty at the root. `per_name`, `per_path`: how many characters of patterns, of
    those above as well, are matched with names, and with paths.
    """

    folder: str
    patterns: tuple[IgnorePattern, ...]
    above: IgnoreRules | None = None
    per_name: int = 0
    per_path: int = 0

    def work(self, path: str) -> int:
        """Return the maximal cost of a question about a path, in characters of patterns times characters of names."""
        return self.per_name * (len(path) - path.rfind("/") - 1) + self.per_path * len(path)


def is_hidden_folder(name: str) -> bool:
    """Return whether a folder is never entered: `.git`, `.github`, `..data`."""
    return name.startswith(".")


def is_leftover(name: str) -> bool:
    """Return whether an editor or file system left it: `#x.yaml#`, `.#x.yaml`, `x.yaml~`, `.x.yaml.swp`, `._x.yaml`."""
    return name.startswith((".#", "._", "#")) or name.endswith(("~", ".swp", ".swo", ".swx", "#"))


def with_rules(above: IgnoreRules | None, folder: str, text: bytes) -> tuple[IgnoreRules, tuple[Problem, ...]]:
    """The rules inside a folder that has an ignore file. A pattern that is refused is a problem, the others hold."""
    # Imported here: most stores have no ignore file, and the expressions need a compiler.
    from reconciler.adapters.store.ignore_pattern import parse_pattern  # noqa: PLC0415

    below = f"{folder}/" if folder else ""
    patterns: list[IgnorePattern] = []
    problems: list[Problem] = []
    for number, line in enumerate(text.decode("utf-8", errors="replace").splitlines(), start=1):
        refusal = _refusal(line, number)
        if not refusal and number <= MAX_PATTERNS:
            try:
                pattern = parse_pattern(line)
            except (ValueError, re.error) as error:
                refusal = f"not in gitignore syntax: {error}"
            else:
                patterns += [pattern] if pattern is not None else []
        if refusal:
            source = Source(below + IGNORE_FILE, number)
            problems.append(Problem(source=source, code="ignore-pattern-refused", message=refusal))
    per_path = sum(pattern.length for pattern in patterns if pattern.is_of_path)
    per_name = sum(pattern.length for pattern in patterns if not pattern.is_of_path)
    if above is not None:
        per_name, per_path = per_name + above.per_name, per_path + above.per_path
    return IgnoreRules(below, tuple(reversed(patterns)), above, per_name, per_path), tuple(problems)


def _refusal(line: str, number: int) -> str:
    if number > MAX_PATTERNS:
        return f"more than {MAX_PATTERNS:,} lines" if number == MAX_PATTERNS + 1 else ""
    if len(line) > MAX_PATTERN:
        return f"a pattern is at most {MAX_PATTERN} characters long"
    if not line.startswith("#") and len(re.findall(r"\*+", line)) > MAX_STARS:
        return f"a pattern has at most {MAX_STARS} stars; write several patterns"
    return ""


def is_ignored(rules: IgnoreRules | None, path: str, *, is_folder: bool) -> bool:
    """Return whether the nearest ignore file with a match excludes the path. Folders above it come beforehand."""
    name = path.rpartition("/")[2]
    while rules is not None:
        below = path[len(rules.folder) :]
        for pattern in rules.patterns:
            if pattern.folders_only and not is_folder:
                continue
            if pattern.expression.match(below if pattern.is_of_path else name):
                return pattern.excludes
        rules = rules.above
    return False


def is_ignore_file(path: str) -> bool:
    """Return whether a file of this path is an ignore file."""
    return path.rpartition("/")[2] == IGNORE_FILE


def without_doubtful(files: tuple[StoreFile, ...], remembered: Collection[str]) -> tuple[StoreFile, ...]:
    """Return the files without those that an ignore file, now unreadable, may have excluded so far.

    `remembered`: the formerly active paths; without any, nothing is left out.
    """
    folders = tuple(file.path.removesuffix(IGNORE_FILE) for file in files if file.faults and is_ignore_file(file.path))
    if not folders or not remembered:
        return files
    return tuple(file for file in files if file.faults or file.path in remembered or not file.path.startswith(folders))
