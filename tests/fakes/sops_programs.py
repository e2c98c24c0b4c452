"""Programs in the place of sops: each writes what it was given to a log, and then behaves as it was told."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

_HEAD: Final = """#!{python} -IS
import os, subprocess, sys, time
given = sys.stdin.buffer.read()
with open({log!r}, "a") as log:
    log.write(repr((sys.argv[1:], dict(os.environ), os.getpid(), len(given))) + "\\n")
"""


class Fake:
    """A program whose behaviour is a few lines of Python; `given` is what it got by stdin."""

    def __init__(self, folder: Path, behaviour: str, name: str = "sops") -> None:
        self.path, self._log = folder / name, folder / f"{name}.log"
        self._log.touch()
        self.behave(behaviour)

    def behave(self, behaviour: str) -> None:
        text = _HEAD.format(python=sys.executable, log=str(self._log)) + behaviour + "\n"
        part = self.path.with_suffix(".part")
        part.write_text(text)
        part.chmod(0o700)
        part.replace(self.path)

    @property
    def runs(self) -> list[tuple[list[str], dict[str, str], int, int]]:
        """Arguments, environment, process and bytes of stdin of each run."""
        return [eval(line) for line in self._log.read_text().splitlines()]  # noqa: S307 - written by the head above
