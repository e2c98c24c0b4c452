"""StatefulSets and DaemonSets."""

from __future__ import annotations

from reconciler.sim.controllers.creations import make_pod
from reconciler.sim.controllers.deployments import is_available, limit
from reconciler.sim.controllers.owned import delete, digest, is_active, is_ready, new_pod, write_status
from reconciler.sim.controllers.scheduler import unsuitable
from reconciler.sim.objects.status import Body
from reconciler.sim.state.state import State

_REVISION = "controller-revision-hash"


def _revision(pod: Body) -> str:
    return str((pod["metadata"].get("labels") or {}).get(_REVISION, ""))


def reconcile_stateful_set(state: State, body: Body) -> None:
    """Pods by ordinal: created in order, removed and updated from the highest down, one at a time unless Parallel."""
    if "deletionTimestamp" in body["metadata"]:
        return
    spec, name = body["spec"], body["metadata"]["name"]
    update = f"{name}-{digest(spec['template'])}"
    current = (body.get("status") or {}).get("currentRevision") or update
    pods = {int(pod["metadata"]["name"].rpartition("-")[2]): pod for pod in state.dependents(body, "Pod")}
    parallel = spec["podManagementPolicy"] == "Parallel"
    partition = (spec["updateStrategy"].get("rollingUpdate") or {}).get("partition", 0)
    settled = True
    for ordinal in range(spec["replicas"]):
        if ordinal not in pods:
            revision = update if ordinal >= partition or current == update else current
            outcome = _stateful_pod(state, body, ordinal, revision)
            if isinstance(outcome, str):
                settled = False
                break
            pods[ordinal] = outcome
        if not is_ready(pods[ordinal]):
            settled = False
            if not parallel:
                break
    extra = sorted((o for o in pods if o >= spec["replicas"]), reverse=True)
    for ordinal in extra if parallel else extra[:1]:
        if "deletionTimestamp" not in pods[ordinal]["metadata"] and (settled or parallel):
            delete(state, pods[ordinal])
    if spec["updateStrategy"]["type"] == "RollingUpdate" and not extra:
        _roll(state, pods, update, partition)
    _report_stateful(state, body, update, current)


def _stateful_pod(state: State, body: Body, ordinal: int, revision: str) -> Body | str:
    name = f"{body['metadata']['name']}-{ordinal}"
    labels = {
        _REVISION: revision,
        "statefulset.kubernetes.io/pod-name": name,
        "apps.kubernetes.io/pod-index": str(ordinal),
    }
    spec: Body = {"hostname": name, "subdomain": body["spec"].get("serviceName", "")}
    claims = body["spec"].get("volumeClaimTemplates") or ()
    volumes = list(body["spec"]["template"]["spec"].get("volumes") or ())
    for claim in claims:
        claim_name = f"{claim['metadata']['name']}-{name}"
        volumes.append({"name": claim["metadata"]["name"], "persistentVolumeClaim": {"claimName": claim_name}})
        if state.get("PersistentVolumeClaim", body["metadata"]["namespace"], claim_name) is None:
            metadata = {**claim["metadata"], "name": claim_name, "namespace": body["metadata"]["namespace"]}
            state.put({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": claim["spec"],
                       "status": {"phase": "Pending"}})  # fmt: skip
    if volumes:
        spec["volumes"] = volumes
    return make_pod(state, body, new_pod(body, body["spec"]["template"], name, labels=labels, spec=spec))


def _roll(state: State, pods: dict[int, Body], update: str, partition: int) -> None:
    for ordinal in sorted(pods, reverse=True):
        pod = pods[ordinal]
        if ordinal < partition:
            return
        if _revision(pod) != update:
            if "deletionTimestamp" not in pod["metadata"]:
                delete(state, pod)
            return
        if not is_ready(pod):
            return


