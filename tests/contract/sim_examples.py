"""Objects that users write, sparse as users write them. Used on embedded and on real clusters."""

from __future__ import annotations

from typing import Any

Body = dict[str, Any]


def config_map(name: str = "cfg", **data: str) -> Body:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def deployment(name: str = "web", *, replicas: int | None = 2, image: str = "nginx:1.25", **container: Any) -> Body:
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": "main", "image": image, **container}]},
    }
    spec: Body = {"selector": {"matchLabels": {"app": name}}, "template": template}
    if replicas is not None:
        spec["replicas"] = replicas
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": spec,
    }


def _pod_spec(**more: Any) -> Body:
    return {"containers": [{"name": "c", "image": "busybox"}], **more}


RICH_CONTAINER: Body = {
    "ports": [{"containerPort": 80}, {"containerPort": 53, "protocol": "UDP", "name": "dns"}],
    "env": [
        {"name": "A", "value": "b"},
        {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
    ],
    "envFrom": [{"configMapRef": {"name": "cfg"}}],
    "resources": {"requests": {"cpu": "0.5", "memory": "1024Mi"}, "limits": {"cpu": "1000m"}},
    "volumeMounts": [{"name": "c", "mountPath": "/c"}, {"name": "t", "mountPath": "/t"}],
    "livenessProbe": {"httpGet": {"port": 80}},
    "readinessProbe": {"tcpSocket": {"port": "dns"}, "periodSeconds": 3},
    "args": ["a", "b"],
    "securityContext": {"runAsNonRoot": True},
}


def rich_deployment() -> Body:
    """A Deployment that uses most of what users use."""
    body = deployment("rich", **RICH_CONTAINER)
    body["spec"]["template"]["spec"] |= {
        "volumes": [{"name": "c", "configMap": {"name": "cfg"}}, {"name": "t", "emptyDir": {}}],
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "serviceAccountName": "default",
        "imagePullSecrets": [{"name": "pull"}],
        "initContainers": [{"name": "init", "image": "busybox:1", "command": ["true"]}],
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {}}
        ],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}]
                }
            }
        },
    }
    body["metadata"]["annotations"] = {"note": "x"}
    body["spec"]["strategy"] = {"rollingUpdate": {"maxSurge": 1}}
    return body


def _of(api_version: str, kind: str, name: str, **fields: Any) -> Body:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **fields}


def _labelled(name: str, **spec: Any) -> Body:
    template = {"metadata": {"labels": {"app": name}}, "spec": _pod_spec()}
    return {"selector": {"matchLabels": {"app": name}}, "template": template, **spec}


