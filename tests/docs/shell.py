"""Runs the commands of a page, in order, in a folder of its own, and compares what they print."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from tests.docs.pages import ROOT, Block, Command, commands, shows

RUNNABLE = frozenset({"reconciler", "git", "cd", "mkdir", "sed", "rm", "cat", "echo"})
"""First words of what is run. `make` and `python scripts/…` are tests of their own; kubectl needs clusters."""

IDENTITY = {f"GIT_{who}_{what}": "reader@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


class Reader:
    """Somebody who types what a page shows."""

    def __init__(
        self,
        folder: Path,
        environment: Mapping[str, str] = MappingProxyType({}),
        more: Iterable[str] = (),
        path: str = os.environ["PATH"],
    ) -> None:
        self.folder = self.here = folder
        self.words = RUNNABLE | {*more}
        search = f"{Path(sys.executable).parent}{os.pathsep}{path}"
        inherited = {key: value for key, value in os.environ.items() if not key.startswith(("RECONCILER_", "GIT_"))}
        state = {"HOME": str(folder), "XDG_STATE_HOME": str(folder / ".state"), "KUBECONFIG": str(folder / "none")}
        self.environment = {**inherited, **IDENTITY, "PATH": search, **state, "GIT_CONFIG_GLOBAL": "", **environment}
        self._code = 0

    def git_repository(self) -> None:
        """Put the example store into a repository with one commit, as a clone of the project has it."""
        shutil.copytree(ROOT / "examples", self.folder / "examples")
        for command in ("git init --quiet -b main", "git add .", "git commit --quiet -m Begin"):
            subprocess.run(command.split(), cwd=self.folder, env=self.environment, check=True)

    def follow(self, blocks: Iterable[Block]) -> int:
        """Write the files and type the commands; how many were typed."""
        typed = 0
        for block in blocks:
            if block.file and block.language in ("yaml", "json"):
                (self.here / block.file).write_text(block.text, encoding="utf-8")
            if block.language != "console":
                continue
            found = list(commands(block))
            for index, command in enumerate(found):
                if command.text.split()[0] not in self.words:
                    continue
                asks = index + 1 < len(found) and found[index + 1].text == "echo $?"
                self.type(command, block.page, may_fail=asks)
                typed += 1
        return typed

    def type(self, command: Command, page: str, *, may_fail: bool) -> None:
        """Run one command; fail when it does, or prints something else."""
        where = f"{page}:{command.line}: $ {command.text}"
        script = f"(exit {self._code}); {command.text}\ncode=$?; pwd > {self.folder}/.pwd; exit $code"
        done = subprocess.run(
            ["bash", "-c", script], cwd=self.here, env=self.environment, capture_output=True, text=True, check=False
        )
        printed = done.stdout + done.stderr
        self._code = done.returncode
        self.here = Path((self.folder / ".pwd").read_text().strip())
        assert may_fail or done.returncode == 0, f"{where}\nends with {done.returncode}\n{printed}"
        if command.output is not None:
            missing = shows(command.output, printed)
            assert not missing, f"{where}\nis said to print\n{missing}\nbut prints\n{printed}"
            if "…" not in command.output:
                shown = [line for line in re.split(r"\n", printed.rstrip("\n")) if line.strip()]
                promised = [line for line in command.output if line.strip()]
                assert len(shown) == len(promised), f"{where}\nprints more than the page says:\n{printed}"
