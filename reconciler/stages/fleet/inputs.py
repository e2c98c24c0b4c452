"""Inputs of a Render are no documents of the store: only the rendering command reads them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from operator import attrgetter

from reconciler.model.fleet import Reach, Render
from reconciler.model.problem import Problem, Source
from reconciler.stages.fleet.file import ParsedFile
from reconciler.stages.hydration import input_folders, is_below, is_input


def inputs_of(files: list[ParsedFile]) -> frozenset[str]:
    """Return folders and files that renders read, as far as documents show: their content is no document."""
    renders = [render for file in files for render in file.renders]
    if not renders:
        return frozenset()
    return input_folders(renders, {file.path.rpartition("/")[0]: file.builds_on for file in files if file.builds_on})


def without_inputs(
    files: list[ParsedFile], inputs: frozenset[str], problems: list[Problem], frozen: list[Reach]
) -> list[ParsedFile]:
    """The files that are documents. A Render among the inputs of another is an error, and then nothing is left out."""
    if not inputs:
        return files
    inside = [file for file in files if file.renders and is_input(file.path, inputs)]
    for file in inside:
        message = "another Render, or this one, reads the folder in which it stands; keep what is rendered apart"
        problems.append(Problem(source=Source(file.path), code="render-inputs", message=message))
        frozen.append(Reach(source=Source(file.path), everything=True))
    return files if inside else [file for file in files if not is_input(file.path, inputs)]


def unique_renders(files: list[ParsedFile], problems: list[Problem], frozen: list[Reach]) -> tuple[Render, ...]:
    """Return the renders by name, without duplicates and shared outputs."""
    found = sorted((render for file in files for render in file.renders), key=attrgetter("name", "source"))
    bad: set[Source] = set()
    for one, other, code, message in _clashes(found):
        bad |= {one.source, other.source}
        for render, against in ((one, other), (other, one)):
            problems.append(
                Problem(source=render.source, code=code, message=message.format(render.name, against.source))
            )
    # Rendered files are committed, independently of their Render document: nothing else is frozen.
    frozen.extend(Reach(source=source) for source in sorted(bad))
    return tuple(render for render in found if render.source not in bad)


def _clashes(renders: list[Render]) -> Iterator[tuple[Render, Render, str, str]]:
    for before, after in itertools.pairwise(renders):
        if before.name == after.name:
            yield before, after, "duplicate-identity", "Render {0} is also in {1}; keep one of them"
    ordered = sorted(renders, key=lambda render: f"{render.output}/")
    for before, after in itertools.pairwise(ordered):
        if is_below(after.output, before.output) and before.name != after.name:
            yield before, after, "render-output", "the output of Render {0} is in that of {1}, or around it"
