"""`make bench`: every figure in one run, printed and written to docs/performance.md."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from bench import report
from bench.measure import LOOP_S, calibration_s, compile_as_installed, machine, yaml_mb_per_s

PAIRS = 129_000
WORKLOADS = 10_000
PARTS = {"warm": "second starts", "incremental": "commit after commit", "scaling": "placement at three sizes"}
DOCUMENT = Path(__file__).parent.parent / "docs" / "performance.md"


class Measured(NamedTuple):
    """What was measured, and beside each figure how much longer the calibration loop took than where goals were set."""

    found: dict[str, float]
    factors: dict[str, float]


def part(module: str, workloads: int) -> Measured:
    """What a part measured, in a process of its own, between two calibrations."""
    command = [sys.executable, "-m", f"bench.{module}", str(workloads)]
    before = calibration_s()
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    factor = (before + calibration_s()) / 2 / LOOP_S
    found: dict[str, float] = json.loads(done.stdout)
    return Measured(found, {name: found.get(f"{name}_factor", factor) for name in found})


def best_part(module: str, workloads: int, key: str, rounds: int = 3) -> Measured:
    """Of several runs of a part the whole one with the least of `key`, for the machine as it was then."""
    return min((part(module, workloads) for _ in range(rounds)), key=lambda run: run.found[key] / run.factors[key])


def help_s() -> float:
    """CPU seconds of `reconciler --help`, the best of several."""
    found = []
    for _ in range(7):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-m", "reconciler", "--help"], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(found)


def main() -> None:
    """Measure, print, write."""
    compile_as_installed()
    print("plan of 10,000 workloads ...", flush=True)
    found, factors = best_part("plan", WORKLOADS, "cold")
    for module, words in PARTS.items():
        print(f"{words} ...", flush=True)
        more = part(module, WORKLOADS)
        found |= more.found
        factors |= more.factors
    factors["help"] = calibration_s() / LOOP_S
    found["yaml_mb_per_s"], found["help"] = yaml_mb_per_s(), help_s()
    found["live_check"] = found["settle"] / found["settle_objects"] * PAIRS
    factors["live_check"] = factors["settle"]
    cold = found["cold"] / factors["cold"]
    small = best_part("plan", WORKLOADS // 10, "cold")
    found["scaling_10k"] = cold / 10 / (small.found["cold"] / small.factors["cold"])
    if "--quick" not in sys.argv:
        print("plan of 50,000 workloads ...", flush=True)
        large = part("plan", 5 * WORKLOADS)
        found["scaling_50k"] = large.found["cold"] / large.factors["cold"] / 5 / cold
    beside: list[report.Row] = []
    if os.environ.get("KUBEBUILDER_ASSETS"):
        print("beside kubectl on a real API server ...", flush=True)
        from bench import api_server  # noqa: PLC0415

        beside = api_server.main()
    for row in (*report.rows(found, factors), *report.scaling_rows(found), *beside):
        print(" | ".join(row))
    DOCUMENT.write_text(report.document(machine(), found, beside, factors))


if __name__ == "__main__":
    main()
