"""Table answers, with the columns that `kubectl get` prints for the usual kinds."""

from __future__ import annotations

import json
from calendar import timegm
from collections.abc import Callable
from time import strptime

from reconciler.sim.objects.kinds import Resource
from reconciler.sim.objects.selectors import selector_text
from reconciler.sim.objects.status import Body, Json
from reconciler.sim.state.state import State

Cells = list[Json]
NONE = "<none>"


def table(state: State, resource: Resource, bodies: list[Body], metadata: Body, *, include: str) -> Body:
    """A meta.k8s.io/v1 Table of the objects. `include` is Metadata, Object or None, as in the query."""
    columns, cells = _layout(resource, state.now_s)
    rows: list[Body] = []
    for body in bodies:
        embedded: Body | None = {
            "kind": "PartialObjectMetadata",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": body["metadata"],
        }
        if include == "Object":
            embedded = body
        elif include == "None":
            embedded = None
        rows.append({"cells": cells(body), "object": embedded})
    version = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}
    return {**version, "columnDefinitions": columns, "rows": rows}


def _column(text: str) -> Body:
    """`Name`, `Ready:integer`; a trailing `*` marks a column that only `-o wide` shows."""
    is_wide = text.endswith("*")
    name, _, kind = text.rstrip("*").partition(":")
    form = "name" if name == "Name" else ""
    return {"name": name, "type": kind or "string", "format": form, "description": "", "priority": int(is_wide)}


def _layout(resource: Resource, now_s: float) -> tuple[list[Body], Callable[[Body], Cells]]:
    layout = _KINDS.get(resource.kind) if not resource.is_custom else None
    if layout is not None:
        names, rest = layout
        columns = [_column(text) for text in names.split(", ")]
        index = next((i for i, column in enumerate(columns) if column["name"] == "Age"), None)

        def cells(body: Body) -> Cells:
            values = [body["metadata"]["name"], *rest(body)]
            if index is not None:
                values.insert(index, age(body["metadata"].get("creationTimestamp"), now_s))
            return values

        return columns, cells
    return _custom_layout(resource, now_s)


def _custom_layout(resource: Resource, now_s: float) -> tuple[list[Body], Callable[[Body], Cells]]:
    extra = list(resource.columns) or [{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}]
    if not resource.is_custom:
        extra = [{"name": "Created At", "type": "date", "jsonPath": ".metadata.creationTimestamp"}]
    columns = [_column("Name")] + [
        {"name": c["name"], "type": c["type"], "format": c.get("format", ""), "description": "",
         "priority": c.get("priority", 0)}
        for c in extra
    ]  # fmt: skip

    def cells(body: Body) -> Cells:
        values: Cells = [body["metadata"]["name"]]
        for column in extra:
            value: Json = body
            for step in column["jsonPath"].strip(".").split("."):
                value = value.get(step) if isinstance(value, dict) else None
            is_age = column["type"] == "date" and resource.is_custom
            values.append(age(value, now_s) if is_age else value)
        return values

    return columns, cells


def age(since: str | None, now_s: float) -> str:
    """Return the age, as kubectl prints it: `45s`, `3m12s`, `5h`, `7d2h`."""
    if not since:
        return "<unknown>"
    return duration(int(now_s) - timegm(strptime(since, "%Y-%m-%dT%H:%M:%SZ")))


def duration(seconds: int) -> str:
    """A span, the shorter the finer."""
    seconds = max(seconds, 0)
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    for limit, big, small, unit, sub in (
        (120, seconds, 0, "s", ""),
        (600, minutes, seconds % 60, "m", "s"),
        (10800, minutes, 0, "m", ""),
        (28800, hours, minutes % 60, "h", "m"),
        (172800, hours, 0, "h", ""),
        (691200, days, hours % 24, "d", "h"),
    ):
        if seconds < limit:
            return f"{big}{unit}" + (f"{small}{sub}" if small else "")
    if days < 365 * 2:
        return f"{days}d"
    return f"{days // 365}y" + (f"{days % 365}d" if days < 365 * 8 and days % 365 else "")


def _status(body: Body) -> Body:
    status: Body = body.get("status") or {}
    return status


def _containers(template: Body) -> Cells:
    containers = template["spec"].get("containers") or []
    return [",".join(c["name"] for c in containers), ",".join(c.get("image", "") for c in containers)]


def _deployment(body: Body) -> Cells:
    spec, status = body["spec"], _status(body)
    ready = f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 1)}"
    counts = [ready, status.get("updatedReplicas", 0), status.get("availableReplicas", 0)]
    return [*counts, *_containers(spec["template"]), selector_text(spec["selector"])]


def _replica_set(body: Body) -> Cells:
    spec, status = body["spec"], _status(body)
    counts = [spec.get("replicas", 1), status.get("replicas", 0), status.get("readyReplicas", 0)]
    return [*counts, *_containers(spec["template"]), selector_text(spec["selector"])]


