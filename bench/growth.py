"""Growth with history, with other files beside the store, and with readers of the page.

Each figure is of a process of its own: processor seconds, the most memory that it held, bytes on disk. Run by hand:
`python -m bench.growth history 10000 100000 1000000`, `… files 0 10000 100000`, `… readers 10 50 200`.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import quantiles
from typing import Any, Final, NamedTuple

import aiohttp
import yaml

from reconciler.api.fleet import HistoryLimits
from reconciler.api.ledger import Event, EventKind
from reconciler.clock import SystemClock, rfc3339
from reconciler.controller.round.reported_conditions import ReportedConditions
from reconciler.controller.vitals.journal_documents import JournalReader
from reconciler.journal.sqlite_journal import Journal
from reconciler.sim import ClusterSpec, background_fleet
from reconciler.store.source import Commits
from tests.e2e.daemon_process import Daemon, GitRepository
from tests.fakes.documents import config_map, policy
from tests.fakes.light_clusters import light_clusters
from tests.soak.idle import MIB, sample
from tests.soak.large_fleet import Large, LargeFleet, most_mib
from tests.unit.cli.journals import journal_at

REVISIONS_MAX: Final = 50_000
PAUSE_S: Final = 10.0
DAY_S: Final = 86_400.0
BEGUN_S: Final = 1_760_000_000.0


class Spent(NamedTuple):
    """Processor seconds of a process, and the most MiB that it held."""

    cpu_s: float
    most_mib: float

    def __str__(self) -> str:
        return f"{self.cpu_s:.2f} s, {self.most_mib:.0f} MiB"


_LAUNCH: Final = """
import os, sys
opened = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
started = os.posix_spawn(sys.executable, [sys.executable, "-m", *sys.argv[1:]], os.environ, file_actions=opened)
_, status, used = os.wait4(started, 0)
print(os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime, used.ru_maxrss)
"""
"""A small process starts another one: of a child of a large one, Linux counts what that held."""


def spent(*words: str | Path) -> Spent:
    """Run a Python module with arguments."""
    command = [sys.executable, "-S", "-c", _LAUNCH, *map(str, words)]
    code, cpu_s, most_kib = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    assert code in ("0", "2"), f"{words}: exit code {code}"
    return Spent(float(cpu_s), int(most_kib) / 1024)


# History


def commits(folder: Path, count: int) -> list[str]:
    """A repository with so many commits of one file; their ids."""
    subprocess.run(["/usr/bin/git", "init", "--quiet", "--bare", str(folder)], check=True)
    stream = "".join(
        f"commit refs/heads/main\nmark :{n + 1}\ncommitter A <a@example.com> {1_700_000_000 + n} +0000\n"
        f"data <<.\nchange {n}\n.\nM 644 inline app.txt\ndata <<.\n{n}\n.\n\n"
        for n in range(count)
    )
    marks = folder / "marks"
    subprocess.run(["/usr/bin/git", "-C", str(folder), "fast-import", "--quiet", f"--export-marks={marks}"], check=True,
                   input=stream.encode())  # fmt: skip
    return [
        line.split()[1] for line in sorted(marks.read_text().splitlines(), key=lambda line: int(line.split()[0][1:]))
    ]


_WRITES: Final = ("updated", "updated", "drift", "updated", "failed", "updated", "created", "updated", "updated",
                  "placed", "updated", "updated")  # fmt: skip


def events(count: int, revisions: Sequence[str]) -> Iterator[Event]:
    """So many events as a fleet of a hundred clusters records them, of 200 days."""
    kinds = (*_WRITES, "placed", "degraded", "recovered", "held", "hold-over", "released", "adopted", "advanced")
    for number in range(count):
        kind, round_ = kinds[number % len(kinds)], number // len(kinds)
        revision = revisions[min(number * len(revisions) // count, len(revisions) - 1)]
        subject = f"Deployment shop/app-{round_ % 1009:04} @ c{round_ % 97:03}"
        if kind == "advanced":
            subject = "store"
        elif kind == "placed":
            subject = subject.partition(" @ ")[0]
        elif kind.startswith("h"):
            subject = f"cluster c{round_ % 97:03}"
        data = {"revision": revision, "cause": "declared", "why": f"commit {number} of a workload " + "x" * 200}
        time = rfc3339(BEGUN_S + 200 * DAY_S * number / count)
        yield Event(round=round_, time=time, kind=EventKind(kind), subject=subject, data=data)


def journal_of(folder: Path, count: int) -> tuple[Path, Path]:
    """A journal with so many events of a twentieth as many revisions, and its repository."""
    store, path = folder / "store.git", journal_at(folder)
    revisions = commits(store, min(REVISIONS_MAX, max(1, count // 20)))
    with Journal.open(path) as journal:
        journal.keep_history(HistoryLimits(events_max=2 * max(count, 100_000)), SystemClock().now())
        journal.record_events(events(count, revisions))
    return path, store


def start(path: Path) -> None:
    """Do what a service does with its journal when it starts."""
    with Journal.open(path) as journal:
        ReportedConditions(journal)


def page(path: Path, store: Path, questions: int = 0) -> None:
    """Read as the page does: the rows beside each view, and the events of a cluster and of an object."""
    reader = JournalReader(path, Commits(str(store), lambda: ()), SystemClock())
    assert not reader.rows().error
    for number in range(questions):
        assert reader.events(cluster=f"c{number % 97:03}", limit=50)
        assert reader.events(about=f"Deployment shop/app-{number % 1009:04}", limit=50)
    reader.close()


def history(sizes: Sequence[int]) -> None:
    """Print a table of what each question about a journal costs."""
    for size in sizes:
        with tempfile.TemporaryDirectory() as name:
            path, store = journal_of(Path(name), size)
            disk = path.stat().st_size / MIB
            at, of = ("--journal", path), ("--store", store)
            asked: Mapping[str, Sequence[Any]] = {
                "nothing, but imports": ("bench.growth", "nothing"),
                "start of a service": ("bench.growth", "start", path),
                "start of the page": ("bench.growth", "page", path, store),
                "the page, and 100 questions": ("bench.growth", "page", path, store, "50"),
                "status": ("reconciler", "status", *at),
                "history": ("reconciler", "history", *at, *of),
                "history of an object": ("reconciler", "history", "Deployment/app-0007", *at, *of),
                "history of a cluster": ("reconciler", "history", "--cluster", "c007", *at, *of),
                "history of a cluster that is not there": ("reconciler", "history", "--cluster", "none", *at, *of),
                "journal verify": ("reconciler", "journal", "verify", *at),
                "journal export": ("reconciler", "journal", "export", *at),
            }
            for title, words in asked.items():
                print(f"| {size:,} | {title} | {spent(*words)} | {disk:.0f} MiB |", flush=True)
            with Journal.open(path) as journal:
                journal.keep_history(HistoryLimits(events_max=max(1000, size // 10)), SystemClock().now())
            compacted = spent("reconciler", "journal", "compact", *at)
            after = path.stat().st_size / MIB
            print(f"| {size:,} | journal compact to a tenth | {compacted} | {after:.0f} MiB |", flush=True)


# Files beside the store


def monorepo(folder: Path, others: int) -> tuple[Path, Path]:
    """A work tree with so many other files, and a store of 300 ConfigMaps in a folder of it; both."""
    store = folder / "mono" / "deploy"
    GitRepository(store, "mono")
    (store / ".git").rename(folder / "mono" / ".git")
    for number in range(300):
        store.joinpath(f"app-{number:03}.yaml").write_text(yaml.safe_dump(config_map(f"app-{number:03}", value="1")))
    store.joinpath("policy.yaml").write_text(yaml.safe_dump(policy("all", "ConfigMap", "m1", "m2")))
    for number in range(others):
        path = folder / "mono" / "src" / f"part-{number // 100:04}" / f"module-{number % 100:02}.py"
        if number % 100 == 0:
            path.parent.mkdir(parents=True)
        path.write_text(f"NUMBER = {number}\n")
    for message, value in (("first", "1"), ("second", "2")):
        store.joinpath("app-007.yaml").write_text(yaml.safe_dump(config_map("app-007", value=value)))
        for words in (
            ("add", "--all"),
            ("-c", "user.name=A", "-c", "user.email=a@b", "commit", "--quiet", "-m", message),
        ):
            subprocess.run(["/usr/bin/git", "-C", str(folder / "mono"), *words], check=True)
    return store, folder / "mono"


def files(sizes: Sequence[int]) -> None:
    """Print a table of what commands cost beside so many other files."""
    for size in sizes:
        with tempfile.TemporaryDirectory() as name:
            store, _ = monorepo(Path(name), size)
            with background_fleet(
                [ClusterSpec(name="m1"), ClusterSpec(name="m2"), ClusterSpec(name="m3")], Path(name)
            ) as fleet:
                live = ("--kubeconfig", fleet.kubeconfig, "--journal", Path(name) / "journal.db")
                asked: Mapping[str, Sequence[Any]] = {
                    "validate": ("reconciler", "validate", store),
                    "diff of two commits": ("reconciler", "diff", store, "--base", "HEAD~1", "--head", "HEAD"),
                    "apply": ("reconciler", "apply", store, *live, "--yes"),
                    "apply again": ("reconciler", "apply", store, *live, "--yes"),
                }
                for title, words in asked.items():
                    print(f"| {size:,} | {title} | {spent(*words)} |", flush=True)
                with Daemon(store, fleet.kubeconfig, Path(name) / "journal.db", "--poll", "0.2").start() as daemon:
                    daemon.follows()
                    time.sleep(10)
                    before = sample(daemon.pid).cpu_s
                    print(
                        f"| {size:,} | service, until it follows | {before:.2f} s, {most_mib(daemon.pid):.0f} MiB |",
                        flush=True,
                    )
                    time.sleep(20)
                    idle = sample(daemon.pid).cpu_s - before
                    print(
                        f"| {size:,} | service at rest, polling five times a second | {idle / 20 * 100:.1f} % |",
                        flush=True,
                    )


# Readers of the page


async def read(address: str, readers: int, seconds: float) -> tuple[list[float], int]:
    """Seconds that each answer took, and the refusals: each reader asks for three pages every ten seconds."""
    took: list[float] = []
    refused = 0

    async def one(number: int) -> None:
        nonlocal refused
        connector = aiohttp.TCPConnector(local_addr=(f"127.0.1.{number % 20 + 1}", 0))
        async with aiohttp.ClientSession(connector=connector) as session:
            end = time.monotonic() + seconds
            await asyncio.sleep(PAUSE_S * number / readers)
            while time.monotonic() < end:
                for path in ("/", "/api/v1/fleet", "/clusters/c007"):
                    begun = time.monotonic()
                    async with session.get(address + path) as answer:
                        await answer.read()
                        refused += answer.status not in (200, 304)
                    took.append(time.monotonic() - begun)
                await asyncio.sleep(PAUSE_S)

    await asyncio.gather(*(one(number) for number in range(readers)))
    return took, refused


def readers(sizes: Sequence[int]) -> None:
    """Print a table of what so many readers of the page cost a service with 100 clusters of 30 objects."""
    for size in sizes:
        with tempfile.TemporaryDirectory() as name, light_clusters() as running:
            fleet = LargeFleet(Path(name), Large(100, 30), running, "--listen", "127.0.0.1:19180")
            with fleet.daemon.start(MALLOC_ARENA_MAX="2") as daemon:
                fleet.wait_written(fleet.large.copies, 3600)
                fleet.wait_at_rest(3600)
                before = sample(daemon.pid)
                took, refused = asyncio.run(read("http://127.0.0.1:19180", size, 30))
                after, most = sample(daemon.pid), most_mib(daemon.pid)
                p50, p95 = (quantiles(took, n=20)[at] for at in (9, 18))
                each = (after.cpu_s - before.cpu_s) / len(took)
                print(
                    f"| {size} | {len(took):,} | {refused} | {1000 * each:.1f} ms "
                    f"| {1000 * p50:.0f}, {1000 * p95:.0f} ms "
                    f"| {before.rss / MIB:.0f}, {most:.0f} MiB |",
                    flush=True,
                )


def main(words: Sequence[str]) -> None:
    """Do what the first word says."""
    what, *rest = words
    if what == "start":
        start(Path(rest[0]))
    elif what == "nothing":
        return
    elif what == "page":
        page(Path(rest[0]), Path(rest[1]), int(rest[2]) if rest[2:] else 0)
    else:
        {"history": history, "files": files, "readers": readers}[what]([int(word) for word in rest])


if __name__ == "__main__":
    main(sys.argv[1:])
