"""Seeded desired states and edits by others, per kind: what the diff engines are tried with on a real API server."""

from __future__ import annotations

import copy
from collections.abc import Callable
from random import Random
from typing import Any

from msgspec import Struct

from tests.apiserver.requests_to import APPLY, JSON_PATCH, MERGE, STRATEGIC, Body

Features = dict[str, Any]
"""Choices by name; None leaves the feature out."""


class Edit(Struct, frozen=True):
    """An edit of the live object by others."""

    media_type: str
    body: Any
    manager: str
    subresource: str = ""


class Subject(Struct, frozen=True):
    """A kind under trial. `path` takes (namespace, name)."""

    name: str
    path: str
    choices: dict[str, list[Any]]
    build: Callable[[str, str, Features], Body]
    edits: Callable[[Random], Edit]

    def features(self, rng: Random) -> Features:
        """A desired state."""
        return {name: rng.choice(options) for name, options in self.choices.items()}

    def changed(self, rng: Random, features: Features) -> Features:
        """A later desired state: a few choices made again."""
        return {
            name: rng.choice(options) if rng.random() < 0.25 else features[name]
            for name, options in self.choices.items()
        }


def put(body: Body, value: Any, *steps: str) -> None:
    """Set a value unless it is None, making parents."""
    if value is None:
        return
    for step in steps[:-1]:
        body = body.setdefault(step, {})
    body[steps[-1]] = copy.deepcopy(value)


def metadata(namespace: str, name: str, features: Features) -> Body:
    """metadata with the labels and annotations chosen."""
    body: Body = {"name": name, "namespace": namespace}
    put(body, features.get("labels"), "labels")
    put(body, features.get("annotations"), "annotations")
    return body


LABELS = [None, {}, {"a": "1"}, {"a": "2", "team.example.com/x": "t"}, {"team.example.com/x": "u"}]
ANNOTATIONS = [None, {"note": "x"}, {"note": "y", "example.com/b": ""}, {"example.com/b": "z"}]

