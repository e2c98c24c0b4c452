"""Unreadable files do not count: the last good content of their path stays active.

A path that is broken or unreadable, or blocked by something else, keeps its last good content. A new one had no
content, and that stays active: it holds back only unplaced objects. While there is such a one, no other document counts
as deleted, since it may be there now. Source: design#broken-input; design#absence.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, MutableMapping
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.model.fleet import Reach
from reconciler.model.problem import Problem, Severity, Source
from reconciler.stages.fleet.file import ParsedFile

LAST_GOOD: Final = "last-good-in-force"
"""The code of the note on a file with its last good content."""
_KEYS: Final = {
    "templates": "identity",
    "propagation": "ref",
    "overrides": "ref",
    "clusters": "name",
    "rollouts": "name",
    "renders": "name",
    "locks": "path",
}
"""The key of a document of each kind; of a Fleet document there is one."""


class Earlier(Struct, frozen=True, kw_only=True):
    """The earlier active content of the paths that matter.

    `good`: the last good content of paths that are broken, or gone and not taken for deleted. `new`: broken paths that
    had no earlier content. `in_the_way`: for paths that are gone, their obstacles.
    """

    good: Mapping[str, ParsedFile] = field(default_factory=dict)
    new: frozenset[str] = frozenset()
    in_the_way: Mapping[str, str] = field(default_factory=dict)


def with_last_good(
    files: Iterable[ParsedFile], earlier: Earlier, known: MutableMapping[str, ParsedFile] | None = None
) -> Iterator[ParsedFile]:
    """Yield the files, with the last good content of broken ones, and of missing ones that may exist.

    The problems of broken ones are kept. Documents that are now in a good file are left out of older content, since
    they moved. `known`: earlier results, so that equal ones are the same object.
    """
    known = {} if known is None else known
    found = list(files)
    gone = earlier.good.keys() - {file.path for file in found}
    said = frozenset(key for file in found if not file.frozen for key in _keys(file)) if earlier.good else frozenset()
    for file in found:
        if file.frozen and file.path in earlier.good:
            yield _as_before(known, _in_force(earlier.good[file.path], file.problems, said))
        elif file.path in earlier.new:
            yield _as_before(known, replace(file, frozen=tuple(replace(reach, is_new=True) for reach in file.frozen)))
        else:
            yield file
    unread = min(earlier.new, default="")
    for path in sorted(gone):
        yield _as_before(known, _in_force(earlier.good[path], (_gone(path, earlier, unread),), said))


def _as_before(known: MutableMapping[str, ParsedFile], made: ParsedFile) -> ParsedFile:
    same = known.get(made.path)
    if same == made:
        return same
    known[made.path] = made
    return made


def _in_force(earlier: ParsedFile, problems: tuple[Problem, ...], said: frozenset[Hashable]) -> ParsedFile:
    source = Source(earlier.path)
    note = Problem(
        source=source,
        code=LAST_GOOD,
        message=f"the last good content of this file (blob {earlier.blob[:12]}) stays in force until it is mended",
        severity=Severity.WARNING,
    )
    # An empty reach freezes nothing, and still marks the store as incompletely read.
    nothing = Reach(source=source)
    kept = replace(earlier, problems=(*problems, note), frozen=(*earlier.frozen, nothing))
    return kept if said.isdisjoint(_keys(kept)) else _without(kept, said)


def _gone(path: str, earlier: Earlier, unread: str) -> Problem:
    taken = earlier.in_the_way.get(path)
    if taken is not None:
        message = f"it had documents, and {taken}; put the file back, or take out what stands in its place"
        return Problem(source=Source(path), code="file-displaced", message=message)
    message = f"it is gone, and its documents may be in {unread} now, which cannot be read"
    return Problem(source=Source(path), code="file-gone-unproven", message=message, severity=Severity.WARNING)


def without_later_twins(
    files: Iterable[ParsedFile], said_before: Callable[[ParsedFile, Hashable], bool]
) -> dict[str, ParsedFile]:
    """Return files with documents that another file had before they did, by path, without those documents.

    `said_before`: whether a file had one before. A document that none of them had before, or several did, stays in all
    of them: it is ambiguous.
    """
    places: dict[Hashable, list[ParsedFile]] = {}
    for file in files:
        for key in _keys(file):
            places.setdefault(key, []).append(file)
    later: dict[str, tuple[ParsedFile, dict[Hashable, ParsedFile]]] = {}
    for key, twins in places.items():
        owners = [file for file in twins if said_before(file, key)] if len(twins) > 1 else []
        for file in twins if len(owners) == 1 else ():
            if file is not owners[0]:
                later.setdefault(file.path, (file, {}))[1][key] = owners[0]
    return {path: _without_twins(file, owners) for path, (file, owners) in later.items()}


def _without_twins(file: ParsedFile, owners: Mapping[Hashable, ParsedFile]) -> ParsedFile:
    source = Source(file.path)
    problems = [
        Problem(
            source=source,
            code="duplicate-identity",
            message=f"{_shown(key)} is also in {owner.path}, which said so before and counts; keep one of them",
        )
        for key, owner in owners.items()
    ]
    kept = _without(file, frozenset(owners))
    return replace(kept, problems=(*file.problems, *problems), frozen=(*file.frozen, Reach(source=source)))


def _shown(key: Hashable) -> str:
    kind, value = key if isinstance(key, tuple) else ("", "the document of kind Fleet")
    return f"{kind.removesuffix('s')} {value}" if isinstance(value, str) and kind else str(value)


def says(file: ParsedFile, key: Hashable) -> bool:
    """Return whether one of its documents has this key, as `without_later_twins` asks."""
    return key in _keys(file)


def _keys(file: ParsedFile) -> Iterator[Hashable]:
    for kind, name in _KEYS.items():
        for value in getattr(file, kind):
            yield kind, getattr(value, name)
    if file.settings:
        yield "settings"


def _without(file: ParsedFile, said: frozenset[Hashable]) -> ParsedFile:
    """The file without documents that others have."""
    left: dict[str, Any] = {
        kind: tuple(value for value in getattr(file, kind) if (kind, getattr(value, name)) not in said)
        for kind, name in _KEYS.items()
    }
    return replace(file, settings=() if "settings" in said else file.settings, **left)


def says_nothing(file: ParsedFile) -> bool:
    """Return whether a file has no typed document: no bytes, blanks, comments, lines without apiVersion and kind."""
    policies, own = file.propagation or file.overrides, file.rollouts or file.renders
    return not (file.templates or policies or own or file.clusters or file.settings or file.frozen)


def emptied(file: ParsedFile) -> ParsedFile:
    """Return a directory's file that lost all its documents as a broken one: it may be half written."""
    source = Source(file.path)
    problem = Problem(
        source=source,
        code="file-emptied",
        message="the file had documents and has none now, as one that is being written; remove it if they are to go",
        severity=Severity.ERROR,
    )
    return replace(file, problems=(*file.problems, problem), frozen=(Reach(source=source, everything=True),))