def _report_stateful(state: State, body: Body, update: str, current: str) -> None:
    pods = [pod for pod in state.dependents(body, "Pod") if is_active(pod)]
    replicas = body["spec"]["replicas"]
    updated = [pod for pod in pods if _revision(pod) == update]
    if len(updated) == len(pods) == replicas and all(map(is_ready, pods)):
        current = update
    old = sum(_revision(pod) == current for pod in pods)
    status: Body = {
        "replicas": len(pods),
        "readyReplicas": sum(map(is_ready, pods)),
        "availableReplicas": sum(is_available(state, pod, body) for pod in pods),
        "currentReplicas": old,
        "updatedReplicas": len(updated),
        "collisionCount": 0,
        "currentRevision": current,
        "updateRevision": update,
        "observedGeneration": body["metadata"]["generation"],
    }
    always = ("replicas", "availableReplicas", "collisionCount", "currentRevision", "updateRevision")
    status = {name: value for name, value in status.items() if value or name in always}
    write_status(state, body, {**body, "status": status})


def reconcile_daemon_set(state: State, body: Body) -> None:
    """One pod on each node that its template may run on; updated maxUnavailable at a time."""
    if "deletionTimestamp" in body["metadata"]:
        return
    template = body["spec"]["template"]
    update = digest(template)
    wanted = [
        node["metadata"]["name"] for node in state.sorted("Node") if not unsuitable(_daemon_spec(template, ""), node)
    ]
    by_node: dict[str, Body] = {}
    for pod in state.dependents(body, "Pod"):
        node = _node_of(pod)
        if node not in wanted or node in by_node:
            if "deletionTimestamp" not in pod["metadata"]:
                delete(state, pod)
        else:
            by_node[node] = pod
    for node in wanted:
        if node not in by_node:
            name = f"{body['metadata']['name']}-{state.suffix()}"
            pod = new_pod(body, template, name, labels={_REVISION: update}, spec=_daemon_spec(template, node))
            outcome = make_pod(state, body, pod)
            if isinstance(outcome, str):
                break
            by_node[node] = outcome
    if body["spec"]["updateStrategy"]["type"] == "RollingUpdate":
        _update_daemons(state, body, by_node, update)
    _report_daemons(state, body, wanted, update)


def _daemon_spec(template: Body, node: str) -> Body:
    """The pod spec with the tolerations of every daemon, bound by affinity to a node when one is named."""
    spec = dict(template["spec"])
    unready = [f"node.kubernetes.io/{word}" for word in ("not-ready", "unreachable")]
    pressed = [
        f"node.kubernetes.io/{word}" for word in ("disk-pressure", "memory-pressure", "pid-pressure", "unschedulable")
    ]
    spec["tolerations"] = [
        *(spec.get("tolerations") or ()),
        *({"key": key, "operator": "Exists", "effect": "NoExecute"} for key in unready),
        *({"key": key, "operator": "Exists", "effect": "NoSchedule"} for key in (*unready, *pressed)),
    ]
    if node:
        term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
        spec["affinity"] = {**(spec.get("affinity") or {}), "nodeAffinity": required}
    return spec


def _node_of(pod: Body) -> str:
    required = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    return str(required["nodeSelectorTerms"][0]["matchFields"][0]["values"][0])


def _update_daemons(state: State, body: Body, by_node: dict[str, Body], update: str) -> None:
    allowed = limit(body["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"], len(by_node), rounds_up=True)
    down = sum(not is_ready(pod) for pod in by_node.values())
    for node in sorted(by_node):
        pod = by_node[node]
        if _revision(pod) == update or "deletionTimestamp" in pod["metadata"]:
            continue
        if is_ready(pod):
            if down >= allowed:
                continue
            down += 1
        delete(state, pod)


def _report_daemons(state: State, body: Body, wanted: list[str], update: str) -> None:
    pods = [pod for pod in state.dependents(body, "Pod") if is_active(pod)]
    ready = sum(map(is_ready, pods))
    available = sum(is_available(state, pod, body) for pod in pods)
    status: Body = {
        "currentNumberScheduled": len(pods),
        "desiredNumberScheduled": len(wanted),
        "numberMisscheduled": 0,
        "numberReady": ready,
        "observedGeneration": body["metadata"]["generation"],
        "updatedNumberScheduled": sum(_revision(pod) == update for pod in pods),
        "numberAvailable": available,
        "numberUnavailable": len(wanted) - available,
    }
    always = ("currentNumberScheduled", "desiredNumberScheduled", "numberMisscheduled", "numberReady")
    status = {name: value for name, value in status.items() if value or name in always}
    write_status(state, body, {**body, "status": status})