_ENV = [
    None,
    [{"name": "A", "value": "1"}],
    [{"name": "B", "value": ""}, {"name": "A", "value": "1"}],
    [{"name": "A", "value": "2"}, {"name": "B", "value": "x"}, {"name": "C", "value": "$(A)"}],
    [{"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
]
_FROM_NAME: Body = {"fieldRef": {"fieldPath": "metadata.name"}}
_NO_SOURCE: Body = {"emptyDir": None, "configMap": None, "projected": None}


def deployment(namespace: str, name: str, f: Features) -> Body:
    """A Deployment with one to three containers."""
    first: Body = {"name": "web", "image": f["image"]}
    for field in ("env", "ports", "resources", "livenessProbe", "securityContext", "args", "stdin", "volumeMounts"):
        put(first, f[field], field)
    containers = [first]
    put_side = f["sidecar"]
    if put_side:
        containers.append(
            {"name": "side", "image": put_side, "env": f["env"]} if f["env"] else {"name": "side", "image": put_side}
        )
    if f["reversed"]:
        containers.reverse()
    pod: Body = {"containers": containers}
    for field in (
        "nodeSelector", "tolerations", "hostNetwork", "volumes", "affinity", "terminationGracePeriodSeconds",
        "imagePullSecrets",
    ):  # fmt: skip
        put(pod, f[field], field)
    if f["volumeMounts"] and not f["volumes"]:
        pod["volumes"] = [{"name": "v", "emptyDir": {}}]
    template: Body = {"metadata": {"labels": {"app": name}}, "spec": pod}
    put(template, f["podAnnotations"], "metadata", "annotations")
    spec: Body = {"selector": {"matchLabels": {"app": name}}, "template": template}
    for field in ("replicas", "strategy", "minReadySeconds", "paused", "revisionHistoryLimit"):
        put(spec, f[field], field)
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata(namespace, name, f), "spec": spec}


def deployment_edit(rng: Random) -> Edit:
    """Return a typical edit of a Deployment by people, autoscalers and other tools."""
    person = rng.choice(["kubectl-edit", "kubectl-patch", "some-operator"])

    def template(body: Body) -> Body:
        return {"spec": {"template": {"spec": body}}}

    def container(body: Body, name: str = "web") -> Body:
        return template({"containers": [{"name": name, **body}]})

    probe = {"tcpSocket": {"port": 8080}, "periodSeconds": 3}
    return rng.choice(
        [
            Edit(STRATEGIC, container({"image": "nginx:9"}), person),
            Edit(STRATEGIC, container({"image": "side:9"}, "side"), person),
            Edit(STRATEGIC, container({"image": "extra:1"}, "extra"), person),
            Edit(STRATEGIC, container({"env": [{"name": "A", "value": "9"}]}), person),
            Edit(STRATEGIC, container({"env": [{"name": "Z", "value": "9"}]}), person),
            Edit(STRATEGIC, container({"env": [{"name": "B", "$patch": "delete"}]}), person),
            Edit(STRATEGIC, container({"livenessProbe": {"periodSeconds": 7, "tcpSocket": {"port": 80}}}), person),
            Edit(STRATEGIC, container({"livenessProbe": None}), person),
            Edit(STRATEGIC, container({"livenessProbe": {"tcpSocket": None, "httpGet": {"port": 81}}}), person),
            Edit(STRATEGIC, container({"livenessProbe": {"httpGet": None, "tcpSocket": {"port": 82}}}), person),
            Edit(STRATEGIC, container({"env": [{"name": "A", "value": None, "valueFrom": _FROM_NAME}]}), person),
            Edit(STRATEGIC, container({"env": [{"name": "N", "valueFrom": None, "value": "n"}]}), person),
            Edit(STRATEGIC, template({"volumes": [{"name": "v", **_NO_SOURCE, "hostPath": {"path": "/x"}}]}), person),
            Edit(STRATEGIC, container({"readinessProbe": probe}), person),
            Edit(STRATEGIC, container({"resources": {"limits": {"cpu": "3"}}}), person),
            Edit(STRATEGIC, container({"resources": {"requests": {"memory": "1Mi"}}}), person),
            Edit(STRATEGIC, container({"securityContext": {"privileged": True}}), person),
            Edit(STRATEGIC, template({"tolerations": [{"key": "edited", "operator": "Exists"}]}), person),
            Edit(STRATEGIC, template({"nodeSelector": {"disk": "hdd"}}), person),
            Edit(STRATEGIC, template({"imagePullSecrets": [{"name": "c"}]}), person),
            Edit(STRATEGIC, template({"imagePullSecrets": [{"name": "a", "$patch": "delete"}]}), person),
            Edit(STRATEGIC, template({"hostNetwork": True}), person),
            Edit(MERGE, {"metadata": {"labels": {"a": "9"}}}, person),
            Edit(MERGE, {"metadata": {"labels": {"a": None, "q": "r"}}}, person),
            Edit(MERGE, {"metadata": {"annotations": {"note": "edited", "other": "o"}}}, person),
            Edit(MERGE, {"spec": {"template": {"metadata": {"annotations": {"restartedAt": "now"}}}}}, person),
            Edit(MERGE, {"spec": {"replicas": 4}}, "autoscaler", "/scale"),
            Edit(MERGE, {"spec": {"replicas": 2, "minReadySeconds": 5}}, person),
            Edit(MERGE, {"spec": {"strategy": {"type": "Recreate", "rollingUpdate": None}}}, person),
            Edit(MERGE, {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 7}}}}, person),
            Edit(MERGE, {"spec": {"paused": True}}, person),
            Edit(MERGE, {"status": {"observedGeneration": 0}}, "status-writer", "/status"),
            Edit(APPLY, {"metadata": {"labels": {"a": "ssa"}}, "spec": {"replicas": 6}}, "other-tool"),
            Edit(APPLY, {"metadata": {"annotations": {"note": "x"}}}, "other-tool"),
            Edit(APPLY, container({"image": "nginx:1", "env": [{"name": "A", "value": "1"}]}), "other-tool"),
            Edit(APPLY, container({"image": "side:1"}, "side"), "other-tool"),
        ]
    )


