"""Deployments and ReplicaSets: rolling update, Recreate, status conditions, revisions."""

from __future__ import annotations

from calendar import timegm
from time import strptime

from reconciler.sim.controllers.creations import make_pod
from reconciler.sim.controllers.owned import (
    condition,
    delete,
    digest,
    is_active,
    is_ready,
    new_pod,
    owner_reference,
    with_condition,
    write_status,
)
from reconciler.sim.objects.status import Body, Json
from reconciler.sim.state.state import State

_REVISION = "deployment.kubernetes.io/revision"
_HASH = "pod-template-hash"


def reconcile_replica_set(state: State, replica_set: Body) -> None:
    """Create or delete pods until there are as many as wanted, and report."""
    pods = state.dependents(replica_set, "Pod")
    spec = replica_set["spec"]
    active = [pod for pod in pods if is_active(pod)]
    missing = spec["replicas"] - len(active)
    refusal = ""
    if "deletionTimestamp" not in replica_set["metadata"]:
        for _ in range(missing):
            name = f"{replica_set['metadata']['name']}-{state.suffix()}"
            outcome = make_pod(state, replica_set, new_pod(replica_set, spec["template"], name))
            if isinstance(outcome, str):
                refusal = outcome
                break
            active.append(outcome)
        for pod in sorted(active, key=_dispensable)[: max(-missing, 0)]:
            delete(state, pod)
            active.remove(pod)
    ready = sum(map(is_ready, active))
    status = {"replicas": len(active), "fullyLabeledReplicas": len(active), "readyReplicas": ready,
              "availableReplicas": sum(is_available(state, pod, replica_set) for pod in active),
              "observedGeneration": replica_set["metadata"]["generation"]}  # fmt: skip
    status = {name: value for name, value in status.items() if value or name == "replicas"}
    if refusal:
        status["conditions"] = [_unmade(state, replica_set, refusal)]
    status["terminatingReplicas"] = sum("deletionTimestamp" in pod["metadata"] for pod in pods)
    if status != replica_set.get("status"):
        state.put({**replica_set, "status": status})


def _unmade(state: State, replica_set: Body, refusal: str) -> Body:
    """Source: Kubernetes, replica_set_utils.go, SetCondition: a condition that is so already stays as it is."""
    failure = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": refusal,
            "lastTransitionTime": state.time}  # fmt: skip
    return condition(replica_set, "ReplicaFailure") or failure


def _dispensable(pod: Body) -> tuple[bool, bool, str, str]:
    """Pods to delete first: unplaced, then not ready, then the newest."""
    metadata = pod["metadata"]
    backwards = "".join(chr(255 - ord(letter)) for letter in metadata["creationTimestamp"])
    return bool(pod["spec"].get("nodeName")), is_ready(pod), backwards, metadata["name"]


def is_available(state: State, pod: Body, owner: Body) -> bool:
    """Ready for the owner's minReadySeconds; if not yet, the owner is looked at again then."""
    if not is_ready(pod):
        return False
    since = condition(pod, "Ready")["lastTransitionTime"]
    return has_passed(state, owner, since, owner["spec"].get("minReadySeconds", 0))


def has_passed(state: State, body: Body, since: str, wait_s: float) -> bool:
    """Return whether so many seconds have passed since a timestamp; if not, wake the object then."""
    due_s = timegm(strptime(since, "%Y-%m-%dT%H:%M:%SZ")) + wait_s
    if state.now_s >= due_s:
        return True
    state.wake(due_s, body)
    return False


def reconcile_deployment(state: State, deployment: Body) -> None:
    """Move ReplicaSets towards the template and report."""
    if "deletionTimestamp" in deployment["metadata"]:
        return
    spec = deployment["spec"]
    sets = state.dependents(deployment, "ReplicaSet")
    revision = digest(spec["template"])
    new = next((s for s in sets if s["metadata"]["labels"].get(_HASH) == revision), None)
    old = [s for s in sets if s is not new]
    if new is None and not spec.get("paused"):
        held_back = spec["strategy"]["type"] == "Recreate" and _pods(old) > 0
        if not held_back:
            new = _new_set(state, deployment, revision, old)
    if new is not None:
        new = _revised(state, new, old)
    if spec.get("paused"):
        _scale_all(state, new, old, spec["replicas"])
    elif spec["strategy"]["type"] == "Recreate":
        _recreate(state, new, old, spec["replicas"])
    else:
        _roll(state, new, old, spec)
    sets = state.dependents(deployment, "ReplicaSet")
    new = next((s for s in sets if s["metadata"]["labels"].get(_HASH) == revision), None)
    _report(state, deployment, new, sets)
    _clean_up(state, spec, [s for s in sets if s is not new])


def _pods(sets: list[Body]) -> int:
    return sum((s.get("status") or {}).get("replicas", 0) for s in sets)


