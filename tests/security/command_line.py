"""Commands run as a user runs them, each in a process of its own that is watched and held to limits."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from msgspec import Struct

from tests.program import run
from tests.security.guarded import watch


class Ran(Struct, frozen=True, kw_only=True):
    """The result of a command. `cpu_s` is without the interpreter's start; `peak_mb` is with it."""

    code: int
    out: bytes
    err: bytes
    events: tuple[str, ...]
    cpu_s: float
    peak_mb: float

    @property
    def output(self) -> str:
        return (self.out + self.err).decode(errors="replace")

    @property
    def is_orderly(self) -> bool:
        """Return whether it ended by itself, not by a signal or an unexpected exception."""
        is_told = any(words in self.err for words in (b"Traceback", b"this command: a fault of the program"))
        return self.code in range(5) and not is_told


def reconciler(*arguments: str | Path, home: Path, environ: Mapping[str, str] = {}, text: str = "") -> Ran:
    """Run `reconciler ARGUMENT…`. `home` takes whatever the command keeps; nothing of the caller's is seen."""
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        seen = {"PATH": os.environ["PATH"], "HOME": str(home), "LC_ALL": "C.UTF-8", **environ}
        ended = run(*arguments, environment=seen, folder=home, text=text, command=partial(watch, report.name))
        found = json.loads(Path(report.name).read_bytes() or b"{}")
    return Ran(
        code=ended.returncode,
        out=ended.stdout,
        err=ended.stderr,
        events=tuple(found.get("events", ("no report",))),
        cpu_s=found.get("cpu_s", float("inf")),
        peak_mb=found.get("peak_mb", float("inf")),
    )
