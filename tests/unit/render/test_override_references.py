"""The target of a reference that an override adds does not travel along, so one that lies elsewhere is told."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.api.clusters import Observations
from reconciler.api.fleet import Fleet
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.planner import compare_revisions, render_schedule
from reconciler.scheduler import schedule_fleet
from tests.fakes.worlds import NOW, TestBed, config_map, deployment, fleet_of, policy

CONTAINER = "/spec/template/spec/containers/0"
POD = "/spec/template/spec"
SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "app", "namespace": "demo"}}


def overriding(path: str, value: Any, *clusters: str) -> dict[str, Any]:
    rule: dict[str, Any] = {"overriders": {"plaintext": [{"operator": "add", "path": path, "value": value}]}}
    if clusters:
        rule["targetCluster"] = {"clusterNames": list(clusters)}
    return {"apiVersion": "policy.karmada.io/v1alpha1", "kind": "OverridePolicy",
            "metadata": {"name": "o", "namespace": "demo"},
            "spec": {"resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}],
                     "overrideRules": [rule]}}  # fmt: skip


def told(fleet: Fleet) -> list[tuple[str, str]]:
    found = render_schedule(schedule_fleet(fleet, Observations(), NOW, interpreters=BUILT_IN_KINDS)).problems
    assert {problem.code for problem in found} <= {"reference-does-not-travel"}
    assert {str(problem.severity) for problem in found} <= {"warning"}
    return [(problem.cluster, problem.message) for problem in found]


REFERENCES = [
    pytest.param(f"{CONTAINER}/envFrom", [{"configMapRef": {"name": "app"}}], "ConfigMap demo/app", id="envFrom"),
    pytest.param(f"{CONTAINER}/env", [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "app", "key": "a"}}}],
                 "Secret demo/app", id="env"),
    pytest.param(f"{POD}/volumes", [{"name": "v", "configMap": {"name": "app"}}], "ConfigMap demo/app", id="a volume"),
    pytest.param(f"{POD}/volumes", [{"name": "v", "projected": {"sources": [{"secret": {"name": "app"}}]}}],
                 "Secret demo/app", id="a projected volume"),
    pytest.param(f"{POD}/volumes", [{"name": "v", "persistentVolumeClaim": {"claimName": "app"}}],
                 "PersistentVolumeClaim demo/app", id="a claim"),
    pytest.param(f"{POD}/imagePullSecrets", [{"name": "app"}], "Secret demo/app", id="imagePullSecrets"),
    pytest.param(f"{POD}/serviceAccountName", "app", "ServiceAccount demo/app", id="a service account"),
    pytest.param(f"{CONTAINER}", {"name": "more", "image": "i:1", "envFrom": [{"configMapRef": {"name": "app"}}]},
                 "ConfigMap demo/app", id="a whole container"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "value", "ref"), REFERENCES)
def test_reference_that_an_override_adds_is_told_where_it_leads_nowhere(path: str, value: Any, ref: str) -> None:
    fleet = fleet_of(deployment(), policy("Deployment", "m1", "m2"), overriding(path, value, "m2"))
    [(cluster, message)] = told(fleet)
    assert cluster == "m2"
    assert message.startswith(f"OverridePolicy demo/o rule 0 plaintext[0] makes Deployment demo/app refer to {ref}, ")
    assert "reference-does-not-travel" in {problem.code for problem in TestBed().plan(fleet).plan.problems}
    offline = compare_revisions(fleet, fleet, Observations(), NOW, interpreters=BUILT_IN_KINDS)
    assert "reference-does-not-travel" in {problem.code for problem in offline.problems}
    creates = [c for c in TestBed().plan(fleet).plan.changes if c.identity.kind == "Deployment"]
    assert {c.cluster for c in creates} == {"m1", "m2"}, "a warning holds nothing back"


def test_object_that_goes_to_some_clusters_is_missing_in_the_others() -> None:
    override = overriding(f"{CONTAINER}/envFrom", [{"configMapRef": {"name": "app"}}])
    workload = policy("Deployment", "m1", "m2", propagateDeps=True)
    fleet = fleet_of(deployment(), config_map(), policy("ConfigMap", "m1", name="maps"), workload, override)
    assert [cluster for cluster, _ in told(fleet)] == ["m2"]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (f"{CONTAINER}/envFrom", [{"configMapRef": {"name": "app", "optional": True}}]),
        (f"{POD}/volumes", [{"name": "v", "configMap": {"name": "kube-root-ca.crt"}}]),
        (f"{POD}/volumes", [{"name": "v", "emptyDir": {}}]),
        (f"{CONTAINER}/env", [{"name": "A", "value": "1"}]),
    ],
)
def test_what_may_be_missing_is_not_told(path: str, value: Any) -> None:
    assert told(fleet_of(deployment(), policy("Deployment", "m1"), overriding(path, value))) == []


def test_what_follows_another_owner_to_the_cluster_is_there() -> None:
    other = deployment("other")
    other["spec"]["template"]["spec"]["containers"][0]["envFrom"] = [{"configMapRef": {"name": "app"}}]
    override = overriding(f"{CONTAINER}/envFrom", [{"configMapRef": {"name": "app"}}])
    workloads = policy("Deployment", "m1", propagateDeps=True)
    assert told(fleet_of(deployment(), other, config_map(), workloads, override)) == []


def test_what_the_template_refers_to_itself_is_no_matter_of_the_override() -> None:
    workload = deployment()
    workload["spec"]["template"]["spec"]["imagePullSecrets"] = [{"name": "app"}]
    override = overriding(
        f"{CONTAINER}/env", [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "app", "key": "a"}}}]
    )
    assert told(fleet_of(workload, SECRET, policy("Deployment", "m1"), override)) == []


GATEWAYS = "gateway.networking.k8s.io/v1"
LED = [
    pytest.param("HTTPRoute", "/spec/rules", [{"backendRefs": [{"name": "app"}]}], "Service demo/app", id="a rule"),
    pytest.param("HTTPRoute", "/spec/rules/0/backendRefs", [{"name": "app"}], "Service demo/app", id="backends"),
    pytest.param("HTTPRoute", "/spec/rules/0/filters", [{"requestMirror": {"backendRef": {"name": "app"}}}],
                 "Service demo/app", id="a mirror"),
    pytest.param("HTTPRoute", "/spec/rules/0/filters", [{"extensionRef": {"group": "e", "kind": "K", "name": "app"}}],
                 "K demo/app", id="an extension"),
    pytest.param("HTTPRoute", "/spec/parentRefs", [{"group": "", "kind": "Service", "name": "app"}],
                 "Service demo/app", id="a parent"),
    pytest.param("Gateway", "/spec/listeners/0/tls/certificateRefs", [{"name": "app"}], "Secret demo/app",
                 id="a certificate"),
    pytest.param("Gateway", "/spec/tls/backend", {"clientCertificateRef": {"name": "app"}}, "Secret demo/app",
                 id="a client certificate"),
    pytest.param("Gateway", "/spec/tls/frontend/default/validation",
                 {"caCertificateRefs": [{"group": "", "kind": "ConfigMap", "name": "app"}]}, "ConfigMap demo/app",
                 id="an authority"),
    pytest.param("Gateway", "/spec/infrastructure", {"parametersRef": {"group": "e", "kind": "K", "name": "app"}},
                 "K demo/app", id="parameters"),
]  # fmt: skip
SPECS: dict[str, Any] = {
    "HTTPRoute": {"rules": [{"matches": []}]},
    "Gateway": {"listeners": [{"name": "l", "tls": {}}], "tls": {"frontend": {"default": {}}}},
}


@pytest.mark.parametrize(("kind", "path", "value", "ref"), LED)
def test_what_an_override_leads_a_route_to_is_told(kind: str, path: str, value: Any, ref: str) -> None:
    body = {"apiVersion": GATEWAYS, "kind": kind, "metadata": {"name": "app", "namespace": "demo"},
            "spec": SPECS[kind]}  # fmt: skip
    selecting = [{"apiVersion": GATEWAYS, "kind": kind}]
    placing, overrides = policy(kind, "m1", "m2"), overriding(path, value, "m2")
    for found in (placing, overrides):
        found["spec"]["resourceSelectors"] = selecting
    [(cluster, message)] = told(fleet_of(body, placing, overrides))
    assert cluster == "m2"
    assert message.startswith(f"OverridePolicy demo/o rule 0 plaintext[0] makes {kind} demo/app refer to {ref}, ")
