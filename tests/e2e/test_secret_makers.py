"""An operator makes the Secret that a workload needs: what it makes it of goes along, and the Secret stays its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reconciler.api.clusters import Health
from reconciler.kinds import BUILT_IN_KINDS
from tests.conftest import ThreeClusters
from tests.e2e import secret_operator
from tests.e2e.fleet_on_clusters import FleetOnClusters, is_marked, writes_to
from tests.present import present
from tests.real_clusters import wait_until

pytestmark = pytest.mark.apiserver

WISH, VAULT = f"externalsecret.{secret_operator.GROUP}", f"secretstore.{secret_operator.GROUP}"


@pytest.fixture
def fleet(tmp_path: Path, three_clusters: ThreeClusters) -> FleetOnClusters:
    found = FleetOnClusters(tmp_path, three_clusters, guards={"maxDeletes": 100, "maxDeletePercent": 100})
    for cluster in found.clusters.values():
        secret_operator.install(cluster)
    found.write("makers", *makers(found.namespace))
    found.write("backup", backup(found.namespace))
    # The guard of deletions counts what stays in a cluster: without others, three would pass.
    others = [found.config_map(f"stays-{number}") for number in range(10)]
    policy = found.policy("stays", "ConfigMap", clusters=list(found.clusters))
    del policy["spec"]["resourceSelectors"][0]["name"]
    found.write("stays", policy, *others)
    return found


def makers(namespace: str) -> tuple[dict[str, Any], ...]:
    """An ExternalSecret, its store, and the Secret that the store logs in with."""
    provider = {"vault": {"server": "https://vault", "auth": {"tokenSecretRef": {"name": "token", "key": "t"}}}}
    return (
        {"apiVersion": "external-secrets.io/v1", "kind": "ExternalSecret",
         "metadata": {"name": "of-db", "namespace": namespace},
         "spec": {"secretStoreRef": {"name": "vault"}, "target": {"name": "db"}}},
        {"apiVersion": "external-secrets.io/v1", "kind": "SecretStore",
         "metadata": {"name": "vault", "namespace": namespace}, "spec": {"provider": provider}},
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token", "namespace": namespace},
         "stringData": {"t": "for-tests"}},
    )  # fmt: skip


def backup(namespace: str) -> dict[str, Any]:
    """A CronJob that needs the Secret which the operator makes."""
    container = {"name": "main", "image": "busybox:1", "envFrom": [{"secretRef": {"name": "db"}}]}
    pod = {"restartPolicy": "Never", "containers": [container]}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "backup", "namespace": namespace},
            "spec": {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"template": {"spec": pod}}}}}  # fmt: skip


def place(fleet: FleetOnClusters, *clusters: str) -> None:
    """The policy of the CronJob, for these clusters."""
    policy = fleet.policy("backup", "CronJob", clusters=list(clusters), keep=False, propagateDeps=True)
    policy["spec"]["resourceSelectors"][0]["apiVersion"] = "batch/v1"
    fleet.write("policy", policy)


def there(fleet: FleetOnClusters, cluster: str) -> list[str]:
    """Return those of the objects that a cluster has."""
    kinds = (("cronjob", "backup"), (WISH, "of-db"), (VAULT, "vault"), ("secret", "token"), ("secret", "db"))
    return [name for kind, name in kinds if fleet.live(cluster, kind, name) is not None]


def settle(fleet: FleetOnClusters) -> None:
    """Apply until nothing is left to do: a copy goes after the new one serves, and what it needed after it."""
    for _ in range(6):
        planned = fleet.apply().round.plan
        assert [change.held for change in planned.changes if change.held and "guard" in change.held] == []
        if not planned.changes:
            return
    raise AssertionError("something is due in every round")


def health(fleet: FleetOnClusters, cluster: str) -> Health:
    live = present(fleet.live(cluster, WISH, "of-db"))
    return BUILT_IN_KINDS.of(secret_operator.GROUP, "ExternalSecret").health(live)


def test_what_makes_a_secret_goes_and_leaves_with_who_needs_it(fleet: FleetOnClusters) -> None:
    marks = {name: cluster.mark() for name, cluster in fleet.clusters.items()}
    place(fleet, "m1", "m2")
    found = fleet.apply().round
    assert [problem for problem in found.schedule.problems if problem.code == "dependency-missing"] == []
    for name in ("m1", "m2"):
        assert there(fleet, name) == ["backup", "of-db", "vault", "token"]
        assert health(fleet, name) is Health.PROGRESSING
        written = [line.split()[-1] for line in writes_to(fleet.clusters[name], marks[name])]
        order = [written.index(what) for what in ("token", "vault", "of-db", "backup")]
        assert order == sorted(order), "what is needed comes first"

    # The operator makes the Secret, and copies our marks to it. It is not ours all the same.
    for name in ("m1", "m2"):
        secret_operator.reconcile(fleet.clusters[name], fleet.namespace)
        assert health(fleet, name) is Health.HEALTHY
        assert is_marked(present(fleet.live(name, "secret", "db")))
    assert fleet.plan().changes == ()
    fleet.apply()
    assert fleet.live("m1", "secret", "db") is not None

    # The workload moves: its new cluster gets all of it, and the old one is left without.
    place(fleet, "m2", "m3")
    fleet.apply()
    secret_operator.reconcile(fleet.clusters["m3"], fleet.namespace)
    settle(fleet)
    assert there(fleet, "m3") == ["backup", "of-db", "vault", "token", "db"]
    assert there(fleet, "m2") == ["backup", "of-db", "vault", "token", "db"]
    # The API server collects what the ExternalSecret owned.
    wait_until(lambda: there(fleet, "m1") == [], "m1 to be left", seen=lambda: str(there(fleet, "m1")))

    # The template goes: so do its copies, and what nothing needs any more after them.
    fleet.write("backup")
    fleet.write("policy")
    settle(fleet)
    for name in ("m2", "m3"):
        wait_until(lambda name=name: there(fleet, name) == [], f"{name} to be left")  # type: ignore[misc]
    for name, cluster in fleet.clusters.items():
        ours = {line.split()[-1] for line in writes_to(cluster, marks[name]) if "secrets" in line}
        assert "db" not in ours, "the Secret of the operator is left to it"
