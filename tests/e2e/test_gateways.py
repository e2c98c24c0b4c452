"""Routes, Gateways and what they need on real clusters, with health as their controllers would tell it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler.api.clusters import LiveObject
from reconciler.api.plan import Action, Cause
from reconciler.api.refs import GVK, Identity
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.state import health_of
from tests.conftest import ThreeClusters
from tests.e2e.fleet_on_clusters import FleetOnClusters, of_action, writes_to
from tests.fakes.gateway_api import DEFINITIONS, GROUP
from tests.real_clusters import RealCluster
from tests.yaml_text import load_yaml

pytestmark = pytest.mark.apiserver

Body = dict[str, Any]
CLUSTERS = ("m1", "m2")


@pytest.fixture(scope="module")
def members(three_clusters: ThreeClusters) -> Iterator[ThreeClusters]:
    """Clusters that serve the Gateway API, as long as these tests run: others look at what is served."""
    names = [definition["metadata"]["name"] for definition in DEFINITIONS]
    for cluster in (three_clusters.m1, three_clusters.m2):
        cluster.apply(*DEFINITIONS)
        cluster.kubectl("wait", "--for=condition=Established", "--timeout=60s", *(f"crd/{name}" for name in names))
    yield three_clusters
    for cluster in (three_clusters.m1, three_clusters.m2):
        cluster.kubectl("delete", "crd", *names)


@pytest.fixture
def fleet(tmp_path: Path, members: ThreeClusters) -> FleetOnClusters:
    guards = {"maxDeletes": 100, "maxDeletePercent": 100}
    return FleetOnClusters(tmp_path, members, guards=guards)


def of(kind: str, name: str, namespace: str = "", version: str = "v1", **spec: Any) -> Body:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": f"{GROUP}/{version}", "kind": kind, "metadata": metadata, "spec": spec}


def service(name: str, namespace: str) -> Body:
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": namespace},
            "spec": {"selector": {"app": name}, "ports": [{"port": 80}]}}  # fmt: skip


def selecting(fleet: FleetOnClusters, name: str, *bodies: Body, **spec: Any) -> Body:
    """A ClusterPropagationPolicy for these objects, to m1 and m2."""
    placement = {"clusterAffinity": {"clusterNames": list(CLUSTERS)}}
    selectors = [{"apiVersion": body["apiVersion"], "kind": body["kind"], "name": body["metadata"]["name"],
                  "namespace": body["metadata"].get("namespace", "")} for body in bodies]  # fmt: skip
    for found in selectors:
        if not found["namespace"]:
            del found["namespace"]
    return {"apiVersion": "policy.one.alibabacloud.com/v1alpha1", "kind": "ClusterPropagationPolicy",
            "metadata": {"name": f"{name}-{fleet.fleet}"},
            "spec": {"resourceSelectors": selectors, "placement": placement, **spec}}  # fmt: skip


def said(fleet: FleetOnClusters, cluster: str, kind: str, name: str) -> tuple[str, str]:
    """Health of an object in a cluster and why."""
    body = fleet.live(cluster, f"{kind.lower()}.{GROUP}", name)
    assert body is not None
    gvk = GVK.parse(body["apiVersion"], kind)
    identity = Identity(GROUP, kind, body["metadata"].get("namespace", ""), name)
    live = LiveObject(gvk=gvk, identity=identity, uid="u", resource_version="1", body=body)
    found = health_of(live, BUILT_IN_KINDS.of(GROUP, kind))
    return str(found.word), found.why


def tell(cluster: RealCluster, body: Body, **conditions: str) -> None:
    """Write the status of an object as its controller would; each condition by `True`, or by `False Reason`."""
    kind, metadata = body["kind"], body["metadata"]
    where = ["-n", metadata["namespace"]] if "namespace" in metadata else []
    seen = cluster.get(f"{kind.lower()}.{GROUP}", metadata["name"], *where)
    told = [
        {"type": name, "status": word.split()[0], "reason": word.split()[-1], "message": "by the test",
         "observedGeneration": seen["metadata"]["generation"], "lastTransitionTime": "2026-11-21T10:00:00Z"}
        for name, word in conditions.items()
    ]  # fmt: skip
    parents = seen["spec"].get("parentRefs", ())
    by_parent = [{"parentRef": parent, "controllerName": "a.example/c", "conditions": told} for parent in parents]
    status = {"parents": by_parent} if kind == "HTTPRoute" else {"conditions": told}
    cluster.kubectl("patch", f"{kind.lower()}.{GROUP}", metadata["name"], *where, "--subresource=status",
                    "--type=merge", "-p", json.dumps({"status": status}), "--field-manager=controller")  # fmt: skip


def test_what_people_write_is_at_rest_beside_defaults_and_status(fleet: FleetOnClusters) -> None:
    space = fleet.namespace
    shared = of("GatewayClass", f"c-{fleet.fleet}", controllerName="a.example/c")
    listeners = [{"name": "https", "port": 443, "protocol": "HTTPS", "tls": {"certificateRefs": [{"name": "cert"}]}},
                 {"name": "http", "port": 80, "protocol": "HTTP"}]  # fmt: skip
    front = of("Gateway", "front", space, gatewayClassName=f"c-{fleet.fleet}", listeners=listeners)
    headers = {"set": [{"name": "a", "value": "b"}]}
    filters = [{"type": "RequestMirror", "requestMirror": {"backendRef": {"name": "web", "port": 80}}},
               {"type": "RequestHeaderModifier", "requestHeaderModifier": headers}]  # fmt: skip
    route = of("HTTPRoute", "web", space, parentRefs=[{"name": "front"}], hostnames=["a.example"], rules=[
        {"backendRefs": [{"name": "web", "port": 80}, {"name": "next", "port": 80, "weight": 0}]},
        {"matches": [{"path": {"value": "/x"}, "headers": [{"name": "h", "value": "v"}]}], "filters": filters,
         "backendRefs": [{"name": "web", "port": 80}]}])  # fmt: skip
    bare = of("HTTPRoute", "bare", space, parentRefs=[{"name": "front", "sectionName": "http"}])
    grant = of("ReferenceGrant", "in", space, "v1beta1",
               **{"from": [{"group": GROUP, "kind": "HTTPRoute", "namespace": "other"}]},
               to=[{"group": "", "kind": "Service"}])  # fmt: skip
    cert = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "cert", "namespace": space}, "type": "Opaque",
            "stringData": {"tls.crt": "c"}}  # fmt: skip
    bodies = (shared, front, route, bare, grant)
    fleet.write("all", *bodies, cert, service("web", space), service("next", space))
    fleet.write("policy", selecting(fleet, "all", *bodies, propagateDeps=True))
    created = [change for change in of_action(fleet.apply().round.plan, Action.CREATE) if change.cluster == "m1"]
    names = {str(change.identity) for change in created}
    assert names >= {f"Secret {space}/cert", f"Service {space}/web", f"Service {space}/next"}
    assert fleet.plan().changes == ()
    for cluster in CLUSTERS:
        assert said(fleet, cluster, "Gateway", "front")[0] == "Progressing"
        tell(fleet.clusters[cluster], shared, Accepted="True")
        tell(fleet.clusters[cluster], front, Accepted="True", Programmed="True")
        tell(fleet.clusters[cluster], route, Accepted="True", ResolvedRefs="True")
        assert said(fleet, cluster, "GatewayClass", f"c-{fleet.fleet}") == ("Healthy", "")
        assert said(fleet, cluster, "Gateway", "front") == ("Healthy", "")
        assert said(fleet, cluster, "HTTPRoute", "web") == ("Healthy", "")
        assert said(fleet, cluster, "HTTPRoute", "bare") == (
            "Progressing", f"Gateway {space}/front (http) has not answered yet",
        )  # fmt: skip
    since = fleet.clusters["m1"].mark()
    assert fleet.apply().round.plan.changes == ()
    assert writes_to(fleet.clusters["m1"], since) == [], "nothing is written, and nothing is asked by a dry run"

    route["spec"]["rules"][0]["backendRefs"][1]["weight"] = 1
    fleet.write("all", *bodies, cert, service("web", space), service("next", space))
    changes = fleet.apply().round.plan.changes
    assert {(str(change.identity), *(field.path for field in change.fields)) for change in changes} == {
        (f"HTTPRoute {space}/web", "spec.rules")
    }
    assert said(fleet, "m1", "HTTPRoute", "web") == (
        "Progressing", f"Gateway {space}/front has not seen the newest spec yet",
    )  # fmt: skip
    assert fleet.plan().changes == ()
    fleet.clusters["m2"].kubectl("patch", f"httproute.{GROUP}", "web", "-n", space, "--type=merge", "-p",
                                 '{"spec": {"hostnames": ["b.example"]}}')  # fmt: skip
    (change,) = fleet.apply().round.plan.changes
    assert (change.cluster, change.cause) == ("m2", Cause.DRIFT)
    assert fleet.plan().changes == ()


def test_a_workload_takes_its_routes_along_and_they_leave_after_it(fleet: FleetOnClusters) -> None:
    space, data = fleet.namespace, f"{fleet.namespace}-data"
    route = of("HTTPRoute", "web", space, parentRefs=[{"name": "front", "namespace": "infra"}], rules=[
        {"backendRefs": [{"name": "web", "port": 80}, {"name": "db", "namespace": data, "port": 80}]}])  # fmt: skip
    grant = of("ReferenceGrant", "in", data, "v1beta1",
               **{"from": [{"group": GROUP, "kind": "HTTPRoute", "namespace": space}]},
               to=[{"group": "", "kind": "Service", "name": "db"}])  # fmt: skip
    governing = fleet.policy("web", "Deployment", clusters=["m1"], propagateDeps=True, keep=False)
    governing["metadata"]["annotations"] = {"fleet.reconciler/bring": "services,routes"}
    fleet.write("web", fleet.deployment("web", 0), service("web", space), route)
    fleet.write("data", service("db", data), grant)
    fleet.write("policy", governing)

    def there(cluster: str) -> set[str]:
        """Return what of it is in a cluster, in both namespaces."""
        kinds = f"deployments,services,httproutes.{GROUP},referencegrants.{GROUP}"
        found = [load_yaml(fleet.clusters[cluster].kubectl("get", kinds, "-n", name, "-o", "json"))["items"]
                 for name in (space, data)]  # fmt: skip
        return {f"{item['kind']} {item['metadata']['name']}" for items in found for item in items}

    everything = {"Deployment web", "Service web", "HTTPRoute web", "Service db", "ReferenceGrant in"}
    fleet.apply()
    assert (there("m1"), there("m2")) == (everything, set())
    assert fleet.plan().changes == ()

    governing["spec"]["placement"]["clusterAffinity"]["clusterNames"] = ["m1", "m2"]
    fleet.write("policy", governing)
    fleet.apply()
    assert there("m1") == there("m2") == everything
    assert fleet.plan().changes == ()
    tell(fleet.clusters["m1"], route, Accepted="True", ResolvedRefs="True")
    tell(fleet.clusters["m2"], route, Accepted="True", ResolvedRefs="False BackendNotFound")
    assert said(fleet, "m1", "HTTPRoute", "web") == ("Healthy", "")
    assert said(fleet, "m2", "HTTPRoute", "web") == (
        "Degraded", "Gateway infra/front does not find what it refers to (BackendNotFound: by the test)",
    )  # fmt: skip
    assert fleet.plan().changes == (), "status is the controllers'"

    governing["spec"]["placement"]["clusterAffinity"]["clusterNames"] = ["m2"]
    fleet.write("policy", governing)
    first = of_action(fleet.apply().round.plan, Action.DELETE)
    assert [change.identity.kind for change in first if change.held is None] == ["Deployment"]
    assert there("m1") == everything - {"Deployment web"}
    fleet.apply()
    assert (there("m1"), there("m2")) == (set(), everything)
    assert fleet.plan().changes == ()
