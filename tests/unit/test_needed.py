"""The rights that a store needs in its clusters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pytest

from reconciler.api.clusters import Observations
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.rights import Level, NeededRights, needed_rights, resource_names
from reconciler.scheduler import schedule_fleet
from tests.fakes.worlds import NOW, config_map, deployment, fleet_of
from tests.unit.policy_cases import cases

RBAC: Final = "rbac.authorization.k8s.io"


def _object(api_version: str, kind: str, name: str, namespace: str = "", **body: Any) -> dict[str, Any]:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **body}


def _policy(kind: str, name: str, api_version: str, template: str, **placement: Any) -> dict[str, Any]:
    namespace = "demo" if kind == "PropagationPolicy" else ""
    spec = {"resourceSelectors": [{"apiVersion": api_version, "kind": template}], "placement": placement}
    return _object("policy.karmada.io/v1alpha1", kind, name, namespace, spec=spec)


def _with_secret() -> dict[str, Any]:
    body = deployment()
    reference = {"secretKeyRef": {"name": "elsewhere", "key": "password"}}
    body["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "PASSWORD", "valueFrom": reference}]
    return body


DYNAMIC: Final = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted",
                  "weightPreference": {"dynamicWeight": "AvailableReplicas"}}  # fmt: skip
SCHEMA: Final = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
DOCUMENTS: Final[Mapping[str, dict[str, Any]]] = {
    "config-map": config_map(),
    "system-config": _object("v1", "ConfigMap", "c", "kube-system"),
    "secret": _object("v1", "Secret", "s", "demo"),
    "service": _object("v1", "Service", "web", "demo", spec={"ports": [{"port": 80}]}),
    "deployment": deployment(),
    "stateful-set": _object("apps/v1", "StatefulSet", "db", "demo", spec=deployment()["spec"]),
    "deployment-with-secret": _with_secret(),
    "namespace": _object("v1", "Namespace", "demo"),
    "priority-class": _object("scheduling.k8s.io/v1", "PriorityClass", "high", value=10),
    "by-capacity": _policy("PropagationPolicy", "p", "apps/v1", "Deployment", replicaScheduling=DYNAMIC),
    "claims-namespaces": _policy("ClusterPropagationPolicy", "spaces", "v1", "Namespace"),
    "role": _object(f"{RBAC}/v1", "Role", "reader", "demo", rules=[]),
    "role-binding": _object(f"{RBAC}/v1", "RoleBinding", "b", "demo",
                            roleRef={"apiGroup": RBAC, "kind": "ClusterRole", "name": "view"}, subjects=[]),
    "definition": _object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "widgetz.ex.io",
                          spec={"group": "ex.io", "scope": "Namespaced", "versions": [SCHEMA],
                                "names": {"plural": "widgetz", "singular": "widget", "kind": "Widget"}}),
    "widget": _object("ex.io/v1", "Widget", "w", "demo"),
    "gateway": _object("gateway.networking.k8s.io/v1", "Gateway", "g", "demo"),
    "gateway-class": _object("gateway.networking.k8s.io/v1", "GatewayClass", "c"),
    "route": _object("gateway.networking.k8s.io/v1", "HTTPRoute", "r", "demo"),
    "backend-tls": _object("gateway.networking.k8s.io/v1", "BackendTLSPolicy", "b", "demo"),
}  # fmt: skip


def _needed(case: Mapping[str, Any]) -> NeededRights:
    fleet = fleet_of(*(DOCUMENTS[name] for name in case["store"]))
    schedule = schedule_fleet(fleet, Observations(), NOW, interpreters=BUILT_IN_KINDS)
    recorded = [(group, kind) for group, kind in case.get("recorded", ())]
    return needed_rights(
        schedule,
        Level(case["level"]),
        recorded,
        resource_names(fleet),
        "fleet-shop",
        is_leased=case.get("is_leased", False),
    )


@pytest.mark.parametrize("case", cases("rights/rights.yaml"))
def test_rights_of_a_store(case: dict[str, Any]) -> None:
    found = _needed(case)
    assert sorted(map(str, found.rights)) == sorted(case["rights"])
    assert [list(kind) for kind in found.unknown] == case.get("unknown", [])


@pytest.mark.parametrize("case", cases("rights/rights.yaml"))
def test_each_level_has_the_rights_of_the_one_before(case: dict[str, Any]) -> None:
    """Else a person who is given more could do less."""

    def single(level: Level) -> set[tuple[str, str, str, tuple[str, ...]]]:
        rights = _needed({**case, "level": level}).rights
        return {(verb, right.group, right.resource, right.names) for right in rights for verb in right.verbs}

    read, apply, full = map(single, Level)
    for less, more in ((read, apply), (apply, full)):
        of_all = {(verb, group, resource) for verb, group, resource, names in more if not names}
        assert {right for right in less - more if right[:3] not in of_all} == set()
    assert {verb for verb, *_ in read} <= {"get", "list", "watch"}
    assert "delete" not in {verb for verb, *_ in apply}


def test_no_right_is_a_wildcard() -> None:
    documents = [DOCUMENTS[name] for name in DOCUMENTS if name != "widget"]
    fleet = fleet_of(*documents)
    schedule = schedule_fleet(fleet, Observations(), NOW, interpreters=BUILT_IN_KINDS)
    found = needed_rights(schedule, Level.FULL, [], resource_names(fleet), "fleet-shop").rights
    assert not [right for right in found if "*" in str(right)]
