"""Beside kubectl and a bare HTTP client on one real API server: first apply, no-op diff, no-op apply.

334 Deployments, ConfigMaps and Services, and for the diff alone ten times as many. Everything is timed as a whole
process or loop, A and B in turn, and told as ratios of medians: the machine's own speed cancels out. Run with
`make bench`.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from msgspec import Struct, field

from bench.measure import compile_as_installed
from tests.real_clusters import RealCluster, RealClusters, wait_until

COUNT = 334
LARGE = 10
"""So many files of as many objects are the large store: a file holds no more than 10,000."""
LARGE_ROUNDS = 2
ROUNDS = 4
ATTEMPTS = 5
REPEATS = 3


class Figures(Struct):
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


def documents(namespace: str, part: int = 0) -> list[dict[str, Any]]:
    """The objects of one file."""
    found: list[dict[str, Any]] = []
    for number in range(part * COUNT, (part + 1) * COUNT):
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


def write_store(folder: Path, cluster: str, namespace: str, parts: int = 1) -> Path:
    """A fleet store with the objects and one policy that claims them all; the folder of the objects."""
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
    objects = folder / "objects"
    objects.mkdir()
    for part in range(parts):
        text = yaml.dump_all(documents(namespace, part), Dumper=yaml.CSafeDumper)
        (objects / f"{part}.yaml").write_text(text)
    return objects


def bare(kubeconfig: Path, namespace: str, objects: Path) -> None:
    """The bare client as a whole process."""
    command = [sys.executable, "-m", "bench.bare_client", str(kubeconfig), namespace, str(objects)]
    subprocess.run(command, check=True, capture_output=True)


def ours(folder: Path, environment: Mapping[str, str], *args: str) -> None:
    """A command of ours as a whole process; it must succeed."""
    command = [sys.executable, "-m", "reconciler", *args[:1], str(folder / "store"), *args[1:]]
    subprocess.run(command, env=dict(environment), check=True, capture_output=True)


def rest(cluster: RealCluster, namespace: str, count: int = COUNT) -> None:
    """Wait until the controllers have followed: what they still write would slow down whoever comes next."""

    def followed() -> bool:
        kinds = ("replicasets", "endpointslices")
        return all(len(cluster.kubectl("get", kind, "-n", namespace, "-o", "name").split()) >= count for kind in kinds)

    wait_until(followed, f"the ReplicaSets and EndpointSlices of {namespace}", timeout_s=180 * count // COUNT)


def diff_by_kubectl(figures: Figures, what: str, cluster: RealCluster, objects: Path) -> None:
    """Time a diff that finds nothing. A status that a controller writes between its two looks is a difference to it."""
    command = ("diff", "--server-side", "--force-conflicts", "-f", str(objects))
    for attempt in range(ATTEMPTS):
        try:
            figures.time(what, partial(cluster.kubectl, *command))
            return
        except AssertionError:
            if attempt == ATTEMPTS - 1:
                raise


def measure(cluster: RealCluster, work: Path) -> Figures:
    """All rounds."""
    figures = Figures()
    compile_as_installed()
    for number in range(ROUNDS):
        folder, namespace, raw = work / str(number), f"bench-{number}", f"raw-{number}"
        objects = write_store(folder / "store", cluster.name, namespace)
        run = partial(ours, folder, environment(cluster, folder))
        cluster.kubectl("create", "namespace", raw)
        firsts = [
            ("raw client, first apply", partial(bare, cluster.kubeconfig, raw, objects / "0.yaml"), raw),
            ("ours, first apply", partial(run, "apply", "--yes"), namespace),
        ]
        # The server grows slower with what it holds: each goes first as often as the other.
        for what, first, filled in firsts[:: 1 if number % 2 else -1]:
            figures.time(what, first)
            rest(cluster, filled)
        diff_by_kubectl(figures, "kubectl diff --server-side, no-op", cluster, objects)
        for _ in range(REPEATS):
            figures.time("ours, no-op diff", partial(run, "diff", "--detailed-exitcode"))
            figures.time("ours, no-op apply", partial(run, "apply", "--yes"))
    return figures


def measure_large(cluster: RealCluster, work: Path, figures: Figures) -> None:
    """The no-op diff of ten times as many objects, added to the figures."""
    folder, namespace = work / "large", "bench-large"
    objects = write_store(folder / "store", cluster.name, namespace, LARGE)
    run = partial(ours, folder, environment(cluster, folder))
    run("apply", "--yes")
    rest(cluster, namespace, LARGE * COUNT)
    for _ in range(LARGE_ROUNDS):
        diff_by_kubectl(figures, "kubectl diff --server-side, no-op, large", cluster, objects)
        for _ in range(REPEATS):
            figures.time("ours, no-op diff, large", partial(run, "diff", "--detailed-exitcode"))


def environment(cluster: RealCluster, folder: Path) -> dict[str, str]:
    """Return the environment with the cluster and the journal for our commands."""
    return {**os.environ, "RECONCILER_KUBECONFIG": str(cluster.kubeconfig),
            "RECONCILER_JOURNAL": str(folder / "journal.db")}  # fmt: skip


def rows(figures: Figures) -> list[tuple[str, str, str, str]]:
    """(figure, measured, goal, how it was measured), but for the large store."""
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


def large_row(figures: Figures) -> tuple[str, str, str, str]:
    """Return the row of the large store, in the form of `rows`."""
    diff = figures.median("ours, no-op diff, large")
    kubectl = figures.median("kubectl diff --server-side, no-op, large")
    return (f"the same, {3 * LARGE * COUNT:,} objects", f"{kubectl / diff:.1f} x faster", "at least 40 x",
            f"{kubectl:.1f} s / {diff:.2f} s")  # fmt: skip


def main() -> list[tuple[str, str, str, str]]:
    """Measure on a cluster of its own and print the table."""
    binaries = os.environ.get("KUBEBUILDER_ASSETS")
    if not binaries:
        sys.exit("KUBEBUILDER_ASSETS does not name the folder of the Kubernetes binaries; the comparison needs them")
    with RealClusters(Path(binaries)) as clusters, tempfile.TemporaryDirectory() as folder:
        cluster = clusters.create("bench")
        figures = measure(cluster, Path(folder))
        found = rows(figures)
        print(*map(" | ".join, found), sep="\n", flush=True)
        # Its controllers take ten minutes to follow: who stops here has the figures of the small store.
        measure_large(cluster, Path(folder), figures)
    found.insert(1, large_row(figures))
    print(" | ".join(found[1]), flush=True)
    return found


if __name__ == "__main__":
    main()