DEPLOYMENT = Subject(
    name="deployment",
    path="/apis/apps/v1/namespaces/{}/deployments/{}",
    choices={
        "labels": LABELS,
        "annotations": ANNOTATIONS,
        "podAnnotations": [None, {"p": "1"}, {"p": "2", "q": ""}],
        "image": ["nginx:1", "nginx:2"],
        "sidecar": [None, None, "side:1", "side:2"],
        "reversed": [False, False, True],
        "env": _ENV,
        "ports": [
            None,
            [{"containerPort": 80}],
            [{"containerPort": 80, "protocol": "TCP", "name": "w"}, {"containerPort": 80, "protocol": "UDP"}],
            [{"containerPort": 81, "name": "w"}],
        ],
        "resources": [
            None,
            {},
            {"limits": {"cpu": "1000m"}},
            {"limits": {"cpu": 1, "memory": "1024Mi"}, "requests": {"cpu": "0.5"}},
            {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}},
        ],
        "livenessProbe": [
            None,
            None,
            {"tcpSocket": {"port": 80}},
            {"tcpSocket": {"port": "w"}, "periodSeconds": 5},
            {"httpGet": {"port": 80, "httpHeaders": [{"name": "h", "value": "v"}]}, "initialDelaySeconds": 0},
        ],
        "securityContext": [None, {}, {"privileged": False}, {"runAsUser": 0, "capabilities": {"drop": ["ALL"]}}],
        "args": [None, [], ["a"], ["a", "b"]],
        "stdin": [None, False, True],
        "volumeMounts": [None, None, [{"name": "v", "mountPath": "/v", "readOnly": False}]],
        "volumes": [
            None,
            [{"name": "v", "emptyDir": {}}],
            [{"name": "v", "configMap": {"name": "c"}}],
            [{"name": "v", "emptyDir": {"sizeLimit": "1024Mi"}}, {"name": "w", "secret": {"secretName": "s"}}],
            [
                {
                    "name": "v",
                    "projected": {
                        "sources": [
                            {"serviceAccountToken": {"path": "t"}},
                            {"downwardAPI": {"items": [{"path": "l", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
                        ]
                    },
                }
            ],
        ],
        "nodeSelector": [None, {}, {"disk": "ssd"}, {"disk": "ssd", "arch": "arm"}],
        "imagePullSecrets": [None, [{"name": "a"}], [{"name": "b"}, {"name": "a"}], [{"name": "b"}]],
        "tolerations": [
            None,
            [{"key": "a", "operator": "Exists"}],
            [{"key": "a", "value": "1"}, {"operator": "Exists"}],
            [{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}],
        ],
        "affinity": [
            None,
            {
                "podAntiAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [
                        {"topologyKey": "h", "labelSelector": {"matchLabels": {"a": "b"}}}
                    ]
                }
            },
        ],
        "hostNetwork": [None, False],
        "terminationGracePeriodSeconds": [None, 0, 30],
        "replicas": [None, 0, 1, 3],
        "strategy": [
            None,
            {},
            {"type": "RollingUpdate"},
            {"type": "Recreate"},
            {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": "25%"}},
        ],
        "minReadySeconds": [None, 0, 5],
        "paused": [None, False, True],
        "revisionHistoryLimit": [None, 10, 2],
    },
    build=deployment,
    edits=deployment_edit,
)


def service(namespace: str, name: str, f: Features) -> Body:
    """A Service, often with TCP and UDP on one number."""
    spec: Body = {"ports": copy.deepcopy(f["ports"])}
    for field in ("selector", "type", "sessionAffinity", "externalTrafficPolicy", "publishNotReadyAddresses"):
        put(spec, f[field], field)
    put(spec, f["clusterIP"], "clusterIP")
    if f["type"] is None:
        spec.pop("externalTrafficPolicy", None)
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata(namespace, name, f), "spec": spec}


def service_edit(rng: Random) -> Edit:
    """Ports, selector, type and marks changed by others."""
    person = rng.choice(["kubectl-edit", "kubectl-patch"])
    return rng.choice(
        [
            Edit(
                STRATEGIC, {"spec": {"ports": [{"port": 53, "protocol": "TCP", "name": "t", "targetPort": 99}]}}, person
            ),
            Edit(STRATEGIC, {"spec": {"ports": [{"port": 99, "name": "more"}]}}, person),
            Edit(MERGE, {"spec": {"selector": {"app": "edited"}}}, person),
            Edit(MERGE, {"spec": {"sessionAffinity": "ClientIP"}}, person),
            Edit(MERGE, {"spec": {"ports": [{"port": 53, "protocol": "UDP", "name": "u", "targetPort": 8}]}}, person),
            Edit(MERGE, {"spec": {"type": "NodePort"}}, person),
            Edit(MERGE, {"metadata": {"labels": {"a": "9", "x": "y"}}}, person),
            Edit(MERGE, {"metadata": {"annotations": {"note": None}}}, person),
            Edit(APPLY, {"metadata": {"labels": {"a": "1"}}}, "other-tool"),
            Edit(
                APPLY,
                {"spec": {"ports": [{"port": 53, "protocol": "UDP", "name": "u", "targetPort": 5}]}},
                "other-tool",
            ),
            Edit(MERGE, {"status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}}, "lb", "/status"),
        ]
    )


SERVICE = Subject(
    name="service",
    path="/api/v1/namespaces/{}/services/{}",
    choices={
        "labels": LABELS,
        "annotations": ANNOTATIONS,
        "ports": [
            [{"port": 53, "name": "t"}, {"port": 53, "protocol": "UDP", "name": "u"}],
            [
                {"port": 53, "protocol": "UDP", "name": "u", "targetPort": 53},
                {"port": 53, "protocol": "TCP", "name": "t"},
            ],
            [{"port": 53, "protocol": "UDP", "name": "u", "targetPort": "dns"}],
            [{"port": 53, "name": "t", "targetPort": "fifty"}, {"port": 80, "name": "w"}],
            [{"port": 80, "name": "w", "appProtocol": "http"}],
        ],
        "selector": [None, {"app": "x"}, {"app": "y", "b": "c"}],
        "type": [None, "ClusterIP", "NodePort", "LoadBalancer"],
        "sessionAffinity": [None, "None", "ClientIP"],
        "externalTrafficPolicy": [None],
        "publishNotReadyAddresses": [None, False, True],
        "clusterIP": [None, None, ""],
    },
    build=service,
    edits=service_edit,
)


def secret(namespace: str, name: str, f: Features) -> Body:
    """A Secret; one spelling of its base64 has a line break."""
    body: Body = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata(namespace, name, f), "type": "Opaque"}
    put(body, f["data"], "data")
    put(body, f["immutable"], "immutable")
    return body


def secret_edit(rng: Random) -> Edit:
    """Data and marks changed by others."""
    person = rng.choice(["kubectl-edit", "kubectl-patch"])
    return rng.choice(
        [
            Edit(MERGE, {"data": {"k": "ZWRpdA=="}}, person),
            Edit(MERGE, {"data": {"k": None}}, person),
            Edit(MERGE, {"data": {"extra": "ZWRpdA=="}}, person),
            Edit(MERGE, {"stringData": {"l": "edited"}}, person),
            Edit(MERGE, {"metadata": {"labels": {"a": "9"}}}, person),
            Edit(APPLY, {"data": {"k": "dg=="}}, "other-tool"),
            Edit(APPLY, {"data": {"l": "b3RoZXI="}}, "other-tool"),
        ]
    )


SECRET = Subject(
    name="secret",
    path="/api/v1/namespaces/{}/secrets/{}",
    choices={
        "labels": LABELS,
        "annotations": ANNOTATIONS,
        "data": [
            None,
            {"k": "dg=="},
            {"k": "dg==\n", "l": ""},
            {"k": "dmFsdWUtdGhhdC1pcy1sb25n", "l": "eA=="},
            {"k": "dmFsdWUtdGhh\ndC1pcy1sb25n"},
        ],
        "immutable": [None, False],
    },
    build=secret,
    edits=secret_edit,
)


def autoscaler(namespace: str, name: str, f: Features) -> Body:
    """A HorizontalPodAutoscaler of autoscaling/v2: metrics and policies are atomic lists with defaults inside."""
    spec: Body = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "maxReplicas": f["maxReplicas"],
    }
    put(spec, f["minReplicas"], "minReplicas")
    put(spec, f["metrics"], "metrics")
    put(spec, f["behavior"], "behavior")
    return {
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": metadata(namespace, name, f), "spec": spec,
    }  # fmt: skip


def utilization(resource: str, percent: int) -> Body:
    target = {"type": "Utilization", "averageUtilization": percent}
    return {"type": "Resource", "resource": {"name": resource, "target": target}}


def autoscaler_edit(rng: Random) -> Edit:
    """Limits, metrics and behaviour changed by others."""
    person = rng.choice(["kubectl-edit", "kubectl-patch"])
    return rng.choice(
        [
            Edit(MERGE, {"spec": {"maxReplicas": 50}}, person),
            Edit(MERGE, {"spec": {"minReplicas": 2}}, person),
            Edit(MERGE, {"spec": {"metrics": [utilization("cpu", 11)]}}, person),
            Edit(MERGE, {"spec": {"behavior": {"scaleDown": {"stabilizationWindowSeconds": 7}}}}, person),
            Edit(MERGE, {"metadata": {"labels": {"a": "9"}}}, person),
            Edit(MERGE, {"status": {"currentReplicas": 1, "desiredReplicas": 1}}, "hpa", "/status"),
            Edit(APPLY, {"spec": {"minReplicas": 3}}, "other-tool"),
        ]
    )


AUTOSCALER = Subject(
    name="autoscaler",
    path="/apis/autoscaling/v2/namespaces/{}/horizontalpodautoscalers/{}",
    choices={
        "labels": LABELS,
        "annotations": ANNOTATIONS,
        "maxReplicas": [5, 9],
        "minReplicas": [None, 1, 2],
        "metrics": [
            None,
            [utilization("memory", 70), utilization("cpu", 50)],
            [utilization("cpu", 50), utilization("memory", 70)],
            [utilization("cpu", 60)],
            [
                {
                    "type": "Pods",
                    "pods": {"metric": {"name": "m"}, "target": {"type": "AverageValue", "averageValue": "0.5"}},
                }
            ],
        ],
        "behavior": [
            None,
            {},
            {"scaleDown": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]}},
            {"scaleUp": {"stabilizationWindowSeconds": 0, "selectPolicy": "Max"}},
        ],
    },
    build=autoscaler,
    edits=autoscaler_edit,
)

