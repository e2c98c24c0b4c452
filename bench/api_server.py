"""Beside kubectl and a bare HTTP client on one real API server: first apply, no-op diff, no-op apply.

334 Deployments, ConfigMaps and Services. Everything is timed as a whole process or loop, A and B in turn, and told as
ratios of medians: the machine's own speed cancels out. Run with `make bench`.
"""

from __future__ import annotations

import asyncio
import json
import os
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from reconciler.adapters.kubeconfig import MemberConfig, load_members
from reconciler.model.cluster import Cluster
from tests.real_clusters import RealCluster, RealClusters

COUNT = 334
ROUNDS = 3
IN_FLIGHT = 16
_PATHS = {"Deployment": "apis/apps/v1", "ConfigMap": "api/v1", "Service": "api/v1"}


@dataclass(slots=True)
class Figures:
    """Seconds by what was timed."""

    seconds: dict[str, list[float]] = field(default_factory=dict)

    def time(self, what: str, work: Callable[[], object]) -> None:
        """Do it once and note how long it took."""
        began = time.perf_counter()
        work()
        self.seconds.setdefault(what, []).append(time.perf_counter() - began)

    def median(self, what: str) -> float:
        """Seconds, the median over the rounds."""
        return statistics.median(self.seconds[what])


def documents(namespace: str) -> list[dict[str, Any]]:
    """The objects of one round."""
    found: list[dict[str, Any]] = []
    for number in range(COUNT):
        name, labels = f"app-{number:03}", {"app": f"app-{number:03}"}
        metadata = {"name": name, "namespace": namespace, "labels": labels}
        container = {"name": "main", "image": "registry.example.com/app:1.0", "ports": [{"containerPort": 8080}],
                     "env": [{"name": f"V{n}", "value": str(n)} for n in range(8)]}  # fmt: skip
        template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
        spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
        found += [
            {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec},
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "x" * 200, "b": str(number)}},
            {"apiVersion": "v1", "kind": "Service", "metadata": metadata,
             "spec": {"selector": labels, "ports": [{"port": 80, "targetPort": 8080}]}},
        ]  # fmt: skip
    return found


def write_store(folder: Path, cluster: str, namespace: str) -> None:
    """A fleet store with the objects and one policy that claims them all."""
    folder.mkdir(parents=True)
    selectors = [
        {"apiVersion": v, "kind": k} for v, k in (("apps/v1", "Deployment"), ("v1", "ConfigMap"), ("v1", "Service"))
    ]
    policy = {"apiVersion": "policy.one.alibabacloud.com/v1alpha1", "kind": "PropagationPolicy",
              "metadata": {"name": "all", "namespace": namespace},
              "spec": {"resourceSelectors": selectors, "placement": {}}}  # fmt: skip
    heads = [
        {"apiVersion": "fleet.reconciler/v1alpha1", "kind": "Fleet", "metadata": {"name": namespace}},
        {"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": cluster}},
        policy,
    ]
    (folder / "fleet.yaml").write_text(yaml.safe_dump_all(heads))
    (folder / "objects.yaml").write_text(yaml.dump_all(documents(namespace), Dumper=yaml.CSafeDumper))


async def raw_applies(config: MemberConfig, bodies: list[dict[str, Any]], namespace: str) -> None:
    """What a bare client needs for the same writes: nothing is read, compared, journaled or ordered."""
    context = ssl.create_default_context(cadata=config.ca.read().decode())
    with tempfile.TemporaryDirectory() as folder:
        certificate, key = Path(folder, "c"), Path(folder, "k")
        certificate.write_bytes(config.client_certificate.read())
        key.touch(mode=0o600)
        key.write_bytes(config.client_key.read())
        context.load_cert_chain(certificate, key)
    slots = asyncio.Semaphore(IN_FLIGHT)
    connector = aiohttp.TCPConnector(ssl=context, limit=IN_FLIGHT)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def one(body: dict[str, Any]) -> None:
            plural = f"{body['kind'].lower()}s"
            url = f"{config.server}/{_PATHS[body['kind']]}/namespaces/{namespace}/{plural}/{body['metadata']['name']}"
            headers = {"Content-Type": "application/apply-patch+yaml"}
            async with slots:
                query = {"fieldManager": "raw", "force": "true"}
                async with session.patch(url, data=json.dumps(body), headers=headers, params=query) as answer:
                    await answer.read()
                    answer.raise_for_status()

        await asyncio.gather(*(one(body) for body in bodies))


