"""Pages of a large fleet while rounds run: `python -m bench.pages 2000 200 [PAGE …]` prints JSON.

Every page comes after another state was published, so that nothing kept helps it. `cpu`: seconds of this process for
one page, `wall`: until it has come whole while another thread renders all the time, as a round does; p95 of each.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import aiohttp
from msgspec.structs import replace

from bench.corpus import store_file
from bench.measure import percentile
from reconciler.api.clusters import Observations
from reconciler.api.fleet import Guards, Snapshot
from reconciler.api.plan import Plan
from reconciler.clock import SystemClock
from reconciler.controller.vitals.service_vitals import StatusSnapshot, Vitals
from reconciler.fleet import parse
from reconciler.kinds.registry import BUILT_IN_KINDS
from reconciler.planner import Round, guards_in_force, render_schedule
from reconciler.report.status.state_document import StateOfFleet
from reconciler.scheduler import Schedule, schedule_fleet
from reconciler.server.http_server import Listening
from reconciler.state import NOMINAL, ClusterState, Degraded, FleetState, HealthWord, Lag, ObjectState, StateFacts
from tests.unit.server.vital_signs import serving

NOW = "2026-11-21T10:00:00Z"
PAGES = 40
PATHS = {
    "fleet": "/",
    "region": "/?region=region-1",
    "troubles": "/?troubles=1",
    "folded": "/?columns=region",
    "folded rows": "/?columns=region&rows=namespace",
    "object": "/objects/Deployment.apps/team-000/web-0000",
    "cluster": "/clusters/m000",
}
_WORKLOAD = """\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web-{number:04d}, namespace: team-{team:03d}, labels: {{team: t{team}}}}}
spec:
  replicas: 3
  selector: {{matchLabels: {{app: web-{number:04d}}}}}
  template:
    metadata: {{labels: {{app: web-{number:04d}}}}}
    spec: {{containers: [{{name: web, image: "nginx:1.27"}}]}}
"""
_CLUSTER = """\
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {{name: m{number:03d}}}
spec: {{region: region-{region}}}
"""
_POLICY = """\
apiVersion: policy.one.alibabacloud.com/v1alpha1
kind: ClusterPropagationPolicy
metadata: {name: all}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]
  placement: {replicaScheduling: {replicaSchedulingType: Duplicated}}
"""


def schedule_of(workloads: int, clusters: int) -> Schedule:
    """The schedule of a store in which every workload is in every cluster."""
    files = {"policy.yaml": _POLICY, "fleet.yaml": "apiVersion: fleet.reconciler/v1alpha1\nkind: Fleet\n"
             "metadata: {name: bench}\n"}  # fmt: skip
    for number in range(clusters):
        files[f"clusters/m{number:03d}.yaml"] = _CLUSTER.format(number=number, region=number % 8)
    for number in range(workloads):
        team = number // 50
        files[f"apps/team-{team:03d}/web-{number:04d}.yaml"] = _WORKLOAD.format(number=number, team=team)
    found = tuple(store_file(path, text.encode()) for path, text in sorted(files.items()))
    fleet = parse(Snapshot(revision="bench", files=found), {})
    return schedule_fleet(fleet, Observations(), NOW, interpreters=BUILT_IN_KINDS)


def states(schedule: Schedule) -> Iterator[StatusSnapshot]:
    """One state after the other; in each some other copies are degraded."""
    manifests: dict[str, dict[object, object]] = {}
    for manifest in render_schedule(schedule).manifests:
        manifests.setdefault(manifest.cluster, {})[manifest.identity] = manifest
    facts = StateFacts(schedule=schedule, manifests=manifests, members={})  # type: ignore[arg-type]
    plan = Plan(base="", head="bench")
    guards = guards_in_force(None, Guards(), "bench", NOW)
    planned = Round(schedule=schedule, manifests=facts.manifests, plan=plan, problems={}, guards=guards)
    bad = ObjectState(sync=NOMINAL.sync, health=Degraded("1 of 3 replicas are available"))
    number = 0
    while True:
        number += 1
        clusters = {}
        for place, (name, found) in enumerate(sorted(manifests.items())):
            picked = list(found)[(number * 7 + place) % 11 :: 997]
            kept = dict.fromkeys(picked, bad)
            clusters[name] = ClusterState(
                name=name,
                notable=kept,  # type: ignore[arg-type]
                syncs=Counter({Lag.SYNCED: len(found)}),
                healths=Counter({HealthWord.HEALTHY: len(found) - len(kept), HealthWord.DEGRADED: len(kept)}),
            )
        state = FleetState(clusters=clusters, facts=facts)
        yield StatusSnapshot(picture=StateOfFleet(round=planned, state=state, time=NOW, number=number), since=NOW)


@contextmanager
def rendering(schedule: Schedule) -> Iterator[None]:
    """Render in another thread, again and again, until the block ends."""
    over = threading.Event()
    few = replace(schedule, bindings=dict(list(schedule.bindings.items())[:100]))

    def work() -> None:
        while not over.is_set():
            render_schedule(few)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


async def measured(workloads: int, clusters: int, *names: str) -> dict[str, dict[str, float]]:
    """Return the figures of each page."""
    schedule = schedule_of(workloads, clusters)
    pictures, vitals = states(schedule), Vitals(fleet="bench", is_ready=True)
    next(pictures)
    gc.collect()
    gc.freeze()  # as the service does after a round
    found: dict[str, dict[str, float]] = {}
    async with (
        serving(Listening(address="127.0.0.1:0"), vitals, SystemClock()) as address,
        aiohttp.ClientSession() as session,
    ):

        async def page(path: str) -> int:
            async with session.get(f"http://{address}{path}") as answer:
                assert answer.status == 200, await answer.text()
                return len(await answer.read())

        for name, path in PATHS.items():
            if names and name not in names:
                continue
            cpu_s, wall_s, size = [], [], 0
            for _ in range(PAGES):
                vitals.status.publish(next(pictures))
                started = time.process_time()
                size = await page(path)
                cpu_s.append(time.process_time() - started)
            with rendering(schedule):
                for _ in range(PAGES):
                    vitals.status.publish(next(pictures))
                    started = time.perf_counter()
                    await page(path)
                    wall_s.append(time.perf_counter() - started)
            found[name] = {"cpu_ms": round(1000 * percentile(cpu_s, 0.95), 1), "kib": round(size / 1024, 1),
                           "wall_ms": round(1000 * percentile(wall_s, 0.95), 1)}  # fmt: skip
            print(name, found[name], file=sys.stderr, flush=True)
    return found


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measured(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:]))))