def _stateful_set(body: Body) -> Cells:
    ready = f"{_status(body).get('readyReplicas', 0)}/{body['spec'].get('replicas', 1)}"
    return [ready, *_containers(body["spec"]["template"])]


def _daemon_set(body: Body) -> Cells:
    spec, status = body["spec"], _status(body)
    names = (
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
    )
    nodes = _pairs(spec["template"]["spec"].get("nodeSelector"))
    return [*(status.get(n, 0) for n in names), nodes, *_containers(spec["template"]), selector_text(spec["selector"])]


def _pairs(labels: Body | None) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items())) or NONE


def _job(body: Body) -> Cells:
    spec, status = body["spec"], _status(body)
    true = {c["type"] for c in status.get("conditions") or () if c["status"] == "True"}
    word = next((name for name in ("Complete", "Failed", "Suspended") if name in true), "Running")
    if body["metadata"].get("deletionTimestamp"):
        word = "Terminating"
    total = spec.get("completions", f"1 of {spec.get('parallelism', 1)}")
    done = f"{status.get('succeeded', 0)}/{total}"
    took = ""
    if status.get("startTime") and status.get("completionTime"):
        ended, began = (timegm(strptime(status[n], "%Y-%m-%dT%H:%M:%SZ")) for n in ("completionTime", "startTime"))
        took = duration(ended - began)
    return [word, done, took, *_containers(spec["template"]), selector_text(spec.get("selector"))]


def _cron_job(body: Body) -> Cells:
    spec = body["spec"]
    counts = [spec.get("timeZone", NONE), str(spec["suspend"]), len(_status(body).get("active") or ()), NONE]
    template = spec["jobTemplate"]["spec"]["template"]
    return [
        spec["schedule"],
        *counts,
        *_containers(template),
        selector_text(spec["jobTemplate"]["spec"].get("selector")),
    ]


def _pod(body: Body) -> Cells:
    spec, status = body["spec"], _status(body)
    containers = status.get("containerStatuses") or []
    ready = f"{sum(c['ready'] for c in containers)}/{len(spec['containers'])}"
    word = status.get("reason") or status.get("phase", "Pending")
    for container in containers:
        for kind in ("waiting", "terminated"):
            word = (container["state"].get(kind) or {}).get("reason") or word
    if body["metadata"].get("deletionTimestamp"):
        word = "Terminating"
    restarts = str(sum(c["restartCount"] for c in containers))
    return [ready, word, restarts, status.get("podIP", NONE), spec.get("nodeName", NONE), NONE, NONE]


def _port(port: Body) -> str:
    node = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port['port']}{node}/{port['protocol']}"


def _service(body: Body) -> Cells:
    spec = body["spec"]
    external = ",".join(spec.get("externalIPs") or ()) or NONE
    if spec["type"] == "LoadBalancer":
        ingress = (_status(body).get("loadBalancer") or {}).get("ingress") or ()
        external = ",".join(i.get("ip") or i.get("hostname", "") for i in ingress) or "<pending>"
    elif spec["type"] == "ExternalName":
        external = spec.get("externalName", NONE)
    ports = ",".join(map(_port, spec.get("ports") or ()))
    return [spec["type"], spec.get("clusterIP", NONE), external, ports or NONE, _pairs(spec.get("selector"))]


def _node(body: Body) -> Cells:
    status, labels = _status(body), body["metadata"].get("labels") or {}
    ready = next((c["status"] for c in status.get("conditions") or () if c["type"] == "Ready"), "Unknown")
    word = {"True": "Ready", "False": "NotReady"}.get(ready, "NotReady" if ready == "Unknown" else ready)
    if body["spec"].get("unschedulable"):
        word += ",SchedulingDisabled"
    prefix = "node-role.kubernetes.io/"
    roles = ",".join(sorted(name.removeprefix(prefix) for name in labels if name.startswith(prefix))) or NONE
    info = status.get("nodeInfo") or {}
    addresses = {a["type"]: a["address"] for a in status.get("addresses") or ()}
    wide = [addresses.get("InternalIP", NONE), addresses.get("ExternalIP", NONE)]
    wide += [info.get(n) or "<unknown>" for n in ("osImage", "kernelVersion", "containerRuntimeVersion")]
    return [word, roles, info.get("kubeletVersion", ""), *wide]


def _autoscaler(body: Body) -> Cells:
    spec, status = body["spec"], _status(body)
    targets = []
    for metric in spec.get("metrics") or ():
        source = metric.get("resource") or {}
        aim = source.get("target") or {}
        wanted = f"{aim['averageUtilization']}%" if "averageUtilization" in aim else aim.get("averageValue", "<auto>")
        targets.append(f"{source.get('name', metric['type'])}: <unknown>/{wanted}")
    reference = f"{spec['scaleTargetRef']['kind']}/{spec['scaleTargetRef']['name']}"
    bounds = [str(spec["minReplicas"]), spec["maxReplicas"], status.get("currentReplicas", 0)]
    return [reference, ", ".join(targets) or NONE, *bounds]


