"""Distributions of seconds, cheap enough to be kept of every request: one bisection and two additions each."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Final

_PHASES: Final = {
    "reading the store": "store",
    "parsing": "parse",
    "deciding": "decide",
    "meeting the clusters": "meet",
    "observing the clusters": "observe",
    "looking for replicas": "tick",
    "reading the clusters": "read",
    "planning": "plan",
    "asking for dry runs": "dry-run",
    "making": "write",
    "recording": "record",
}
"""The beginning of a shown phase, with its name in metrics. Others are no work: idle, waiting."""


class Distribution:
    """The count of values up to each bound, and the sum of all. The last count is of values above all bounds."""

    __slots__ = ("counts", "sum")

    def __init__(self, bounds: int) -> None:
        """Nothing was observed."""
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
        """Nothing is worked on."""
        self.histograms = histograms
        self._text = ""
        self._name = ""
        self._begun_s = 0.0

    def turn(self, text: str, now_s: float) -> None:
        """This is done now, as it is shown to people."""
        if text == self._text:
            return
        self._text = text
        name = next((name for begin, name in _PHASES.items() if text.startswith(begin)), "")
        if name == self._name:
            return
        if self._name:
            self.histograms.observe((self._name,), now_s - self._begun_s)
        self._name, self._begun_s = name, now_s