def _revision(replica_set: Body) -> int:
    return int((replica_set["metadata"].get("annotations") or {}).get(_REVISION, 0))


def _new_set(state: State, deployment: Body, revision: str, old: list[Body]) -> Body:
    spec, metadata = deployment["spec"], deployment["metadata"]
    template = spec["template"]
    labels = {**(template["metadata"].get("labels") or {}), _HASH: revision}
    selector = {**spec["selector"], "matchLabels": {**spec["selector"].get("matchLabels", {}), _HASH: revision}}
    number = max((_revision(s) for s in old), default=0) + 1
    body: Body = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{metadata['name']}-{revision}",
            "namespace": metadata["namespace"],
            "generation": 1,
            "labels": labels,
            "annotations": {_REVISION: str(number)},
            "ownerReferences": [owner_reference(deployment)],
        },
        "spec": {
            "replicas": 0,
            "selector": selector,
            "template": {**template, "metadata": {**template["metadata"], "labels": labels}},
        },
        "status": {"replicas": 0},
    }
    if spec.get("minReadySeconds"):
        body["spec"]["minReadySeconds"] = spec["minReadySeconds"]
    return state.put(body)


def _revised(state: State, new: Body, old: list[Body]) -> Body:
    """A set that becomes the newest again (a roll-back) takes the next revision."""
    newest = max((_revision(s) for s in old), default=0)
    if _revision(new) > newest:
        return new
    annotations = {**(new["metadata"].get("annotations") or {}), _REVISION: str(newest + 1)}
    return state.put({**new, "metadata": {**new["metadata"], "annotations": annotations}})


def _scaled(state: State, replica_set: Body, replicas: int) -> Body:
    if replica_set["spec"]["replicas"] == replicas:
        return replica_set
    metadata = {**replica_set["metadata"], "generation": replica_set["metadata"]["generation"] + 1}
    return state.put({**replica_set, "metadata": metadata, "spec": {**replica_set["spec"], "replicas": replicas}})


def _scale_all(state: State, new: Body | None, old: list[Body], replicas: int) -> None:
    """A paused Deployment still scales: the set that is in use takes the difference."""
    active = [s for s in [*old, *([new] if new is not None else [])] if s["spec"]["replicas"]]
    chosen = active[-1] if active else new
    if chosen is not None:
        _scaled(state, chosen, max(replicas - sum(s["spec"]["replicas"] for s in active if s is not chosen), 0))


def _recreate(state: State, new: Body | None, old: list[Body], replicas: int) -> None:
    for replica_set in old:
        _scaled(state, replica_set, 0)
    if new is not None and _pods(old) == 0:
        _scaled(state, new, replicas)


