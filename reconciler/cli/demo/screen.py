"""Output of the demo: headings, prose, commands with their real output, the state of the clusters, kept promises."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct, field

from reconciler.cli.demo.sight import Key, Sight, image, is_ours, is_settled, ready_replicas, spec_replicas
from reconciler.cli.printing import answer, style_for
from reconciler.errors import ReconcilerError
from reconciler.report.terminal import Style, aligned, folded

_WIDTH = 100
_IMAGE_WIDTH = 44
_IMAGE_MIN_WIDTH = 12
_INDENT = "    "
_COMMAND_S = 300.0
"""No command hangs; on a busy machine one takes a minute."""


class CommandFailed(ReconcilerError):
    """A command of the story ended with another exit code than it should have."""


class Screen(Struct, kw_only=True):
    """The terminal. `environment`: for the commands that are run; `broken`: the promises that did not hold."""

    style: Style = field(default_factory=style_for)
    is_live: bool = field(default_factory=sys.stdout.isatty)
    environment: Mapping[str, str] = field(default_factory=dict)
    folder: Path = Path()
    kept: int = 0
    broken: list[str] = field(default_factory=list)

    @property
    def _width(self) -> int:
        """Columns of prose: as many as read well, and no more than there are."""
        return min(_WIDTH, self.style.width or _WIDTH)

    def heading(self, text: str) -> None:
        """The title of a step."""
        answer(f"\n\n{self.style.bold(f'{text} '.ljust(self._width, '─'))}")

    def say(self, text: str) -> None:
        """A paragraph."""
        answer("\n" + textwrap.fill(" ".join(text.split()), self._width))

    def show(self, text: str) -> None:
        """Text of a file or an answer, set in."""
        if self.style.width is not None:
            text = folded(text, self.style.width - len(_INDENT))
        answer(textwrap.indent(text.rstrip("\n"), _INDENT, lambda line: bool(line.strip())) + "\n")

    def remark(self, text: str) -> None:
        """Something by the way."""
        answer(self.style.dim(f"  {text}"))

    def prompt(self, command: str) -> None:
        """A command as it would be typed."""
        answer(f"\n{self.style.green('$')} {self.style.bold(command)}")

    def patch(self, text: str) -> None:
        """A patch in the colours of Git."""
        colours = {"+": self.style.green, "-": self.style.red, "@": self.style.dim}
        kept = [line for line in text.splitlines() if not line.startswith(("diff ", "index ", "new file mode"))]
        self.show("\n".join(colours.get(line[:1], str)(line) for line in kept))

    async def run(self, command: str) -> None:
        """Show a command of ours and its real output, both streams in order.

        Raises:
            CommandFailed: its exit code is not 0.
        """
        self.prompt(command)
        words = shlex.split(command)
        assert words[0] == "reconciler", command
        own = {name: value for name, value in os.environ.items() if not name.startswith("RECONCILER_")}
        colour = {"CLICOLOR_FORCE": "1"} if self.style.color else {}
        if self.style.width is not None:
            colour["COLUMNS"] = str(self.style.width - len(_INDENT))
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "reconciler",
            *words[1:],
            cwd=self.folder,
            env={**own, **colour, **self.environment},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            async with asyncio.timeout(_COMMAND_S):
                output, _ = await process.communicate()
        except TimeoutError:
            raise CommandFailed(f"it did not end within {_COMMAND_S:.0f} s: {command}") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        self.show(output.decode())
        if process.returncode != 0:
            raise CommandFailed(f"exit code {process.returncode}: {command}")

    def promise(self, text: str, *, is_kept: bool, found: str = "") -> None:
        """Print a claim with a check mark or a cross; `found`: the state in place of the promised one."""
        if is_kept:
            self.kept += 1
            answer(f"{self.style.green('✓')} {text}")
            return
        self.broken.append(text)
        answer(f"{self.style.red('✗')} {text}" + (f" (found: {found})" if found else ""))

    @contextmanager
    def table(self, names: frozenset[Key]) -> Iterator[Callable[[Sight], None]]:
        """A function that shows the Deployments of those names: at once on a terminal, the last time when piped."""
        last: list[Sight] = []
        if not self.is_live:
            yield last.append
        else:
            from rich.console import Console
            from rich.live import Live
            from rich.text import Text

            console = Console(highlight=False, no_color=not self.style.color)
            with Live(Text(""), console=console, refresh_per_second=20, redirect_stdout=False) as live:

                def update(sight: Sight) -> None:
                    live.update(Text.from_ansi(table_text(sight, names, self.style)))

                yield update
        if last:
            answer(table_text(last[-1], names, self.style))
        answer("")


def table_text(sight: Sight, names: frozenset[Key], style: Style) -> str:
    """The Deployments of those names (all when empty) with a line for each cluster that has them or is silent."""
    header = ["NAMESPACE", "NAME", "CLUSTER", "READY", "IMAGE", "ADOPTION"]
    cells = [header]
    colours: list[Callable[[str], str]] = [style.dim]
    for (namespace, name), cluster, body in sight.deployments():
        if names and (namespace, name) not in names:
            continue
        ready = f"{ready_replicas(body)}/{spec_replicas(body)}"
        cells.append([namespace, name, cluster, ready, image(body), "Y" if is_ours(body) else "N"])
        colours.append(str if is_settled(body) else style.yellow)
    for cluster in sorted(sight.silent):
        cells.append(["?", "?", cluster, "?", "does not answer", "?"])
        colours.append(style.red)
    lines = aligned(_with_short_images(cells, header.index("IMAGE"), style.width))
    return "\n".join(f"{_INDENT}{colour(line)}" for colour, line in zip(colours, lines, strict=True))


def _with_short_images(cells: list[list[str]], place: int, width: int | None) -> list[list[str]]:
    """Return the cells with images shortened to the width; the end of an image is kept."""
    others = len(_INDENT) + len(aligned([[*row[:place], "", *row[place + 1 :]] for row in cells])[0])
    room = _IMAGE_WIDTH if width is None else min(_IMAGE_WIDTH, max(_IMAGE_MIN_WIDTH, width - others))
    return [[*row[:place], _shortened(row[place], room), *row[place + 1 :]] for row in cells]


def _shortened(image_name: str, width: int) -> str:
    return image_name if len(image_name) <= width else f"…{image_name[1 - width :]}"
