"""What of a store is passed over: hidden folders, editors' leftovers, and what `.reconcilerignore` names.

The same rules hold for a directory and for a commit.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from reconciler.model.problem import Problem, Source

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

IGNORE_FILE: Final = ".reconcilerignore"
MAX_IGNORE_BYTES: Final = 65_536
_MAX_PATTERNS: Final = 1_000
_MAX_PATTERN: Final = 256
_MAX_STARS: Final = 4
"""Patterns become regular expressions; more stars than this could take for ever on a hostile name."""


class IgnoreRules(NamedTuple):
    """The patterns of one ignore file and of those above it. `folder` ends in a slash, or is empty at the root."""

    folder: str
    spec: GitIgnoreSpec
    above: IgnoreRules | None = None


def is_hidden_folder(name: str) -> bool:
    """Whether a folder is never entered: `.git`, `.github`, `..data`."""
    return name.startswith(".")


def is_leftover(name: str) -> bool:
    """Whether an editor or a file system left it: `#x.yaml#`, `.#x.yaml`, `x.yaml~`, `.x.yaml.swp`, `._x.yaml`."""
    return name.startswith((".#", "._", "#")) or name.endswith(("~", ".swp", ".swo", ".swx", "#"))


def with_rules(above: IgnoreRules | None, folder: str, text: bytes) -> tuple[IgnoreRules | None, tuple[Problem, ...]]:
    """The rules inside a folder that has an ignore file. A pattern that is refused is a problem, the others hold."""
    # Imported here: most stores have no ignore file.
    from pathspec import GitIgnoreSpec  # noqa: PLC0415

    below = f"{folder}/" if folder else ""
    patterns, problems = [], []
    for number, line in enumerate(text.decode("utf-8", errors="replace").splitlines(), start=1):
        refusal = _refusal(line, number)
        if refusal:
            source = Source(below + IGNORE_FILE, number)
            problems.append(Problem(source=source, code="ignore-pattern-refused", message=refusal))
        else:
            patterns.append(line)
    try:
        spec = GitIgnoreSpec.from_lines(patterns)
    except (ValueError, re.error) as error:
        source = Source(below + IGNORE_FILE)
        problem = Problem(source=source, code="ignore-pattern-refused", message=f"not in gitignore syntax: {error}")
        return above, (*problems, problem)
    return IgnoreRules(below, spec, above), tuple(problems)


def _refusal(line: str, number: int) -> str:
    if number > _MAX_PATTERNS:
        return f"more than {_MAX_PATTERNS:,} patterns" if number == _MAX_PATTERNS + 1 else ""
    if len(line) > _MAX_PATTERN:
        return f"a pattern is at most {_MAX_PATTERN} characters long"
    if not line.startswith("#") and len(re.findall(r"\*+", line)) > _MAX_STARS:
        return f"a pattern has at most {_MAX_STARS} stars; write several patterns"
    return ""


def is_ignored(rules: IgnoreRules | None, path: str, *, is_folder: bool) -> bool:
    """Whether the nearest ignore file with an opinion leaves the path out. Folders above it are judged beforehand."""
    while rules is not None:
        below = path[len(rules.folder) :]
        verdict = rules.spec.check_file(f"{below}/" if is_folder else below).include
        if verdict is not None:
            return verdict
        rules = rules.above
    return False
