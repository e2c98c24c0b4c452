"""Every row of the table of deletion causes, on real clusters.

Source: design#template-leaves; design#policy-leaves; design#taken-over; design#cluster-leaves; design#moved-by-a-tick;
design#dependency-unneeded; design#frozen; design#release.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.api.plan import Action
from tests.conftest import ThreeClusters
from tests.e2e.fleet_on_clusters import ACK, KARMADA, FleetOnClusters, is_marked, of_action, writes_to
from tests.present import present
from tests.real_clusters import wait_until

pytestmark = pytest.mark.apiserver

FLAVORS = [
    pytest.param(ACK, True, id="ack-keep"),
    pytest.param(ACK, False, id="ack-delete"),
    pytest.param(KARMADA, True, id="karmada-keep"),
    pytest.param(KARMADA, False, id="karmada-delete"),
]


@pytest.fixture
def fleet(tmp_path: Path, three_clusters: ThreeClusters) -> FleetOnClusters:
    return FleetOnClusters(tmp_path, three_clusters)


@pytest.fixture
def nodes(fleet: FleetOnClusters) -> Iterator[None]:
    """A node in m1 and m2, where pods run."""
    name = f"n-{fleet.fleet}"
    for cluster in ("m1", "m2"):
        fleet.clusters[cluster].add_node(name)
    yield
    for cluster in ("m1", "m2"):
        fleet.clusters[cluster].remove_node(name)


def assert_released(fleet: FleetOnClusters, cluster: str, kind: str, name: str) -> None:
    live = fleet.live(cluster, kind, name)
    assert live is not None, f"{kind} {name} is kept in {cluster}"
    assert not is_marked(live)


@pytest.mark.parametrize(("api", "keep"), FLAVORS)
def test_template_that_leaves_the_store(fleet: FleetOnClusters, api: str, keep: bool) -> None:
    fleet.write("policy", fleet.policy("app", "ConfigMap", api=api, keep=keep, clusters=["m1"]))
    fleet.write("app", fleet.config_map("app", a="1"))
    fleet.apply()
    fleet.write("app")
    fleet.apply()
    if keep:
        assert_released(fleet, "m1", "configmap", "app")
        assert present(fleet.live("m1", "configmap", "app"))["data"] == {"a": "1"}
    else:
        assert fleet.live("m1", "configmap", "app") is None
    assert fleet.plan().changes == ()


@pytest.mark.parametrize(("api", "keep"), FLAVORS)
def test_policy_that_leaves(fleet: FleetOnClusters, api: str, keep: bool) -> None:
    fleet.write("policy", fleet.policy("app", "ConfigMap", api=api, keep=keep, clusters=["m1"]))
    fleet.write("app", fleet.config_map("app"))
    fleet.apply()
    fleet.write("policy")
    fleet.apply()
    if api == ACK and not keep:
        assert fleet.live("m1", "configmap", "app") is None
    else:
        assert_released(fleet, "m1", "configmap", "app")
    assert fleet.plan().changes == ()


@pytest.mark.parametrize(("api", "keep"), FLAVORS)
def test_another_policy_that_takes_over(fleet: FleetOnClusters, api: str, keep: bool) -> None:
    fleet.write("policy", fleet.policy("app", "ConfigMap", api=api, keep=keep, clusters=["m1"]))
    fleet.write("app", fleet.config_map("app"))
    fleet.apply()
    before = present(fleet.live("m1", "configmap", "app"))
    fleet.write("policy", fleet.policy("other", "ConfigMap", api=api, keep=keep, clusters=["m1"], selects="app"))
    plan = fleet.apply().round.plan
    assert [(change.action, change.cause.value) for change in plan.changes] == [(Action.UPDATE, "ownership")]
    after = present(fleet.live("m1", "configmap", "app"))
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert "other" in after["metadata"]["annotations"]["fleet.reconciler/owner"]


@pytest.mark.usefixtures("nodes")
@pytest.mark.parametrize(("api", "keep"), FLAVORS)
def test_cluster_that_leaves_the_placement_by_an_edit(fleet: FleetOnClusters, api: str, keep: bool) -> None:
    fleet.write("policy", fleet.policy("app", "Deployment", api=api, keep=keep, clusters=["m1"]))
    fleet.write("app", fleet.deployment("app"))
    fleet.apply()
    fleet.write("policy", fleet.policy("app", "Deployment", api=api, keep=keep, clusters=["m2"]))
    first = fleet.apply().round.plan
    created = [change.cluster for change in of_action(first, Action.CREATE) if change.identity.kind == "Deployment"]
    assert created == ["m2"]
    if api == KARMADA and keep:
        assert_released(fleet, "m1", "deployment", "app")
        return
    assert [change.held for change in of_action(first, Action.DELETE)] == ["waits for m2 healthy"]
    assert fleet.live("m1", "deployment", "app") is not None, "nothing is taken away before m2 is healthy"
    wait_until(lambda: all(change.held is None for change in fleet.plan().changes), "m2 becomes healthy")
    fleet.apply()
    assert fleet.live("m1", "deployment", "app") is None
    assert fleet.live("m2", "deployment", "app") is not None
    assert fleet.plan().changes == ()


def test_dependency_goes_after_its_owner(fleet: FleetOnClusters) -> None:
    environment = [{"configMapRef": {"name": "settings"}}]
    needs = fleet.deployment("app", containers=[{"name": "main", "image": "busybox:1", "envFrom": environment}])
    policy = fleet.policy("app", "Deployment", keep=False, clusters=["m1"], propagateDeps=True)
    fleet.write("policy", policy)
    fleet.write("app", needs, fleet.config_map("settings"))
    fleet.apply()
    since = fleet.clusters["m1"].mark()
    fleet.write("app")
    fleet.apply()
    assert writes_to(fleet.clusters["m1"], since) == [
        f"patch configmaps fleet-{fleet.fleet}",  # Each apply that writes raises the epoch.
        "delete deployments app",
        "delete configmaps settings",
        # Nothing lives in the namespace any more: it is released, never deleted.
        f"patch namespaces {fleet.namespace}",
    ]


def test_cluster_that_is_removed_from_the_store_keeps_its_copies(fleet: FleetOnClusters) -> None:
    fleet.write("policy", fleet.policy("app", "ConfigMap", keep=False))
    fleet.write("app", fleet.config_map("app"))
    fleet.apply()
    since = fleet.clusters["m3"].mark()
    fleet.write("clusters/m3")
    fleet.apply()
    assert writes_to(fleet.clusters["m3"], since) == []
    assert fleet.live("m3", "configmap", "app") is not None
