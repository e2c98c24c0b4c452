"""Measures of time and memory: CPU time of this process, the best of several runs, beside a calibration loop."""

from __future__ import annotations

import compileall
import gc
import os
import platform
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, TypeVar

import yaml

import reconciler
from bench import corpus
from reconciler.render import Rendering

Result = TypeVar("Result")

LOOP_S: Final = 0.0155
"""The calibration loop on the machine for which the goals were set, when nothing else ran."""


def compile_as_installed() -> None:
    """Byte code as an installation has it: an environment that forbids writing it would measure the compiler."""
    compileall.compile_dir(Path(reconciler.__file__).parent, quiet=1)


def timed(run: Callable[[], Result]) -> tuple[float, Result]:
    """CPU seconds of this process for one run, and what it gave."""
    started = time.process_time()
    result = run()
    return time.process_time() - started, result


def best(run: Callable[[], Any], rounds: int = 3) -> float:
    """The fewest CPU seconds of several runs; what a run gave is gone before the next one."""
    found = []
    for _ in range(rounds):
        found.append(timed(run)[0])
        gc.collect()
    return min(found)


def make_bodies(rendering: Rendering) -> None:
    """Make the bodies that nobody has asked for."""
    for manifest in rendering.manifests:
        # Most clusters share a content, and asking each manifest for its body would measure the asking.
        if manifest.content.tree is None:
            manifest.content.body()


def calibration_s() -> float:
    """CPU seconds of a fixed loop of plain Python: dictionaries, tuples and text."""

    def loop() -> None:
        table: dict[tuple[str, int], str] = {}
        for number in range(100_000):
            table["k", number % 5_000] = f"v{number}"

    return best(loop, 7)


def yaml_mb_per_s() -> float:
    """Return how fast PyYAML's CSafeLoader reads files of the fleet."""
    texts = [corpus.workload_file(index // 100, index % 100) for index in range(200)]

    def load() -> None:
        for text in texts:
            list(yaml.load_all(text, yaml.CSafeLoader))

    return sum(map(len, texts)) / best(load) / 1e6


def percentile(values: Sequence[float], share: float) -> float:
    """The value that this share of all does not exceed (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(0, -int(-share * len(ordered) // 1) - 1)]


def peak_rss_mib() -> float:
    """The most memory that this process has held."""
    status = Path("/proc/self/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))) / 1024


def machine() -> dict[str, str]:
    """Return the machine and the versions of a measurement."""
    names = [line.partition(":")[2].strip() for line in _cpu_info() if line.startswith("model name")]
    packages = ("pyyaml", "pygit2", "orjson", "msgspec", "aiohttp", "kubernetes")
    return {
        "processor": f"{names[0] if names else platform.machine()}, {os.cpu_count()} cores",
        "system": f"{platform.system()} {platform.release()}, Python {platform.python_version()}",
        "packages": ", ".join(f"{name} {version(name)}" for name in packages),
    }


def _cpu_info() -> list[str]:
    path = Path("/proc/cpuinfo")
    return path.read_text().splitlines() if path.exists() else []