EXAMPLES: dict[str, tuple[str, Body]] = {
    "deployment": ("apis/apps/v1/deployments", deployment()),
    "rich deployment": ("apis/apps/v1/deployments", rich_deployment()),
    "recreate deployment": (
        "apis/apps/v1/deployments",
        {**deployment("re"), "spec": {**deployment("re")["spec"], "strategy": {"type": "Recreate"}}},
    ),
    "stateful set": (
        "apis/apps/v1/statefulsets",
        _of("apps/v1", "StatefulSet", "db", spec=_labelled("db", serviceName="db")),
    ),
    "daemon set": ("apis/apps/v1/daemonsets", _of("apps/v1", "DaemonSet", "ds", spec=_labelled("ds"))),
    "job": (
        "apis/batch/v1/jobs",
        _of("batch/v1", "Job", "j", spec={"completions": 2, "template": {"spec": _pod_spec(restartPolicy="Never")}}),
    ),
    "cron job": (
        "apis/batch/v1/cronjobs",
        _of(
            "batch/v1",
            "CronJob",
            "cj",
            spec={
                "schedule": "0 0 * * *",
                "jobTemplate": {"spec": {"template": {"spec": _pod_spec(restartPolicy="OnFailure")}}},
            },
        ),
    ),
    "config map": ("api/v1/configmaps", config_map(a="1", b="2")),
    "secret": ("api/v1/secrets", _of("v1", "Secret", "s", stringData={"p": "x"}, data={"k": "aGVsbG8="})),
    "service": (
        "api/v1/services",
        _of("v1", "Service", "web", spec={"selector": {"app": "web"}, "ports": [{"port": 80}]}),
    ),
    "headless service": (
        "api/v1/services",
        _of("v1", "Service", "head", spec={"clusterIP": "None", "selector": {"app": "web"}}),
    ),
    "node port service": (
        "api/v1/services",
        _of(
            "v1",
            "Service",
            "np",
            spec={
                "type": "NodePort",
                "ports": [{"port": 80, "name": "a"}, {"port": 81, "name": "b", "targetPort": "x"}],
            },
        ),
    ),
    "load balancer": (
        "api/v1/services",
        _of("v1", "Service", "lb", spec={"type": "LoadBalancer", "ports": [{"port": 80}]}),
    ),
    "external name": (
        "api/v1/services",
        _of("v1", "Service", "ext", spec={"type": "ExternalName", "externalName": "a.example"}),
    ),
    "autoscaler": (
        "apis/autoscaling/v2/horizontalpodautoscalers",
        _of(
            "autoscaling/v2",
            "HorizontalPodAutoscaler",
            "web",
            spec={
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "none"},
                "maxReplicas": 5,
                "metrics": [
                    {
                        "type": "Resource",
                        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
                    }
                ],
            },
        ),
    ),
    "ingress": (
        "apis/networking.k8s.io/v1/ingresses",
        _of(
            "networking.k8s.io/v1",
            "Ingress",
            "ing",
            spec={
                "defaultBackend": {"service": {"name": "web", "port": {"number": 80}}},
                "tls": [{"hosts": ["a.example"]}],
            },
        ),
    ),
    "network policy": (
        "apis/networking.k8s.io/v1/networkpolicies",
        _of("networking.k8s.io/v1", "NetworkPolicy", "np", spec={"podSelector": {}, "policyTypes": ["Ingress"]}),
    ),
    "disruption budget": (
        "apis/policy/v1/poddisruptionbudgets",
        _of(
            "policy/v1", "PodDisruptionBudget", "pdb", spec={"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}
        ),
    ),
    "service account": (
        "api/v1/serviceaccounts",
        _of("v1", "ServiceAccount", "sa", imagePullSecrets=[{"name": "pull"}]),
    ),
    "role": (
        "apis/rbac.authorization.k8s.io/v1/roles",
        _of(
            "rbac.authorization.k8s.io/v1",
            "Role",
            "r",
            rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
        ),
    ),
    "role binding": (
        "apis/rbac.authorization.k8s.io/v1/rolebindings",
        _of(
            "rbac.authorization.k8s.io/v1",
            "RoleBinding",
            "rb",
            roleRef={"kind": "Role", "name": "r", "apiGroup": "rbac.authorization.k8s.io"},
            subjects=[{"kind": "ServiceAccount", "name": "sa", "namespace": "default"}, {"kind": "User", "name": "u"}],
        ),
    ),
}


def path_of(kind_path: str, namespace: str, name: str = "") -> str:
    """`apis/apps/v1/deployments` in a namespace, as a URL path."""
    prefix, _, plural = kind_path.rpartition("/")
    return f"/{prefix}/namespaces/{namespace}/{plural}" + (f"/{name}" if name else "")


GADGETS: Body = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "gadgets.sim.example"},
    "spec": {
        "group": "sim.example",
        "scope": "Namespaced",
        "names": {"plural": "gadgets", "kind": "Gadget", "shortNames": ["gd"]},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {
                    "status": {},
                    "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"},
                },
                "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "required": ["size"],
                                "properties": {
                                    "size": {"type": "integer", "minimum": 0},
                                    "color": {"type": "string", "default": "red", "enum": ["red", "blue"]},
                                    "parts": {
                                        "type": "array",
                                        "x-kubernetes-list-type": "map",
                                        "x-kubernetes-list-map-keys": ["name"],
                                        "items": {
                                            "type": "object",
                                            "required": ["name"],
                                            "properties": {"name": {"type": "string"}, "mass": {"type": "integer"}},
                                        },
                                    },
                                    "tags": {
                                        "type": "array",
                                        "x-kubernetes-list-type": "set",
                                        "items": {"type": "string"},
                                    },
                                    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                                },
                            },
                            "status": {"type": "object", "properties": {"size": {"type": "integer"}}},
                        },
                    }
                },
            }
        ],
    },
}