_STRING = {"type": "string"}
_INTEGER = {"type": "integer"}
CRD: Body = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.test.fleet.example"},
    "spec": {
        "group": "test.fleet.example",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                            "spec": {
                                "type": "object",
                                "properties": {
                                    "size": {"type": "integer", "default": 3},
                                    "ratio": {"type": "number"},
                                    "mode": {"type": "string", "nullable": True},
                                    "flag": {"type": "boolean"},
                                    "limit": {
                                        "x-kubernetes-int-or-string": True,
                                        "anyOf": [_INTEGER, _STRING],
                                    },
                                    "rules": {
                                        "type": "array",
                                        "x-kubernetes-list-type": "map",
                                        "x-kubernetes-list-map-keys": ["name", "kind"],
                                        "items": {
                                            "type": "object",
                                            "required": ["name"],
                                            "properties": {
                                                "name": _STRING,
                                                "kind": {"type": "string", "default": "plain"},
                                                "weight": {"type": "integer", "default": 1},
                                                "tags": {
                                                    "type": "array",
                                                    "x-kubernetes-list-type": "set",
                                                    "items": _STRING,
                                                },
                                            },
                                        },
                                    },
                                    "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": _STRING},
                                    "ports": {"type": "array", "x-kubernetes-list-type": "set", "items": _INTEGER},
                                    "steps": {
                                        "type": "array",
                                        "items": {
                                            "type": "object",
                                            "properties": {"run": _STRING, "tries": {"type": "integer", "default": 1}},
                                        },
                                    },
                                    "nested": {
                                        "type": "object",
                                        "additionalProperties": {
                                            "type": "object",
                                            "properties": {"x": _STRING, "y": _STRING},
                                        },
                                    },
                                    "frozen": {
                                        "type": "object",
                                        "x-kubernetes-map-type": "atomic",
                                        "additionalProperties": _STRING,
                                    },
                                    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                                },
                            },
                        },
                    }
                },
            }
        ],
    },
}


