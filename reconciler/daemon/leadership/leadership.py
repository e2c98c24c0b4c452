"""The part of this process in its fleet, for every writer."""

from __future__ import annotations

from enum import Enum, auto
from math import inf

from reconciler.daemon.leadership.elector import Elector


class Part(Enum):
    """The part of this process in its fleet."""

    ALONE = auto()
    """The fleet has no Lease."""
    STANDBY = auto()
    """Another process leads, or nobody knows yet who does."""
    LEADER = auto()


class Leadership:
    """The part of this process. Until anything is known it stands by."""

    def __init__(self) -> None:
        """Nothing may be written yet."""
        self.part = Part.STANDBY
        self.leaders: frozenset[str] = frozenset()
        """Journals of processes that led under the Lease."""
        self._elector: Elector | None = None

    def alone(self) -> None:
        """There is no Lease."""
        self.part, self._elector = Part.ALONE, None

    def stand_by(self) -> None:
        """Write nothing."""
        self.part, self._elector = Part.STANDBY, None

    def lead(self, elector: Elector, leaders: frozenset[str]) -> None:
        """Write for as long as the Lease is held."""
        self.part, self._elector, self.leaders = Part.LEADER, elector, leaders

    def term(self) -> int | None:
        """The term in which this process leads; None: there is no Lease, or it does not hold it."""
        return self._elector.term if self._elector is not None else None

    def writing_left_s(self) -> float:
        """So long a write may take that begins now; 0: none may."""
        if self.part is Part.ALONE:
            return inf
        return self._elector.writing_left_s() if self._elector is not None else 0.0