def ours(folder: Path, environment: Mapping[str, str], *args: str) -> None:
    """A command of ours as a whole process; it must succeed."""
    command = [sys.executable, "-m", "reconciler", *args[:1], str(folder / "store"), *args[1:]]
    subprocess.run(command, env=dict(environment), check=True, capture_output=True)


def measure(cluster: RealCluster, work: Path) -> Figures:
    """All rounds."""
    figures = Figures()
    configs = load_members(cluster.kubeconfig, [Cluster(name=cluster.name)])
    config = configs[cluster.name]
    assert isinstance(config, MemberConfig), config
    for number in range(ROUNDS):
        folder, namespace, raw = work / str(number), f"bench-{number}", f"raw-{number}"
        write_store(folder / "store", cluster.name, namespace)
        environment = {**os.environ, "RECONCILER_KUBECONFIG": str(cluster.kubeconfig),
                       "RECONCILER_JOURNAL": str(folder / "journal.db")}  # fmt: skip
        cluster.kubectl("create", "namespace", raw)
        bodies = documents(raw)
        figures.time("raw client, first apply", lambda b=bodies, r=raw: asyncio.run(raw_applies(config, b, r)))  # type: ignore[misc]
        figures.time("ours, first apply", lambda f=folder, e=environment: ours(f, e, "apply", "--yes"))  # type: ignore[misc]
        objects = folder / "store" / "objects.yaml"
        diff = ("diff", "--server-side", "--force-conflicts", "-f", str(objects))
        figures.time("kubectl diff --server-side, no-op", lambda d=diff: cluster.kubectl(*d))  # type: ignore[misc]
        figures.time("ours, no-op diff", lambda f=folder, e=environment: ours(f, e, "diff", "--detailed-exitcode"))  # type: ignore[misc]
        figures.time("ours, no-op apply", lambda f=folder, e=environment: ours(f, e, "apply", "--yes"))  # type: ignore[misc]
    return figures


def rows(figures: Figures) -> list[tuple[str, str, str, str]]:
    """(figure, measured, goal, how it was measured)."""
    diff, apply = figures.median("ours, no-op diff"), figures.median("ours, first apply")
    kubectl, raw = figures.median("kubectl diff --server-side, no-op"), figures.median("raw client, first apply")
    again = figures.median("ours, no-op apply")
    return [
        ("no-op diff beside kubectl diff --server-side", f"{kubectl / diff:.1f} x faster", "at least 20 x",
         f"{kubectl:.2f} s / {diff:.2f} s"),
        ("first apply beside a bare client, 16 in flight", f"{apply / raw:.2f} x its time", "at most 1.15 x",
         f"{apply:.2f} s / {raw:.2f} s"),
        ("no-op apply beside no-op diff", f"{again / diff:.2f} x its time", "1 x", f"{again:.2f} s / {diff:.2f} s"),
    ]  # fmt: skip


def main() -> list[tuple[str, str, str, str]]:
    """Measure on a cluster of its own and print the table."""
    binaries = os.environ.get("KUBEBUILDER_ASSETS")
    if not binaries:
        sys.exit("KUBEBUILDER_ASSETS does not name the folder of the Kubernetes binaries; the comparison needs them")
    with RealClusters(Path(binaries)) as clusters, tempfile.TemporaryDirectory() as folder:
        figures = measure(clusters.create("bench"), Path(folder))
    found = rows(figures)
    for row in found:
        print(" | ".join(row))
    return found


if __name__ == "__main__":
    main()
