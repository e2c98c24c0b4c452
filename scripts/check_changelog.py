"""Say whether CHANGELOG.md has its form, and a line for what commits change under reconciler/.

Usage: python scripts/check_changelog.py [--base REVISION]

A commit that changes nothing for users says so with the trailer `Changelog: none`. What is judged: the commits since
the merge base with REVISION (or CHANGELOG_BASE), else since the last commit that changed what the changelog says of its
newest release, else since this check is there. Tags are not asked, since many clones have none. A commit whose parent
did not have this check is never judged, so that older history and branches are left alone.

Exit codes: 0 in order, or nothing to judge it by (the reason is printed); 1 not in order; 2 the given base is no use.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tomllib
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import NamedTuple

import pygit2
from pygit2.enums import SortMode

SECTIONS = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")
UNRELEASED = "Unreleased"
CHECK = "scripts/check_changelog.py"
FILE = "CHANGELOG.md"
PROGRAM = "reconciler"
_RELEASE = re.compile(r"## \[?(Unreleased|\d+\.\d+\.\d+)\]?(?: - (\d{4}-\d{2}-\d{2}))?")


class Release(NamedTuple):
    """A version, or `Unreleased`, with the entries of each of its sections, each as one line."""

    name: str
    day: str
    sections: dict[str, list[str]]


class Changelog(NamedTuple):
    """The releases of the file, and the faults of its form."""

    releases: list[Release]
    faults: list[str]


def say(text: str) -> None:
    """Print one line."""
    sys.stdout.write(f"{text}\n")


class NoUse(Exception):
    """The base that was asked for cannot be compared with."""


def read(text: str) -> Changelog:
    """The releases of a text in the form of Keep a Changelog 1.1.0, in its order, and its faults with their lines."""
    found = Changelog([], [])
    entries: list[str] | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("## "):
            named = _RELEASE.fullmatch(line)
            if named is None:
                found.faults.append(f"{number}: {line!r} is neither Unreleased nor VERSION - YYYY-MM-DD")
            name, day = named.groups("") if named else (line[3:], "")
            found.releases.append(Release(name, day, {}))
            entries = None
        elif line.startswith("### "):
            entries = _begin_section(found, number, line[4:])
        elif found.releases and line.startswith("- ") and entries is not None:
            entries.append(line[2:].strip())
        elif found.releases and line.startswith("  ") and entries:
            entries[-1] += f" {line.strip()}"
        elif found.releases and line.strip() and not _is_prose(line, entries):
            found.faults.append(f"{number}: neither a heading nor an entry of a section: {line!r}")
    return found


def _is_prose(line: str, entries: list[str] | None) -> bool:
    """A word about a release before its first section, or the target of a link."""
    return (entries is None and not line.startswith(("-", "*", " ", "#"))) or re.match(r"\[[^]]+\]: ", line) is not None


def _begin_section(found: Changelog, number: int, name: str) -> list[str]:
    entries: list[str] = []
    if not found.releases:
        found.faults.append(f"{number}: section {name} belongs to no release")
        return entries
    sections = found.releases[-1].sections
    if name not in SECTIONS:
        found.faults.append(f"{number}: {name} is not one of {', '.join(SECTIONS)}")
    elif name in sections:
        found.faults.append(f"{number}: {found.releases[-1].name} has {name} twice")
    elif any(SECTIONS.index(other) > SECTIONS.index(name) for other in sections if other in SECTIONS):
        found.faults.append(f"{number}: the order of sections is {', '.join(SECTIONS)}")
    return sections.setdefault(name, entries)


def faults(text: str, version: str) -> list[str]:
    """Return the faults of a changelog's form. `version`: the program's, which is the newest release there."""
    releases, found = read(text)
    if not text.startswith("# Changelog\n"):
        found.append("1: the title is '# Changelog'")
    if [release.name for release in releases].count(UNRELEASED) != 1 or releases[0].name != UNRELEASED:
        found.append(f"'## {UNRELEASED}' stands above the releases, once")
    if releases and releases[0].day:
        found.append(f"{UNRELEASED} has no date yet")
    released = [release for release in releases if re.fullmatch(r"\d+\.\d+\.\d+", release.name)]
    found += [f"{release.name} has no day that is one" for release in released if not _is_day(release.day)]
    found += [
        f"{release.name}: section {name} is empty"
        for release in releases
        for name, entries in release.sections.items()
        if not entries
    ]
    numbers = [tuple(map(int, release.name.split("."))) for release in released]
    days = [release.day for release in released]
    if numbers != sorted(set(numbers), reverse=True) or days != sorted(days, reverse=True):
        found.append("the newest release comes first")
    if released and released[0].name != version:
        found.append(f"the newest release is {released[0].name}, the version in pyproject.toml is {version}")
    return found


def _is_day(text: str) -> bool:
    try:
        return bool(date.fromisoformat(text))
    except ValueError:
        return False


def new_entries(before: str, after: str) -> set[str]:
    """The entries of `after`, in what was not released in `before`, that `before` does not have."""
    old = read(before).releases
    known = {entry for release in old for entries in release.sections.values() for entry in entries}
    done = {release.name for release in old} - {UNRELEASED}
    fresh = [release for release in read(after).releases if release.name not in done]
    return {entry for release in fresh for entries in release.sections.values() for entry in entries} - known


def untold(repository: pygit2.Repository, base: pygit2.Oid | None) -> list[pygit2.Commit]:
    """The commits since the base, oldest first, that need a line, when the changelog got none since; else none."""
    judged = list(_judged(repository, base))
    unmarked = [commit for commit in judged if not _is_marked(commit)]
    if not unmarked:
        return []
    before = repository[base] if base is not None else judged[0].parents[0]
    head = repository.head.peel(pygit2.Commit)
    return [] if new_entries(_changelog(before.peel(pygit2.Commit)), _changelog(head)) else unmarked


def _judged(repository: pygit2.Repository, base: pygit2.Oid | None) -> Iterator[pygit2.Commit]:
    """The commits that change the program. What a merge brings is judged where it was made."""
    walker = repository.walk(repository.head.target, SortMode.TOPOLOGICAL | SortMode.REVERSE)
    if base is not None:
        walker.hide(base)
    for commit in walker:
        if len(commit.parents) != 1:
            continue
        now, before = commit.tree, commit.parents[0].tree
        if CHECK in before and _part(now, PROGRAM) != _part(before, PROGRAM):
            yield commit


def _part(tree: pygit2.Tree, name: str) -> pygit2.Oid | None:
    return tree[name].id if name in tree else None


def _is_marked(commit: pygit2.Commit) -> bool:
    trailers = {key.lower(): value for key, value in commit.message_trailers.items()}
    return trailers.get("changelog", "").strip().lower() == "none"


def _changelog(commit: pygit2.Commit) -> str:
    if FILE not in commit.tree:
        return ""
    return commit.tree[FILE].peel(pygit2.Blob).data.decode()


def base_of(repository: pygit2.Repository, asked: str) -> pygit2.Oid | None:
    """The commit since which commits are judged; None: since the check is there.

    Raises:
        NoUse: the base that was asked for is not in the clone, or has no common history with it.
    """
    if asked:
        try:
            commit = repository.revparse_single(asked).peel(pygit2.Commit)
            common = repository.merge_base(repository.head.target, commit.id)
        except (KeyError, ValueError, pygit2.GitError) as error:
            raise NoUse(f"{asked} is no commit of this clone ({error})") from error
        if common is None:
            raise NoUse(f"{asked} has no history in common with HEAD; is the clone shallow?")
        return common
    return _release_commit(repository)


def _release_commit(repository: pygit2.Repository) -> pygit2.Oid | None:
    """The last commit that changed what is said of the newest release; None: none is, or history does not show it."""
    for commit in repository.walk(repository.head.target, SortMode.TOPOLOGICAL):
        if _part(commit.tree, FILE) in [_part(parent.tree, FILE) for parent in commit.parents]:
            continue
        newest = _newest_release(commit)
        if newest is None:
            return None
        if all(_newest_release(parent) != newest for parent in commit.parents):
            return commit.id
    return None


def _newest_release(commit: pygit2.Commit) -> Release | None:
    return next((release for release in read(_changelog(commit)).releases if release.name != UNRELEASED), None)


def check_commits(root: Path, asked: str) -> int:
    """Print what is missing; the exit code."""
    where = pygit2.discover_repository(str(root))
    repository = pygit2.Repository(where) if where and (root / ".git").exists() else None
    if repository is None or repository.head_is_unborn:
        reason = "this is no clone with commits"
    elif repository.is_shallow and not asked:
        reason = "the clone is shallow; git fetch --unshallow brings the rest"
    else:
        missing = untold(repository, base_of(repository, asked))
        for commit in missing:
            say(f"{str(commit.id)[:12]} {commit.message.splitlines()[0]}")
        if missing:
            say(f"These change {PROGRAM}/, and {FILE} has no new line under {UNRELEASED}. Add one, or, where users")
            say("notice nothing, end the message of each commit with the line 'Changelog: none'.")
        return 1 if missing else 0
    say(f"{FILE} was not compared with commits: {reason}")
    return 2 if asked else 0


def main(arguments: list[str], root: Path) -> int:
    """Check the form of the changelog below `root`, then the commits; the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--base", default=os.environ.get("CHANGELOG_BASE", ""), metavar="REVISION")
    asked = parser.parse_args(arguments).base
    version = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    wrong = faults((root / FILE).read_text(encoding="utf-8"), version)
    for fault in wrong:
        say(f"{FILE}:{fault}")
    try:
        return max(check_commits(root, asked), 1 if wrong else 0)
    except NoUse as error:
        say(f"{FILE} was not compared with commits: {error}")
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], Path(__file__).resolve().parent.parent))
