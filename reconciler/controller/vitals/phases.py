"""The phases of rounds, and how long they take.

Distributions of seconds, cheap enough to be kept of every request: one bisection and two additions each.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from enum import Enum


class RoundPhase(Enum):
    """The phases of rounds. `IDLE` is no work: nothing is due, or others lead."""

    IDLE = ("", "idle")
    READ_STORE = ("store", "reading the store")
    PARSE = ("parse", "parsing")
    DECIDE = ("decide", "deciding")
    MEET = ("meet", "meeting the clusters")
    OBSERVE = ("observe", "observing the clusters")
    TICK = ("tick", "looking for replicas without a node")
    READ = ("read", "reading the clusters")
    PLAN = ("plan", "planning")
    DRY_RUN = ("dry-run", "asking for dry runs")
    WRITE = ("write", "making changes")
    RECORD = ("record", "recording")

    def __init__(self, label: str, text: str) -> None:
        """`label`: in metrics. `text`: as it is shown to people."""
        self.label = label
        self.text = text


class Distribution:
    """The count of values up to each bound, and the sum of all. The last count is of values above all bounds."""

    __slots__ = ("counts", "sum")

    def __init__(self, bounds: int) -> None:
        self.counts = [0] * (bounds + 1)
        self.sum = 0.0


class Histograms:
    """One distribution for each combination of labels that was seen."""

    def __init__(self, bounds_s: tuple[float, ...]) -> None:
        """`bounds_s`: the upper bounds of the buckets, in ascending order, without the infinite one."""
        self.bounds_s = bounds_s
        self.found: dict[tuple[str, ...], Distribution] = {}

    def observe(self, labels: tuple[str, ...], seconds: float) -> None:
        """Count a value."""
        found = self.found.get(labels)
        if found is None:
            found = self.found[labels] = Distribution(len(self.bounds_s))
        found.counts[bisect_left(self.bounds_s, seconds)] += 1
        found.sum += seconds

    def keep(self, clusters: frozenset[str]) -> None:
        """Drop values with another first label: a cluster that is gone."""
        for labels in [labels for labels in self.found if labels[0] not in clusters]:
            del self.found[labels]

    def buckets(self, labels: tuple[str, ...]) -> Iterator[tuple[str, int]]:
        """Each bound as Prometheus writes it, with how many values were at most that."""
        so_far = 0
        bounds = (*map(str, self.bounds_s), "+Inf")
        for bound, count in zip(bounds, self.found[labels].counts, strict=True):
            so_far += count
            yield bound, so_far


class Phases:
    """The duration of each phase of rounds, from its first progress report to that of another phase."""

    def __init__(self, histograms: Histograms) -> None:
        self.histograms = histograms
        self._phase = RoundPhase.IDLE
        self._begun_s = 0.0

    def turn(self, phase: RoundPhase, now_s: float) -> None:
        """Begin a phase, or go on with it."""
        if phase is self._phase:
            return
        if self._phase is not RoundPhase.IDLE:
            self.histograms.observe((self._phase.label,), now_s - self._begun_s)
        self._phase, self._begun_s = phase, now_s
