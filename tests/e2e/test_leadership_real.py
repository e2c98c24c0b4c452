"""A leader that is killed, and one that sleeps past its Lease, on three real clusters, judged by their audit logs.

Each process is somebody else to the API servers, so that their logs say who wrote what and when. Source: ADR 20.
"""

from __future__ import annotations

import json
import os
import signal
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import ThreeClusters
from tests.e2e.daemon_process import Daemon, GitRepository
from tests.fakes.documents import config_map, policy
from tests.real_clusters import RealCluster, wait_until
from tests.yaml_text import load_yaml

pytestmark = pytest.mark.apiserver

FLEET = f"led-{uuid.uuid4().hex[:6]}"
CLUSTERS = ("m1", "m2", "m3")


def as_somebody(kubeconfig: Path, who: str, folder: Path) -> Path:
    """The kubeconfig of somebody whom the audit logs tell from others."""
    document = load_yaml(kubeconfig.read_text())
    for user in document["users"]:
        user["user"] |= {"as": who, "as-groups": ["system:masters"]}
    path = folder / f"{who}.kubeconfig"
    path.write_text(yaml.safe_dump(document))
    path.chmod(0o600)
    return path


class Scene:
    """Two processes of a fleet, a store, and what the audit logs say of their writes."""

    def __init__(self, clusters: ThreeClusters, folder: Path) -> None:
        self.clusters: dict[str, RealCluster] = dict(zip(CLUSTERS, clusters[:3], strict=True))
        self.namespace = clusters[0].new_namespace("led")
        self.store = GitRepository(folder / "store", FLEET, CLUSTERS, ha={"cluster": "m3", "leaseDuration": "10s"})
        self.put("first")
        self.processes = {
            who: Daemon(self.store.folder, as_somebody(clusters[3], who, folder), folder / who / "journal.db")
            for who in ("one", "two")
        }
        self._since = {name: cluster.mark() for name, cluster in self.clusters.items()}

    def put(self, value: str) -> None:
        documents = [config_map(name, value=value) for name in ("settings", "more")]
        claims = [policy(name, "ConfigMap", "m1", "m2") for name in ("settings", "more")]
        for document in (*documents, *claims):
            document["metadata"]["namespace"] = self.namespace
        self.store.write("settings.yaml", *documents)
        self.store.write("policies.yaml", *claims)
        self.store.commit(value)

    def has(self, value: str) -> None:
        def values() -> set[str]:
            found = (self.clusters[name].get("configmaps", "-n", self.namespace)["items"] for name in ("m1", "m2"))
            ours = [each for items in found for each in items if each["metadata"]["name"] in ("settings", "more")]
            return {each["data"]["value"] for each in ours} if len(ours) == 4 else set()

        def said() -> str:
            return str({who: process.text()[-1500:] for who, process in self.processes.items()})

        wait_until(lambda: values() == {value}, f"{value} everywhere", seen=said)

    def writes(self) -> list[tuple[float, str, str]]:
        """(time, who, cluster) of each write that was made, but for those of the Lease and what stands beside it."""
        found = []
        for name, cluster in self.clusters.items():
            for event in cluster.writes(self._since[name], "fleet-reconciler"):
                who = event.get("impersonatedUser", {}).get("username", "")
                reference = event.get("objectRef", {})
                beside = reference.get("resource") == "leases" or reference.get("name") == f"fleet-{FLEET}-handover"
                if who in self.processes and not beside and event["responseStatus"]["code"] < 300:
                    found.append((_moment(event), who, name))
        return sorted(found)


def _moment(event: dict[str, Any]) -> float:
    return datetime.fromisoformat(event["requestReceivedTimestamp"].replace("Z", "+00:00")).timestamp()


@contextmanager
def led(clusters: ThreeClusters, folder: Path) -> Iterator[Scene]:
    scene = Scene(clusters, folder)
    one, two = scene.processes["one"], scene.processes["two"]
    with one, two:
        one.start()
        one.says('"Leads"')
        two.start()
        two.says('"StandsBy"')
        scene.has("first")
        yield scene


def test_the_next_leader_writes_in_time_and_never_beside_the_one_before(
    three_clusters: ThreeClusters, tmp_path: Path
) -> None:
    with led(three_clusters, tmp_path) as scene:
        one, two = scene.processes["one"], scene.processes["two"]
        scene.put("second")
        one.kill()
        scene.has("second")
        two.says('"Leads"')

        one.start()
        one.says('"StandsBy"')
        scene.put("third")
        time.sleep(0.2)  # The moment is the case: it is asleep while it has something to write.
        os.kill(two.pid, signal.SIGSTOP)
        scene.put("fourth")
        scene.has("fourth")
        os.kill(two.pid, signal.SIGCONT)
        two.says('"LeadLost"')
        scene.put("fifth")
        scene.has("fifth")
        assert two.stop() == 0
        assert one.stop() == 0
        writers = [who for _, who, _ in scene.writes()]
        changed_hands = [who for who, following in pairwise(writers) if who != following]
        assert changed_hands == ["one", "two"], "the lead changed twice, and who slept past its Lease wrote no more"


def test_what_a_hand_writes_into_the_lease_makes_no_second_writer_and_locks_nobody_out(
    three_clusters: ThreeClusters, tmp_path: Path
) -> None:
    with led(three_clusters, tmp_path) as scene:
        one, two = scene.processes["one"], scene.processes["two"]

        def edit(**spec: Any) -> None:
            words = ("patch", "lease", f"fleet-{FLEET}", "-n", "fleet-system", "--type", "merge")
            scene.clusters["m3"].kubectl(*words, "-p", json.dumps({"spec": spec}))

        edit(leaseTransitions=2**31 - 1)
        scene.put("second")
        scene.has("second")
        one.kill()
        edit(leaseTransitions=2**31 - 1)
        scene.put("third")
        scene.has("third")
        one.start().says('"StandsBy"')  # before that it takes no signals
        # Who holds it is not asked, and has much to write.
        edit(holderIdentity=None)
        for number in range(4, 10):
            scene.put(str(number))
            time.sleep(0.5)  # writes that are spread over the time of a Lease are the case
        scene.has("9")
        writers = [who for _, who, _ in scene.writes()]
        changed_hands = [who for who, following in pairwise(writers) if who != following]
        assert changed_hands in (["one"], ["one", "two"]), "nobody wrote beside another"
        assert two.stop() == 0
        assert one.stop() == 0