def _ingress(body: Body) -> Cells:
    spec = body.get("spec") or {}
    hosts = ",".join(rule["host"] for rule in spec.get("rules") or () if rule.get("host")) or "*"
    ingress = (_status(body).get("loadBalancer") or {}).get("ingress") or ()
    address = ",".join(i.get("ip") or i.get("hostname", "") for i in ingress)
    return [spec.get("ingressClassName", NONE), hosts, address, "80, 443" if spec.get("tls") else "80"]


def _claim(body: Body) -> Cells:
    spec, status = body["spec"], _status(body)
    modes = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}
    bound = bool(spec.get("volumeName"))
    capacity = (status.get("capacity") or {}).get("storage", "") if bound else ""
    access = ",".join(modes.get(m, m) for m in status.get("accessModes") or ()) if bound else ""
    volume = [status.get("phase", "Pending"), spec.get("volumeName", ""), capacity, access]
    return [*volume, spec.get("storageClassName", ""), "<unset>", spec.get("volumeMode", "<unset>")]


def _budget(body: Body) -> Cells:
    spec = body.get("spec") or {}
    limits = [str(spec.get(name, "N/A")) for name in ("minAvailable", "maxUnavailable")]
    return [*limits, _status(body).get("disruptionsAllowed", 0)]


def _role_binding(body: Body) -> Cells:
    subjects = body.get("subjects") or ()
    by_kind = [", ".join(s["name"] for s in subjects if s["kind"] == kind) for kind in ("User", "Group")]
    accounts = ", ".join(f"{s.get('namespace')}/{s['name']}" for s in subjects if s["kind"] == "ServiceAccount")
    return [f"{body['roleRef']['kind']}/{body['roleRef']['name']}", *by_kind, accounts]


def _storage_class(body: Body) -> Cells:
    fields = [body.get(name, "") for name in ("provisioner", "reclaimPolicy", "volumeBindingMode")]
    return [*fields, json.dumps(body.get("allowVolumeExpansion", False))]


_BINDING = "Name, Role, Age, Users*, Groups*, ServiceAccounts*"
_SCALED = "Name, Desired:integer, Current:integer, Ready:integer, Age, Containers*, Images*, Selector*"
_KINDS: dict[str, tuple[str, Callable[[Body], Cells]]] = {
    "ConfigMap": ("Name, Data, Age", lambda b: [len(b.get("data") or ()) + len(b.get("binaryData") or ())]),
    "Secret": ("Name, Type, Data, Age", lambda b: [b.get("type", ""), len(b.get("data") or ())]),
    "ServiceAccount": ("Name, Age", lambda b: []),
    "Namespace": ("Name, Status, Age", lambda b: [_status(b).get("phase", "")]),
    "Deployment": ("Name, Ready, Up-to-date, Available, Age, Containers*, Images*, Selector*", _deployment),
    "ReplicaSet": (_SCALED, _replica_set),
    "StatefulSet": ("Name, Ready, Age, Containers*, Images*", _stateful_set),
    "DaemonSet": (
        "Name, Desired:integer, Current:integer, Ready:integer, Up-to-date:integer, Available:integer, Node Selector, "
        "Age, Containers*, Images*, Selector*",
        _daemon_set,
    ),
    "Job": ("Name, Status, Completions, Duration, Age, Containers*, Images*, Selector*", _job),
    "CronJob": (
        "Name, Schedule, Timezone, Suspend:boolean, Active:integer, Last Schedule, Age, Containers*, Images*, "
        "Selector*",
        _cron_job,
    ),
    "Pod": ("Name, Ready, Status, Restarts, Age, IP*, Node*, Nominated Node*, Readiness Gates*", _pod),
    "Service": ("Name, Type, Cluster-IP, External-IP, Port(s), Age, Selector*", _service),
    "Node": (
        "Name, Status, Roles, Age, Version, Internal-IP*, External-IP*, OS-Image*, Kernel-Version*, Container-Runtime*",
        _node,
    ),
    "HorizontalPodAutoscaler": ("Name, Reference, Targets, MinPods, MaxPods, Replicas, Age", _autoscaler),
    "Ingress": ("Name, Class, Hosts, Address, Ports, Age", _ingress),
    "PersistentVolumeClaim": (
        "Name, Status, Volume, Capacity, Access Modes, StorageClass, VolumeAttributesClass, Age, VolumeMode*",
        _claim,
    ),
    "PodDisruptionBudget": ("Name, Min Available, Max Unavailable, Allowed Disruptions:integer, Age", _budget),
    "NetworkPolicy": ("Name, Pod-Selector, Age", lambda b: [selector_text((b.get("spec") or {}).get("podSelector"))]),
    "RoleBinding": (_BINDING, _role_binding),
    "ClusterRoleBinding": (_BINDING, _role_binding),
    "StorageClass": ("Name, Provisioner, ReclaimPolicy, VolumeBindingMode, AllowVolumeExpansion, Age", _storage_class),
}
