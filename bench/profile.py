"""`make profile`: where the time of a cold plan goes, by function."""

from __future__ import annotations

import cProfile
import gc
import pstats
import sys

from bench import corpus
from bench.measure import make_bodies
from reconciler.fleet import parse
from reconciler.kinds.registry import BUILT_IN_KINDS
from reconciler.planner import render_schedule
from reconciler.scheduler import schedule_fleet

NOW = "2026-11-21T10:00:00Z"


def main(workloads: int) -> None:
    """Profile parse, decide and render, each by itself."""
    gc.disable()
    snapshot, observations = corpus.snapshot(workloads), corpus.observations()
    profile = cProfile.Profile()
    fleet = profile.runcall(parse, snapshot)
    show("parse", profile)
    profile = cProfile.Profile()
    schedule = profile.runcall(lambda: schedule_fleet(fleet, observations, NOW, interpreters=BUILT_IN_KINDS))
    show("decide", profile)
    profile = cProfile.Profile()
    profile.runcall(lambda: make_bodies(render_schedule(schedule)))
    show("render", profile)


def show(name: str, profile: cProfile.Profile) -> None:
    """The functions in which most of the time was spent."""
    print(f"== {name}")
    pstats.Stats(profile).strip_dirs().sort_stats("tottime").print_stats(25)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