def limit(value: Json, replicas: int, *, rounds_up: bool) -> int:
    """A maxSurge or maxUnavailable as a number of pods."""
    if isinstance(value, str) and value.endswith("%"):
        share = int(value[:-1]) * replicas
        return -(-share // 100) if rounds_up else share // 100
    return int(value)


def _roll(state: State, new: Body | None, old: list[Body], spec: Body) -> None:
    """One step: the new set grows up to maxSurge, the old ones shrink down to maxUnavailable."""
    assert new is not None
    replicas, update = spec["replicas"], spec["strategy"]["rollingUpdate"]
    surge = limit(update["maxSurge"], replicas, rounds_up=True)
    unavailable = limit(update["maxUnavailable"], replicas, rounds_up=False)
    if surge == 0 and unavailable == 0:
        unavailable = 1
    total = sum(s["spec"]["replicas"] for s in [new, *old])
    wanted = new["spec"]["replicas"]
    if wanted > replicas:
        wanted = replicas
    elif wanted < replicas:
        wanted += max(min(replicas + surge - total, replicas - wanted), 0)
    grown = _scaled(state, new, wanted)
    available = {s["metadata"]["name"]: (s.get("status") or {}).get("availableReplicas", 0) for s in [grown, *old]}
    floor = replicas - unavailable
    new_unavailable = grown["spec"]["replicas"] - available[grown["metadata"]["name"]]
    removable = sum(s["spec"]["replicas"] for s in [grown, *old]) - floor - new_unavailable
    for replica_set in sorted(old, key=_revision):
        sick = replica_set["spec"]["replicas"] - available[replica_set["metadata"]["name"]]
        cut = max(min(sick, removable), 0)
        removable -= cut
        available_cut = max(min(replica_set["spec"]["replicas"] - cut, sum(available.values()) - floor, removable), 0)
        removable -= available_cut
        available[replica_set["metadata"]["name"]] -= available_cut
        _scaled(state, replica_set, replica_set["spec"]["replicas"] - cut - available_cut)


def _clean_up(state: State, spec: Body, old: list[Body]) -> None:
    idle = [s for s in sorted(old, key=_revision) if not s["spec"]["replicas"] and not _pods([s])]
    for replica_set in idle[: max(len(idle) - spec["revisionHistoryLimit"], 0)]:
        delete(state, replica_set)


def _report(state: State, deployment: Body, new: Body | None, sets: list[Body]) -> None:
    spec, before = deployment["spec"], deployment.get("status") or {}

    def total(name: str) -> int:
        return sum((s.get("status") or {}).get(name, 0) for s in sets)

    updated = ((new or {}).get("status") or {}).get("replicas", 0)
    counts = {"replicas": total("replicas"), "updatedReplicas": updated, "readyReplicas": total("readyReplicas"),
              "availableReplicas": total("availableReplicas")}  # fmt: skip
    counts["unavailableReplicas"] = max(max(counts["replicas"], spec["replicas"]) - counts["availableReplicas"], 0)
    status = {name: value for name, value in counts.items() if value}
    status["observedGeneration"] = deployment["metadata"]["generation"]
    status["terminatingReplicas"] = total("terminatingReplicas")
    status["conditions"] = _conditions(state, deployment, new, counts, before)
    metadata = deployment["metadata"]
    if new is not None:
        annotations = {**(metadata.get("annotations") or {}), _REVISION: str(_revision(new))}
        metadata = {**metadata, "annotations": annotations}
    write_status(state, deployment, {**deployment, "metadata": metadata, "status": status})


def _conditions(state: State, deployment: Body, new: Body | None, counts: Body, before: Body) -> list[Body]:
    spec = deployment["spec"]
    conditions = list(before.get("conditions") or ())
    unavailable = 0
    if spec["strategy"]["type"] == "RollingUpdate":
        unavailable = limit(spec["strategy"]["rollingUpdate"]["maxUnavailable"], spec["replicas"], rounds_up=False)
    if counts["availableReplicas"] >= spec["replicas"] - unavailable:
        available = ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    else:
        available = ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    conditions = _set(state, conditions, "Available", available, touched=False)
    conditions = [each for each in conditions if each["type"] != "ReplicaFailure"]
    failure = condition(new, "ReplicaFailure") if new is not None else {}
    if failure:
        conditions.append(failure)
    progress, moved = _progress(state, deployment, new, counts, before)
    return _set(state, conditions, "Progressing", progress, touched=moved)


def _progress(
    state: State, deployment: Body, new: Body | None, counts: Body, before: Body
) -> tuple[tuple[str, str, str], bool]:
    """((status, reason, message), whether the rollout moved) of the condition Progressing."""
    wanted = deployment["spec"]["replicas"]
    name = new["metadata"]["name"] if new is not None else ""
    old = next((c for c in before.get("conditions") or () if c["type"] == "Progressing"), None)
    done = counts["updatedReplicas"] == counts["replicas"] == counts["availableReplicas"] == wanted
    if done and new is not None:
        return ("True", "NewReplicaSetAvailable", f'ReplicaSet "{name}" has successfully progressed.'), False
    if deployment["spec"].get("paused"):
        return ("Unknown", "DeploymentPaused", "Deployment is paused"), False
    watched = ("updatedReplicas", "readyReplicas", "availableReplicas")
    moved = any(counts[n] > before.get(n, 0) for n in watched) or counts["replicas"] < before.get("replicas", 0)
    if (
        old is not None
        and old["reason"] == "NewReplicaSetAvailable"
        and counts["updatedReplicas"] == counts["replicas"]
    ):
        return (old["status"], old["reason"], old["message"]), False
    if old is None:
        return ("True", "NewReplicaSetCreated", f'Created new replica set "{name}"'), True
    is_new_rollout = deployment["metadata"]["generation"] != before.get("observedGeneration")
    if moved or is_new_rollout:
        state.wake(state.now_s + deployment["spec"]["progressDeadlineSeconds"], deployment)
        return ("True", "ReplicaSetUpdated", f'ReplicaSet "{name}" is progressing.'), True
    deadline_s = deployment["spec"]["progressDeadlineSeconds"]
    if old["reason"] != "NewReplicaSetAvailable" and has_passed(state, deployment, old["lastUpdateTime"], deadline_s):
        return ("False", "ProgressDeadlineExceeded", f'ReplicaSet "{name}" has timed out progressing.'), False
    return (old["status"], old["reason"], old["message"]), False


def _set(state: State, conditions: list[Body], type_: str, value: tuple[str, str, str], *, touched: bool) -> list[Body]:
    status, reason, message = value
    old = next((c for c in conditions if c["type"] == type_), None)
    same = old is not None and (old["status"], old["reason"]) == (status, reason) and not touched
    updated = old["lastUpdateTime"] if old is not None and same else state.time
    new = {"type": type_, "status": status, "reason": reason, "message": message, "lastUpdateTime": updated}
    return with_condition(conditions, new, state.time)
