"""Vital signs for tests."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any

from msgspec.structs import replace

from reconciler.api.problem import Problem, Severity, Source
from reconciler.clock import Clock
from reconciler.controller.vitals.service_vitals import StatusSnapshot, StatusStore, Vitals
from reconciler.journal.sqlite_journal import Journal
from reconciler.server import http_server
from reconciler.server.http_server import Listening
from reconciler.state import ClusterState, Lag
from reconciler.store.source import Commits


@asynccontextmanager
async def serving(
    listening: Listening,
    vitals: Vitals,
    clock: Clock,
    *,
    journal: Path | None = None,
    stop: asyncio.Event | None = None,
) -> AsyncIterator[str]:
    """The pages of a service; without `journal`, of one whose journal is empty."""
    commits, stop = Commits("", tuple), stop or asyncio.Event()
    with TemporaryDirectory() as folder:
        if journal is None:
            journal = Path(folder, "journal.db")
            Journal.open(journal).close()
        async with http_server.serving(
            listening, vitals, clock, journal=journal, commits=commits, stop=stop
        ) as address:
            yield address


def cluster_state(
    name: str,
    syncs: Mapping[Lag, int] = MappingProxyType({}),
    *,
    why_away: str | None = None,
    last_contact: str = "",
) -> ClusterState:
    return ClusterState(name=name, notable={}, syncs=syncs, healths={}, why_away=why_away, last_contact=last_contact)


def busy(hostile: str = "") -> Vitals:
    """A daemon with two clusters, one of them down; `hostile` is put wherever a stranger could."""
    status = StatusStore()
    status.publish(
        StatusSnapshot(
            clusters={
                "m1": cluster_state("m1", {Lag.SYNCED: 3, Lag.HELD: 1}, last_contact="2026-11-21T10:01:00Z"),
                "m2": cluster_state("m2", why_away=f"no answer{hostile}"),
            },
            problems=(
                Problem(
                    severity=Severity.WARNING,
                    code="odd",
                    source=Source("a.yaml", 3),
                    path="spec",
                    message=f"odd{hostile}",
                ),
            ),
            held={"guard": 2, "other": 0},
            last_round_at="2026-11-21T10:01:00Z",
        )
    )
    return Vitals(
        status=status,
        started_at="2026-11-21T10:00:00Z",
        fleet="shop",
        source=f"https://example.com/fleet.git main{hostile}",
        revision="5f3c9d2a",
        source_read_at="2026-11-21T10:00:05Z",
        phase="idle",
        is_ready=True,
        heartbeat_s=100.0,
        rounds=7,
        durations_s={"look": 0.25, "plan": 0.5},
        changes=Counter({("m1", "update", "done"): 4}),
        drifts=Counter({"m1": 1}),
    )


def showing(vitals: Vitals, **values: Any) -> None:
    vitals.status.publish(replace(vitals.snapshot, **values))
