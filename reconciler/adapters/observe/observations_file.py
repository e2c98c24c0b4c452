"""A file of observations that somebody writes anew now and then. Source: design#observations; ADR 21."""

from __future__ import annotations

from pathlib import Path

from reconciler.model.observation import Observations
from reconciler.model.problem import Severity
from reconciler.stages.observations import parse_observations

_TOLD_MAX = 3
"""So many of the errors of a file are told."""


class ObservationsFile:
    """What is in it, as it was read last. One that cannot be used changes nothing, and `fault` says why."""

    def __init__(self, path: Path) -> None:
        """Nothing is read yet."""
        self._path = path
        self._stamp: tuple[int, int, int] | None = None
        self.observations: Observations | None = None
        """None: nothing could be read yet."""
        self.fault = ""

    def refresh(self) -> bool:
        """Read the file again if it was written since; whether there are other observations now."""
        try:
            found = self._path.stat()
            stamp = (found.st_mtime_ns, found.st_size, found.st_ino)
            if stamp == self._stamp:
                return False
            data = self._path.read_bytes()
        except OSError as error:
            self.fault = f"{self._path}: {error.strerror}"
            return False
        self._stamp = stamp
        observations, problems = parse_observations(data, str(self._path))
        if observations is None:
            faults = [str(problem) for problem in problems if problem.severity is Severity.ERROR]
            self.fault = "; ".join(faults[:_TOLD_MAX])
            return False
        self.fault = ""
        is_other, self.observations = observations != self.observations, observations
        return is_other
