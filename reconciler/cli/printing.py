"""Output: answers to stdout, commentary to stderr, colour only on a terminal that wants it; coroutines of commands."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from reconciler.api.content import Json
    from reconciler.api.problem import Problem
    from reconciler.report.terminal import Style


def style_for(stream: object = None) -> Style:
    """Colours on a terminal that is not dumb, unless NO_COLOR is set; CLICOLOR_FORCE decides first."""
    from reconciler.report.terminal import PLAIN, Style

    width = terminal_width()
    if _is_forced():
        return Style(color=True, width=width)
    is_terminal = getattr(stream or sys.stdout, "isatty", lambda: False)()
    wanted = is_terminal and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    return Style(color=wanted, width=width) if wanted or width is not None else PLAIN


def terminal_width() -> int | None:
    """Columns of the terminal that answers go to; None: they go to a pipe or a file, where nothing has to fit."""
    return _width(sys.stdout)


def _is_forced() -> bool:
    """Return whether to write to a pipe as to a terminal; COLUMNS is then its width."""
    return os.environ.get("CLICOLOR_FORCE", "0") != "0"


def _width(stream: object) -> int | None:
    is_terminal = getattr(stream, "isatty", lambda: False)()
    if not is_terminal and not ("COLUMNS" in os.environ and _is_forced()):
        return None
    return shutil.get_terminal_size(fallback=(0, 0)).columns or None


def answer(text: str) -> None:
    """To stdout, as it is."""
    click.echo(text, nl=bool(text) and not text.endswith("\n"), color=True)


def prose(text: str) -> None:
    """To stdout, text for people: on a terminal lines are broken between words, not in the middle of one."""
    answer(_folded(text, sys.stdout))


def _folded(text: str, stream: object) -> str:
    width = _width(stream)
    if width is None:
        return text
    from reconciler.report.terminal import folded

    return folded(text, width)


def is_heard(say: Callable[[], None]) -> bool:
    """Return whether the output of `say` has a reader; else discard all more, so that a write is not stopped."""
    try:
        say()
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except BrokenPipeError:
                os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
        return False
    return True


def write_file(path: Path, text: str) -> None:
    """Write a file, whole or not at all; a pipe or device as it is. Raises OSError: the file is as it was."""
    if path.exists() and not path.is_file():
        # To take the place of /dev/stdout would take it away from everybody.
        path.write_text(text, encoding="utf-8")
        return
    target = path.resolve()
    partial = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(target)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        partial.unlink(missing_ok=True)


def document_text(document: Json, form: str) -> str:
    """The document as `json` or `yaml`."""
    from reconciler.report.json_parts import json_text
    from reconciler.report.render_json import dump_yaml

    return json_text(document) if form == "json" else dump_yaml(document)


def document_pieces(parts: Mapping[str, Iterable[Json]], form: str) -> Iterator[str]:
    """Yield what `document_text` returns, of a document whose members come in pieces that are not empty but for one."""
    is_json, end = form == "json", "{"
    for name in parts if is_json else sorted(parts):
        for number, piece in enumerate(parts[name]):
            text = document_text({name: piece}, form)
            if not is_json:
                yield text.partition("\n")[2] if number else text
                continue
            # Between the braces, and without the bracket that the last piece closes.
            text = text[1:-3]
            body = text[:-4] if piece and isinstance(piece, list | dict) else text
            if number:
                yield "," + body[body.index("\n", 1) :]
            else:
                yield (end if end == "{" else f"{end},") + body
            end = text[len(body) :]
    if is_json:
        yield f"{end}\n}}\n"


def answer_rows(
    name: str, part: list[Json], output: str, header: list[str], rows: list[list[str]], drop: tuple[int, ...]
) -> bool:
    """Print a list as `json` or `yaml` under its name, else as a table; return whether there was something to print."""
    from reconciler.report.terminal import Fit, table

    if output != "table":
        answer(document_text({"version": 1, name: part}, output))
    elif rows:
        answer(table(header, rows, fit=Fit(width=terminal_width(), drop=drop, cuts_last=True)))
    return output != "table" or bool(rows)


def answer_commit(commit: str, branch: str) -> None:
    """Name a commit on a branch that is not checked out, and the next step."""
    from reconciler.api.refs import short_revision

    answer(f"commit {short_revision(commit)} on {branch}")
    remark(f"next: read it ('reconciler diff --base HEAD --head {branch}'), and push it for a review")


def remark(text: str) -> None:
    """To stderr, without credentials and without anything that a terminal or a runner would obey."""
    from reconciler.report.mask import scrub_text
    from reconciler.report.safe_text import joined, visible

    text_shown = joined(map(visible, scrub_text(text).split("\n")))
    click.echo(_folded(text_shown, sys.stderr), err=True, nl=False)


def show_problems(problems: Iterable[Problem], *, hints: bool = True) -> None:
    """All problems to stderr, worst first."""
    from reconciler.api.problem import Severity
    from reconciler.report.problems_text import problems_text

    listed_problems = [problem for problem in problems if hints or problem.severity is not Severity.HINT]
    if listed_problems:
        text = problems_text(listed_problems, style_for(sys.stderr))
        click.echo(_folded(text, sys.stderr), err=True, nl=False, color=True)


def has_errors(problems: Iterable[Problem]) -> bool:
    """Return whether any problem is an error: then the exit code is 1."""
    from reconciler.api.problem import Severity

    return any(problem.severity is Severity.ERROR for problem in problems)


Result = TypeVar("Result")


def run(work: Coroutine[Any, Any, Result]) -> Result:
    """Return the result, not by `asyncio.run`: Python 3.11 would write it out, slower than the round was."""
    # Imported here: completing a word, and commands that ask no cluster, need not wait for it.
    import asyncio

    results: list[Result] = []

    async def boxed() -> None:
        results.append(await work)

    asyncio.run(boxed())
    return results[0]
