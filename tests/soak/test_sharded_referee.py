"""What judges the trials of sharded fleets is shown what it must not let pass: else it would pass everything."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
import yaml

from reconciler.sim import ClusterSpec, background_fleet
from tests.soak.sharded_referee import CLUSTERS, NAME, SYSTEM, Referee

Write = Callable[..., None]
MARK = f"fleet-{NAME}"
CONFIG_MAPS, JOBS = "api/v1/namespaces/{}/configmaps", "apis/batch/v1/namespaces/{}/jobs"
DEPLOYMENTS = "apis/apps/v1/namespaces/{}/deployments"
JOB = {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}


@pytest.fixture
def judged(tmp_path: Path) -> Iterator[tuple[Referee, Write]]:
    """A referee, and how a process writes in a cluster."""
    with background_fleet([ClusterSpec(name=name) for name in CLUSTERS], tmp_path) as fleet:
        config = yaml.safe_load(fleet.kubeconfig.read_text())
        servers = {entry["name"]: entry["cluster"]["server"] for entry in config["clusters"]}

        def write(process: str, cluster: str, kind: str, namespace: str, name: str, **body: Any) -> None:
            url, method, data = f"{servers[cluster]}/{kind.format(namespace)}", "POST", None
            if body.get("gone"):
                url, method = f"{url}/{name}", "DELETE"
            else:
                data = json.dumps({"metadata": {"name": name, "namespace": namespace}, **body}).encode()
            head = {"User-Agent": f"{process}/fleet-reconciler x", "Content-Type": "application/json"}
            with urlopen(Request(url, data, head, method=method), timeout=60) as answer:  # noqa: S310 - on loopback
                assert answer.status < 300

        for cluster in CLUSTERS:
            for namespace in ("demo", SYSTEM):
                write("somebody", cluster, "api/v1/namespaces", "", namespace)
        yield Referee(fleet), write


def test_who_holds_a_cluster_may_write_there(judged: tuple[Referee, Write]) -> None:
    referee, write = judged
    write("p0", "m1", CONFIG_MAPS, SYSTEM, MARK, data={"holder": "one"})
    write("p0", "m1", CONFIG_MAPS, "demo", "a")
    assert (referee.writes, referee.violations) == (1, [])


def test_whoever_writes_where_another_holds_is_found(judged: tuple[Referee, Write]) -> None:
    referee, write = judged
    write("p0", "m1", CONFIG_MAPS, SYSTEM, MARK, data={"holder": "one"})
    write("p1", "m1", CONFIG_MAPS, "demo", "a")
    write("p1", "m2", CONFIG_MAPS, "demo", "a")
    assert [found.partition(":")[0] for found in referee.violations] == [
        "p1 writes a in m1, which p0 holds",
        "p1 writes a in m2, which nobody holds",
    ]


def test_whoever_writes_after_he_released_a_cluster_is_found(judged: tuple[Referee, Write]) -> None:
    referee, write = judged
    write("p0", "m1", CONFIG_MAPS, SYSTEM, MARK, data={"released": "now"})
    write("p0", "m1", CONFIG_MAPS, "demo", "a")
    assert referee.violations


def test_whoever_takes_away_the_last_copy_that_serves_is_found(judged: tuple[Referee, Write]) -> None:
    referee, write = judged
    write("p0", "m1", CONFIG_MAPS, SYSTEM, MARK, data={"holder": "one"})
    labels = {"app": "mover"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    write("p0", "m1", DEPLOYMENTS, "demo", "mover", spec=spec)
    write("p0", "m1", DEPLOYMENTS, "demo", "mover", gone=True)
    assert referee.violations == ["p0 takes mover out of m1, and it serves nowhere else"]


def test_a_run_that_begins_twice_is_found(judged: tuple[Referee, Write]) -> None:
    referee, write = judged
    for cluster in ("m1", "m2"):
        write("p0", cluster, CONFIG_MAPS, SYSTEM, MARK, data={"holder": "one"})
        write("p0", cluster, JOBS, "demo", "job0", spec=JOB)
    assert len(referee.jobs["job0"]) == 2
