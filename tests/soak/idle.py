"""The cost of an idle daemon: its processor time and its memory, sampled from outside."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

MIB = 1024 * 1024


class Sample(NamedTuple):
    """Monotonic seconds, processor seconds since the process began, resident bytes."""

    at_s: float
    cpu_s: float
    rss: int


class Cost(NamedTuple):
    """Of a stretch of time: its length, processor seconds in it, memory at its begin, at its end, and at most."""

    wall_s: float
    cpu_s: float
    rss_first: int
    rss_last: int
    rss_most: int

    @property
    def share(self) -> float:
        """Processor time as a part of one core."""
        return self.cpu_s / self.wall_s

    @property
    def growth(self) -> int:
        """Bytes that it holds more than at the begin."""
        return self.rss_last - self.rss_first

    def __str__(self) -> str:
        rss = f"RSS {self.rss_first / MIB:.1f} -> {self.rss_last / MIB:.1f} MiB (most {self.rss_most / MIB:.1f})"
        return f"{self.wall_s:.0f} s: {self.cpu_s:.2f} s CPU = {self.share:.2%} of a core, {rss}"


def sample(pid: int) -> Sample:
    """The process now. Source: proc_pid_stat(5)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    ticks, pages = int(fields[11]) + int(fields[12]), int(fields[21])
    return Sample(time.monotonic(), ticks / os.sysconf("SC_CLK_TCK"), pages * os.sysconf("SC_PAGE_SIZE"))


def watch(pid: int, seconds: float, is_running: Callable[[], bool], samples: int = 60) -> list[Sample]:
    """Samples over so many seconds, evenly."""
    began = time.monotonic()
    found = [sample(pid)]
    for number in range(1, samples + 1):
        time.sleep(max(0.0, began + seconds * number / samples - time.monotonic()))
        assert is_running(), "it ended"
        found.append(sample(pid))
    return found


def cost(samples: list[Sample]) -> Cost:
    """Return the cost from the first to the last sample."""
    first, last = samples[0], samples[-1]
    return Cost(
        wall_s=last.at_s - first.at_s,
        cpu_s=last.cpu_s - first.cpu_s,
        rss_first=first.rss,
        rss_last=last.rss,
        rss_most=max(found.rss for found in samples),
    )


def least_share(samples: list[Sample]) -> float:
    """The processor time of its cheapest stretch between two samples, as a part of one core.

    A machine that does other things in between makes the same work dearer, but not in each of the stretches.
    """
    return min(cost([first, last]).share for first, last in pairwise(samples))
