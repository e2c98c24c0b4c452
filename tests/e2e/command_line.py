"""The command line as a person runs it, in a process of its own, on a fleet of a test."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from tests.e2e.fleet_on_clusters import FleetOnClusters
from tests.program import run_text


class CommandLine:
    """Runs `reconciler` with the fleet's kubeconfig and journal in the environment."""

    def __init__(self, fleet: FleetOnClusters, **environment: str) -> None:
        self.store = str(fleet.store)
        self.journal = Path(str(fleet.access.journal))
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("RECONCILER_")},
            "RECONCILER_KUBECONFIG": str(fleet.access.kubeconfig),
            "RECONCILER_JOURNAL": str(self.journal),
            "NO_COLOR": "1",
            **environment,
        }

    def run(self, *args: str) -> subprocess.CompletedProcess[str]:
        """The finished process; its standard input is no terminal."""
        return run_text(*args, environment=self.environment, code=None)

    def done(self, *args: str) -> str:
        """Standard output of a command that must succeed."""
        process = self.run(*args)
        assert process.returncode == 0, process.stdout + process.stderr
        return process.stdout

    def refused(self, *args: str) -> str:
        """Standard error of a command that must fail: one line, and nothing on standard output."""
        process = self.run(*args)
        assert process.returncode == 1, process.stdout + process.stderr
        assert process.stdout == ""
        return process.stderr

    def json(self, *args: str) -> Any:
        """The document that a command prints with `-o json`."""
        return json.loads(self.done(*args, "-o", "json"))

    def apply(self, code: int = 0) -> str:
        """`apply --yes`, which has to end with this code: what it says on standard error."""
        process = self.run("apply", self.store, "--yes")
        assert process.returncode == code, process.stdout + process.stderr
        return process.stderr