def widget(namespace: str, name: str, f: Features) -> Body:
    """A custom resource with every kind of list and map."""
    spec = {field: copy.deepcopy(value) for field, value in f.items() if value is not None}
    for field in ("labels", "annotations"):
        spec.pop(field, None)
    if spec.get("mode") == "null":
        spec["mode"] = None
    return {
        "apiVersion": "test.fleet.example/v1", "kind": "Widget",
        "metadata": metadata(namespace, name, f), "spec": spec,
    }  # fmt: skip


def widget_edit(rng: Random) -> Edit:
    """Every kind of list and map changed by others."""
    person = rng.choice(["kubectl-edit", "some-operator"])

    def spec(body: Body, manager: str = person, media_type: str = MERGE) -> Edit:
        return Edit(media_type, {"spec": body}, manager)

    return rng.choice(
        [
            spec({"size": 9}),
            spec({"size": None}),
            spec({"mode": "edited"}),
            spec({"limit": "9%"}),
            spec({"rules": [{"name": "a", "kind": "plain", "weight": 9}]}),
            spec({"rules": [{"name": "z", "kind": "fancy"}, {"name": "a", "kind": "plain"}]}),
            spec({"tags": ["edited"]}),
            spec({"ports": [1, 2, 99]}),
            spec({"steps": [{"run": "edited"}]}),
            spec({"steps": [{"run": "a", "tries": 7}]}),
            spec({"nested": {"a": {"x": "edited"}, "z": {"x": "1"}}}),
            spec({"nested": {"a": None}}),
            spec({"frozen": {"edited": "1"}}),
            spec({"free": {"deep": {"edited": 1}}}),
            spec({"free": {"list": ["edited"]}}),
            Edit(MERGE, {"metadata": {"labels": {"a": "9"}}}, person),
            Edit(JSON_PATCH, [{"op": "add", "path": "/metadata/finalizers", "value": []}], person),
            Edit(MERGE, {"status": {"phase": "x"}}, "status-writer", "/status"),
            spec({"rules": [{"name": "a", "weight": 2}]}, "other-tool", APPLY),
            spec({"rules": [{"name": "q", "kind": "fancy"}]}, "other-tool", APPLY),
            spec({"tags": ["t1", "other"]}, "other-tool", APPLY),
            spec({"nested": {"a": {"y": "other"}}}, "other-tool", APPLY),
            spec({"frozen": {"other": "1"}}, "other-tool", APPLY),
            spec({"steps": [{"run": "other"}]}, "other-tool", APPLY),
        ]
    )


