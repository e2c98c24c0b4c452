"""A broken file does not count: the last content of that path that was good stays in force.

Source: design#broken-input: without a last good one the reach of the file is frozen; design#absence: in any case the
store was not read completely, so nothing is deleted because it is absent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping

from msgspec.structs import replace

from reconciler.model.fleet import Reach
from reconciler.model.problem import Problem, Severity, Source
from reconciler.stages.fleet.file import ParsedFile

Replaced = MutableMapping[str, tuple[ParsedFile, ParsedFile, ParsedFile]]
"""By path a broken file, the good content of before, and what was made of both."""


def with_last_good(
    files: Iterable[ParsedFile], good: Mapping[str, ParsedFile], known: Replaced | None = None
) -> Iterator[ParsedFile]:
    """The files, broken ones replaced by what `good` has of their path; their problems are kept.

    `known`: what was made before, so that it is the same object as long as it is made of the same.
    """
    known = {} if known is None else known
    for file in files:
        earlier = good.get(file.path) if file.frozen else None
        if earlier is None:
            yield file
            continue
        made = known.get(file.path)
        if made is None or made[0] is not file or made[1] is not earlier:
            made = known[file.path] = (file, earlier, _in_force(earlier, file))
        yield made[2]


def _in_force(earlier: ParsedFile, broken: ParsedFile) -> ParsedFile:
    note = Problem(
        source=Source(broken.path),
        code="last-good-in-force",
        message=f"the last good content of this file (blob {earlier.blob[:12]}) stays in force until it is mended",
        severity=Severity.WARNING,
    )
    # A reach of nothing freezes nothing, and still says that the store was not read completely.
    nothing = Reach(source=Source(broken.path))
    return replace(earlier, problems=(*broken.problems, note), frozen=(nothing,))


def says_nothing(file: ParsedFile) -> bool:
    """Whether a file has no document of a type: no bytes, blanks, comments, lines without apiVersion and kind."""
    policies, own = file.propagation or file.overrides, file.rollouts or file.renders
    return not (file.templates or policies or own or file.clusters or file.settings or file.frozen)


def emptied(file: ParsedFile) -> ParsedFile:
    """A file of a directory that had documents and says nothing now, as a broken one: it may be half written."""
    source = Source(file.path)
    problem = Problem(
        source=source,
        code="file-emptied",
        message="the file had documents and has none now, as one that is being written; remove it if they are to go",
        severity=Severity.ERROR,
    )
    return replace(file, problems=(*file.problems, problem), frozen=(Reach(source=source, everything=True),))


def good_files(files: Iterable[ParsedFile]) -> dict[str, ParsedFile]:
    """Those that are good, by path: what stays in force when a later commit breaks them."""
    return {file.path: file for file in files if not file.frozen}
