"""`make bench`: every figure in one run, printed and written to docs/performance.md."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from bench import report
from bench.measure import LOOP_S, calibration_s, compile_as_installed, machine, yaml_mb_per_s

PAIRS = 129_000
WORKLOADS = 10_000
_PLANNED = ("bytes", "problems", "parse", "decide", "cold")
DOCUMENT = Path(__file__).parent.parent / "docs" / "performance.md"


def part(module: str, workloads: int, *fleet: str) -> dict[str, float]:
    """Return the measurements of a part, made in a process of its own."""
    command = [sys.executable, "-m", f"bench.{module}", str(workloads), *fleet]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def best_part(module: str, workloads: int, key: str, rounds: int = 3) -> dict[str, float]:
    """Of several runs of a part the whole one with the least of `key`."""
    return min((part(module, workloads) for _ in range(rounds)), key=lambda found: found[key])


def least(module: str, workloads: int, rounds: int = 3) -> dict[str, float]:
    """Of several runs of a part the least of each figure: other work only ever adds to it."""
    runs = [part(module, workloads) for _ in range(rounds)]
    return {key: min(found[key] for found in runs) for key in runs[0]}


def unkind(warm: Mapping[str, float]) -> dict[str, float]:
    """The unkind twin beside the fleet itself, measured in turn. `warm`: what was measured of second starts."""
    found: dict[str, float] = {}
    for module, keys in (("plan", _PLANNED), ("incremental", ("commit_p50", "commit_p99"))):
        runs = [(part(module, WORKLOADS), part(module, WORKLOADS, "unkind")) for _ in range(3)]
        for key in keys:
            found[f"beside_{key}"], found[f"unkind_{key}"] = (min(run[n][key] for run in runs) for n in (0, 1))
    found["unkind_cold_ratio"] = found["unkind_cold"] / found["beside_cold"]
    return found | {"unkind_warm_ratio": warm["warm_unkind"] / warm["warm"]}


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
    loops = [calibration_s()]
    found = best_part("plan", WORKLOADS, "cold")
    loops.append(calibration_s())
    print("second starts ...", flush=True)
    found |= part("warm", WORKLOADS)
    loops.append(calibration_s())
    print("commit after commit ...", flush=True)
    found |= least("incremental", WORKLOADS)
    print("commit after commit under a Rollout ...", flush=True)
    found |= {f"staged_{name}": value for name, value in least("staged", WORKLOADS, 2).items()}
    print("the unkind twin ...", flush=True)
    found |= unkind(found)
    if shutil.which("helm"):
        print("renders and their locks ...", flush=True)
        found |= {f"hydrated_{name}": value for name, value in part("hydration", WORKLOADS).items()}
    print("placement at three sizes ...", flush=True)
    found |= part("scaling", WORKLOADS)
    loops.append(calibration_s())
    found["yaml_mb_per_s"] = yaml_mb_per_s()
    found["help"] = help_s()
    found["live_check"] = found["settle"] / found["settle_objects"] * PAIRS
    small = best_part("plan", WORKLOADS // 10, "cold")
    found["scaling_10k"] = found["cold"] / 10 / small["cold"]
    if "--quick" not in sys.argv:
        print("plan of 50,000 workloads ...", flush=True)
        found["scaling_50k"] = best_part("plan", 5 * WORKLOADS, "cold", 2)["cold"] / 5 / found["cold"]
    loops.append(calibration_s())
    # The figures are the best of several runs, and so is this one.
    factor = min(loops) / LOOP_S
    beside: list[report.Row] = []
    if os.environ.get("KUBEBUILDER_ASSETS"):
        print("beside kubectl on a real API server ...", flush=True)
        from bench import api_server  # noqa: PLC0415

        beside = api_server.main()
    for row in (*report.rows(found, factor), *report.scaling_rows(found), *beside):
        print(" | ".join(row))
    kept = report.by_hand(DOCUMENT.read_text()) if DOCUMENT.exists() else ""
    DOCUMENT.write_text(report.document(machine(), found, beside, factor) + kept)


if __name__ == "__main__":
    main()
