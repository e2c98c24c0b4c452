"""Nodes and their pods: start, become ready, crash, finish, stop; and failures of nodes."""

from __future__ import annotations

from reconciler.sim.controllers.deployments import has_passed
from reconciler.sim.controllers.owned import Settings, condition, controller_of, delete, with_condition
from reconciler.sim.controllers.scheduler import matching_tolerations
from reconciler.sim.objects.kinds import BY_KIND
from reconciler.sim.objects.status import Body
from reconciler.sim.state.state import State

_READY_GATES = ("Initialized", "Ready", "ContainersReady")
_UNREACHABLE = "node.kubernetes.io/unreachable"
_CORDONED = "node.kubernetes.io/unschedulable"


class Kubelets:
    """The nodes of one cluster. Remembers when each pod is due for its next step."""

    def __init__(self, state: State, settings: Settings) -> None:
        """Nothing is due at first."""
        self._state = state
        self._settings = settings
        self._due: dict[str, float] = {}

    def reconcile_pod(self, pod: Body) -> None:
        """Take a pod one step further when its time has come."""
        node_name = pod["spec"].get("nodeName")
        if not node_name:
            return
        node = self._state.get("Node", "", node_name)
        if node is None:
            self._state.remove(BY_KIND["Pod"].group_plural, pod)
            return
        if condition(node, "Ready").get("status") != "True":
            self._lose(pod)
            return
        if "deletionTimestamp" in pod["metadata"]:
            grace = float(pod["metadata"].get("deletionGracePeriodSeconds", 0))
            if self._is_time(pod, "stop", min(self._settings.stop_s, grace)):
                self._state.remove(BY_KIND["Pod"].group_plural, pod)
            return
        phase = pod["status"].get("phase")
        if phase == "Pending":
            if self._is_time(pod, "start", self._settings.start_s):
                self._start(pod)
        elif phase == "Running":
            self._go_on(pod)

    def _is_time(self, pod: Body, step: str, wait_s: float) -> bool:
        key = f"{pod['metadata']['uid']} {step}"
        due_s = self._due.setdefault(key, self._state.now_s + wait_s)
        if self._state.now_s < due_s:
            self._state.wake(due_s, pod)
            return False
        del self._due[key]
        return True

    def _is_broken(self, container: Body) -> bool:
        tag = container.get("image", "").rpartition("/")[2].partition(":")[2]
        return any(word in tag for word in self._settings.broken_images)

    def _start(self, pod: Body) -> None:
        spec = pod["spec"]
        broken = any(self._is_broken(c) for c in [*(spec.get("initContainers") or ()), *spec["containers"]])
        if broken and spec["restartPolicy"] != "Always":
            self._finish(pod, "Failed", 1)
            return
        time = self._state.time
        states = [
            self._container(container, is_started=not self._is_broken(container)) for container in spec["containers"]
        ]
        status = {**pod["status"], "phase": "Running", "startTime": time, "containerStatuses": states}
        ip = f"10.244.{self._state.rng.randrange(256)}.{self._state.rng.randrange(1, 255)}"
        status |= {"podIP": ip, "podIPs": [{"ip": ip}], "qosClass": _quality(spec)}
        self._state.put({**pod, "status": self._with_readiness(status, is_ready=not broken)})

    def _container(self, container: Body, *, is_started: bool) -> Body:
        running = {"running": {"startedAt": self._state.time}}
        waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off restarting failed container"}}
        return {
            "name": container["name"],
            "image": container.get("image", ""),
            "imageID": "",
            "lastState": {},
            "ready": is_started,
            "restartCount": 0 if is_started else 1,
            "started": is_started,
            "state": running if is_started else waiting,
        }

    def _with_readiness(self, status: Body, *, is_ready: bool) -> Body:
        conditions = list(status.get("conditions") or ())
        for type_ in _READY_GATES:
            new: Body = {"type": type_, "status": "True", "lastProbeTime": None}
            if not is_ready and type_ != "Initialized":
                new |= {"status": "False", "reason": "ContainersNotReady", "message": "containers with unready status"}
            conditions = with_condition(conditions, new, self._state.time)
        return {**status, "conditions": conditions}

    def _go_on(self, pod: Body) -> None:
        owner = controller_of(pod)
        if owner is not None and owner["kind"] == "Job":
            if self._is_time(pod, "finish", self._settings.job_s):
                self._finish(pod, "Succeeded", 0)
            return
        healthy = not any(self._is_broken(container) for container in pod["spec"]["containers"])
        if healthy and condition(pod, "Ready").get("status") != "True":
            # The node is back: so are its pods.
            self._state.put({**pod, "status": self._with_readiness(pod["status"], is_ready=True)})

    def _finish(self, pod: Body, phase: str, code: int) -> None:
        time = self._state.time
        reason = "Completed" if code == 0 else "Error"
        ended = {"terminated": {"exitCode": code, "reason": reason, "startedAt": time, "finishedAt": time}}
        states = [
            {**self._container(container, is_started=False), "restartCount": 0, "state": ended}
            for container in pod["spec"]["containers"]
        ]
        status = {**pod["status"], "phase": phase, "containerStatuses": states}
        status.setdefault("startTime", time)
        status = self._with_readiness(status, is_ready=False)
        self._state.put({**pod, "status": status})

    def _lose(self, pod: Body) -> None:
        """A pod on a node that does not answer is not ready, and cannot be stopped."""
        status = pod["status"]
        if condition(pod, "Ready").get("status") == "True":
            ready = {"type": "Ready", "status": "False", "lastProbeTime": None}
            conditions = with_condition(status["conditions"], ready, self._state.time)
            self._state.put({**pod, "status": {**status, "conditions": conditions}})

    def reconcile_node(self, node: Body) -> None:
        """Report a new node ready, taint a cordoned or lost one, evict pods that do not tolerate its taints."""
        status = node.get("status") or {}
        if not condition(node, "Ready"):
            ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "node is ready",
                    "lastHeartbeatTime": self._state.time}  # fmt: skip
            conditions = with_condition(status.get("conditions") or (), ready, self._state.time)
            info = {"architecture": "amd64", "operatingSystem": "linux", "kubeletVersion": "v1.36.0+embedded"}
            status = {"nodeInfo": info, **status, "conditions": conditions}
            status.setdefault("allocatable", status.get("capacity") or {})
            node = self._state.put({**node, "status": status})
        node = self._tainted(node)
        taints = [taint for taint in node["spec"].get("taints") or () if taint["effect"] == "NoExecute"]
        for pod in self._pods_on(node["metadata"]["name"]):
            if any(self._must_leave(pod, taint) for taint in taints):
                delete(self._state, pod)
            else:
                self.reconcile_pod(pod)

    def _pods_on(self, node_name: str) -> list[Body]:
        return [pod for pod in self._state.sorted("Pod") if pod["spec"].get("nodeName") == node_name]

    def _tainted(self, node: Body) -> Body:
        lost = condition(node, "Ready").get("status") != "True"
        wanted = {(_UNREACHABLE, "NoSchedule"): lost, (_UNREACHABLE, "NoExecute"): lost,
                  (_CORDONED, "NoSchedule"): bool(node["spec"].get("unschedulable"))}  # fmt: skip
        taints = [t for t in node["spec"].get("taints") or () if wanted.get((t["key"], t["effect"]), True)]
        present = {(taint["key"], taint["effect"]) for taint in taints}
        for (key, effect), is_wanted in wanted.items():
            if is_wanted and (key, effect) not in present:
                taints.append({"key": key, "effect": effect, "timeAdded": self._state.time})
        if taints == (node["spec"].get("taints") or []):
            return node
        spec = {name: value for name, value in node["spec"].items() if name != "taints"}
        return self._state.put({**node, "spec": {**spec, **({"taints": taints} if taints else {})}})

    def _must_leave(self, pod: Body, taint: Body) -> bool:
        if "deletionTimestamp" in pod["metadata"]:
            return False
        tolerations = matching_tolerations(pod["spec"], taint)
        if not tolerations:
            return True
        waits = [t["tolerationSeconds"] for t in tolerations if t.get("tolerationSeconds") is not None]
        if len(waits) < len(tolerations) or "timeAdded" not in taint:
            return False
        node = self._state.get("Node", "", pod["spec"]["nodeName"])
        assert node is not None
        return has_passed(self._state, node, taint["timeAdded"], min(waits))

    def forget(self, pod: Body) -> None:
        """Drop the timers of a pod that is gone."""
        for step in ("start", "stop", "finish"):
            self._due.pop(f"{pod['metadata']['uid']} {step}", None)


def _quality(spec: Body) -> str:
    resources = [container.get("resources") or {} for container in spec["containers"]]
    if not any(r.get("requests") or r.get("limits") for r in resources):
        return "BestEffort"
    full = all(
        r.get("limits") and r.get("requests") == r["limits"] and {"cpu", "memory"} <= set(r["limits"])
        for r in resources
    )
    return "Guaranteed" if full else "Burstable"
