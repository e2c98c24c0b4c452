"""Refuse commit subjects that are not `area: verb object`, as in `writer: do not cancel sibling writes`.

Usage: python scripts/check_subjects.py [MESSAGE_FILE]

With a file, as the commit-msg hook gives it, its first line is judged; without one, the subject of each commit whose
parent has this check. Merges, releases and reverts are left alone. Exit code 1: a subject has another form.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pygit2
from pygit2.enums import SortMode

ROOT: Final = Path(__file__).resolve().parent.parent
CHECK: Final = "scripts/check_subjects.py"
FORM: Final = re.compile(r"[a-z][a-z0-9 ,/_.-]*: [a-z].*[^.]|(Merge|Release|Revert|fixup!|squash!) .+")


def is_in_form(subject: str) -> bool:
    """Return whether a subject has an area, a colon and a small letter, and no full stop."""
    return FORM.fullmatch(subject) is not None


def subjects(repository: pygit2.Repository) -> Iterator[str]:
    """Yield the subject of each commit, newest first, up to the one that brought this check."""
    for commit in repository.walk(repository.head.target, SortMode.TOPOLOGICAL):
        if len(commit.parents) != 1:
            continue
        if CHECK not in commit.parents[0].tree:
            return
        yield commit.message.partition("\n")[0]


def main(arguments: list[str]) -> int:
    """Print each subject that has another form; 1 when there is one."""
    if arguments:
        found = [Path(arguments[0]).read_text(encoding="utf-8").partition("\n")[0]]
    elif (ROOT / ".git").exists() and not (repository := pygit2.Repository(str(ROOT))).is_shallow:
        found = list(subjects(repository))
    else:
        found = []
    wrong = [subject for subject in found if not is_in_form(subject)]
    for subject in wrong:
        sys.stdout.write(f"{subject!r} is not of the form 'area: verb object'\n")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