WIDGET = Subject(
    name="widget",
    path="/apis/test.fleet.example/v1/namespaces/{}/widgets/{}",
    choices={
        "labels": LABELS,
        "annotations": ANNOTATIONS,
        "size": [None, 0, 3, 4],
        "ratio": [None, 1, 1.0, 0.5],
        "mode": [None, "null", "", "fast"],
        "flag": [None, True, False],
        "limit": [None, 1, "1", "50%"],
        "rules": [
            None,
            [],
            [{"name": "a"}],
            [{"name": "a", "weight": 2}, {"name": "a", "kind": "fancy"}],
            [{"name": "b", "tags": ["x", "y"]}, {"name": "a", "kind": "plain", "tags": []}],
            [{"name": "a", "tags": ["y"]}, {"name": "b", "tags": ["y", "z"]}],
        ],
        "tags": [None, [], ["t1"], ["t1", "t2"], ["t2", "t1", "t3"]],
        "ports": [None, [1], [2, 1]],
        "steps": [
            None,
            [],
            [{"run": "a"}],
            [{"run": "a", "tries": 1}],
            [{"run": "a", "tries": 2}, {"run": "b"}],
            [{"run": "a"}, {"run": "b", "tries": 4}],
        ],
        "nested": [None, {}, {"a": {}}, {"a": {"x": "1"}}, {"a": {"x": "1", "y": "2"}, "b": {"y": "3"}}],
        "frozen": [None, {}, {"k": "1"}, {"k": "2", "l": "3"}],
        "free": [None, {}, {"deep": {"a": 1, "b": []}}, {"list": [1, {"x": None}], "deep": {}}, {"list": []}],
    },
    build=widget,
    edits=widget_edit,
)

SUBJECTS = (DEPLOYMENT, SERVICE, SECRET, AUTOSCALER, WIDGET)
