"""Files of observations that others update. Source: design#observations; ADR 21."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from reconciler.model.observation import Observations
from reconciler.model.problem import Severity
from reconciler.stages.observations import parse_observations, put_together

_TOLD_MAX = 3
"""The number of a file's errors that are reported."""


class ObservationsFile:
    """The last usable content of an observations file. An unusable file changes nothing, and `fault` has the reason."""

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


class ObservationsFiles:
    """Several of them, put together once each could be read."""

    def __init__(self, paths: Iterable[Path]) -> None:
        """Read nothing yet. If several files observe a cluster, the first one counts."""
        self._files = [ObservationsFile(path) for path in paths]
        self.observations: Observations | None = None
        """None: of one nothing could be read yet."""

    @property
    def fault(self) -> str:
        """Return the faults of unusable files; empty: all are usable."""
        return "; ".join(file.fault for file in self._files if file.fault)

    def refresh(self) -> bool:
        """Read changed files again; return whether the observations changed."""
        others = [file.refresh() for file in self._files]
        found = [file.observations for file in self._files if file.observations is not None]
        if not any(others) or len(found) < len(self._files):
            return False
        self.observations = put_together(found)
        return True
