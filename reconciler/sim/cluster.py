"""One embedded member cluster: requests in, answers out, and a control plane on simulated time. No I/O, no clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from heapq import heappop
from typing import Final, NamedTuple

from msgspec import Struct

from reconciler.sim.api import api
from reconciler.sim.api.http import Answer, Request, target_of
from reconciler.sim.controllers import creations, deployments, housekeeping, jobs, sets
from reconciler.sim.controllers.kubelets import Kubelets
from reconciler.sim.controllers.owned import Settings, with_condition
from reconciler.sim.controllers.scheduler import Scheduler
from reconciler.sim.objects.defaults import defaulted
from reconciler.sim.objects.kinds import BY_KIND
from reconciler.sim.objects.status import Body
from reconciler.sim.state.state import Key, State, timestamp
from reconciler.sim.state.store import Backup, Event, name_of

_STEPS_MAX = 5_000_000
_SYSTEM_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
_PODS, _NODES = BY_KIND["Pod"].group_plural, BY_KIND["Node"].group_plural
_QUOTAS = BY_KIND["ResourceQuota"].group_plural
_DEFINITIONS = BY_KIND["CustomResourceDefinition"].group_plural


class Part(StrEnum):
    """A part of a control plane that can stop while the API server runs on."""

    CONTROLLERS = "controllers"
    """Those of workloads: nothing is rolled out, and no status of a workload is written."""
    SCHEDULER = "scheduler"
    KUBELETS = "kubelets"
    """No pod starts or ends, and no node is looked at."""


_PARTS: Final = {
    "": {"pods": Part.KUBELETS, "nodes": Part.KUBELETS},
    "apps": dict.fromkeys(("deployments", "replicasets", "statefulsets", "daemonsets"), Part.CONTROLLERS),
    "batch": {"jobs": Part.CONTROLLERS},
}
"""The part that handles a resource, by group; the others always run."""

_CONTROLLERS: Final[Mapping[tuple[str, str], Callable[[State, Body], None]]] = {
    ("", "namespaces"): housekeeping.reconcile_namespace,
    ("", "persistentvolumeclaims"): housekeeping.reconcile_claim,
    ("", "resourcequotas"): creations.reconcile_quota,
    ("apiextensions.k8s.io", "customresourcedefinitions"): housekeeping.reconcile_definition,
    ("apps", "daemonsets"): sets.reconcile_daemon_set,
    ("apps", "deployments"): deployments.reconcile_deployment,
    ("apps", "replicasets"): deployments.reconcile_replica_set,
    ("apps", "statefulsets"): sets.reconcile_stateful_set,
    ("batch", "jobs"): jobs.reconcile_job,
}


class AuditEntry(NamedTuple):
    """One requested write, accepted or refused, for a referee."""

    time: str
    verb: str
    user_agent: str
    group: str
    plural: str
    namespace: str
    name: str
    subresource: str
    is_dry_run: bool
    code: int


class NodeSpec(Struct, frozen=True, kw_only=True):
    """A node to add."""

    name: str
    cpu: str = "4"
    memory: str = "8Gi"
    pods: str = "110"
    labels: tuple[tuple[str, str], ...] = ()
    taints: tuple[tuple[str, str, str], ...] = ()
    """(key, value, effect)."""
    extended: tuple[tuple[str, str], ...] = ()
    """More resources and their amounts: `("nvidia.com/gpu", "2")`."""


def allow_all(verb: str, group: str, plural: str, namespace: str) -> bool:
    """The default permissions."""
    return True


class Cluster:
    """The model of one cluster. Time passes only through `advance`; the same seed and calls give the same cluster."""

    def __init__(
        self,
        name: str,
        *,
        seed: int = 0,
        now_s: float = 1_750_000_000.0,
        settings: Settings | None = None,
        permits: api.Permits = allow_all,
    ) -> None:
        """Begin with the system namespaces and no nodes."""
        self.name = name
        self.settings = settings or Settings()
        self.permits = permits
        self.audit: list[AuditEntry] = []
        self.asleep: frozenset[Part] = frozenset()
        self.on_change: list[Callable[[], None]] = []
        """Called after every change of an object; what serves watches listens here."""
        self._begin(seed, now_s)

    def _begin(self, seed: int, now_s: float) -> None:
        self.state = State(seed=seed, now_s=now_s)
        self._queue: dict[Key, None] = {}
        self._unseen: dict[Key, None] = {}
        """Objects that sleeping parts have to read when they wake."""
        self._gone: list[Event] = []
        self._scheduler = Scheduler(self.state)
        self._kubelets = Kubelets(self.state, self.settings)
        self.state.store.listeners.append(self._follow)
        for name in _SYSTEM_NAMESPACES:
            self.state.put(defaulted({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
        self.run_controllers()

    def become_another(self, seed: int) -> None:
        """Another, empty cluster answers under this name from now on."""
        self._begin(seed, self.state.now_s)

    def back_up(self) -> Backup:
        """All that is stored now."""
        return self.state.store.back_up()

    def put_back(self, backup: Backup) -> None:
        """Restore the backup's state; the control plane begins again with that, and time goes on.

        The server breaks its connections: a real API server is down meanwhile.
        """
        self.state.put_back(backup)
        self._scheduler.begin_anew()
        self._kubelets = Kubelets(self.state, self.settings)
        self._unseen, self._gone = {}, []
        for kept_as, body in self.state.store.everything():
            self._follow(Event(self.state.store.version, "ADDED", kept_as, body, None))
        self.run_controllers()

    @property
    def now_s(self) -> float:
        """Simulated seconds since the epoch."""
        return self.state.now_s

    @property
    def uid(self) -> str:
        """The uid of kube-system, by which a cluster is known."""
        return str(self.get("Namespace", "", "kube-system")["metadata"]["uid"])

    def get(self, kind: str, namespace: str, name: str) -> Body:
        """An object of a built-in kind that is there."""
        body = self.state.get(kind, namespace, name)
        assert body is not None, f"{self.name}: no {kind} {namespace}/{name}"
        return body

    def request(self, request: Request) -> Answer:
        """Answer one request; writes go into the audit trail."""
        answer = api.handle(self.state, request, self.permits)
        if request.method not in ("GET", "HEAD"):
            self._record(request, answer)
        return answer

    def _record(self, request: Request, answer: Answer) -> None:
        target = target_of(request.path)
        if target is None:
            return
        verb = {"POST": "create", "PUT": "update", "DELETE": "delete"}.get(request.method, "patch")
        sent = (request.body.get("metadata") or {}) if isinstance(request.body, dict) else {}
        created = ((answer.body or {}).get("metadata") or {}) if answer.status == 201 else {}
        name = target.name or created.get("name") or sent.get("name") or ""
        entry = AuditEntry(
            timestamp(self.now_s), verb, request.user_agent, target.group, target.plural, target.namespace, name,
            target.subresource, answer.status != 400 and request.is_dry_run, answer.status,
        )  # fmt: skip
        self.audit.append(entry)

    def advance(self, to_s: float) -> None:
        """Let time pass up to a moment; whatever falls due on the way happens at its own time, in order."""
        assert to_s >= self.now_s, f"time runs forward: {to_s} is before {self.now_s}"
        self.run_controllers()
        alarms = self.state.alarms
        while alarms and alarms[0][0] <= to_s:
            self.state.now_s = max(self.state.now_s, alarms[0][0])
            while alarms and alarms[0][0] <= self.state.now_s:
                self._queue[heappop(alarms)[1]] = None
            self.run_controllers()
        self.state.now_s = to_s
        self.run_controllers()

    def run_for(self, seconds: float) -> None:
        """Let so much time pass."""
        self.advance(self.now_s + seconds)

    def run_controllers(self) -> None:
        """Let the control plane do everything that it can do now."""
        for _ in range(_STEPS_MAX):
            if self._gone:
                self._bury(self._gone.pop(0))
            elif self._queue:
                key = next(iter(self._queue))
                del self._queue[key]
                self._reconcile(key)
            elif self._scheduler.is_due and Part.SCHEDULER not in self.asleep:
                self._scheduler.run()
            else:
                return
        raise AssertionError(f"{self.name}: the control plane does not come to rest")

    def _follow(self, event: Event) -> None:
        namespace, name = name_of(event.body)
        self._queue[(*event.kept_as, namespace, name)] = None
        for reference in event.body["metadata"].get("ownerReferences") or ():
            resource = self.state.served.of_kind(reference["apiVersion"], reference["kind"])
            if resource is not None:
                self._queue[(*resource.group_plural, namespace if resource.namespaced else "", reference["name"])] = (
                    None
                )
        if event.type == "DELETED":
            self._gone.append(event)
        if event.kept_as == _PODS:
            for body in self.state.sorted("ResourceQuota", namespace):
                self._queue[(*_QUOTAS, *name_of(body))] = None
        if event.kept_as == _NODES:
            for body in self.state.sorted("DaemonSet"):
                self._queue[("apps", "daemonsets", *name_of(body))] = None
        for listener in self.on_change:
            listener()

    def _bury(self, event: Event) -> None:
        housekeeping.collect(self.state, event.body["metadata"]["uid"])
        if event.kept_as == _PODS:
            self._kubelets.forget(event.body)
        elif event.kept_as == _DEFINITIONS:
            housekeeping.forget_definition(self.state, event.body)
            for other in self.state.sorted("CustomResourceDefinition"):
                self._queue[(*_DEFINITIONS, *name_of(other))] = None
        elif event.kept_as == _NODES:
            for pod in self.state.sorted("Pod"):
                if pod["spec"].get("nodeName") == event.body["metadata"]["name"]:
                    self._queue[(*_PODS, *name_of(pod))] = None

    def _reconcile(self, key: Key) -> None:
        group, plural, namespace, name = key
        state = self.state
        body = state.store.get((group, plural), namespace, name)
        if body is None:
            return
        if _PARTS.get(group, {}).get(plural) in self.asleep:
            self._unseen[key] = None
            return
        if "deletionTimestamp" in body["metadata"] and body["metadata"].get("finalizers"):
            housekeeping.finish_deletion(state, key, body)
            return
        match group, plural:
            case "", "pods":
                self._kubelets.reconcile_pod(body)
            case "", "nodes":
                self._kubelets.reconcile_node(body)
            case "", "services":
                housekeeping.reconcile_service(state, body, self.settings)
            case kind if kind in _CONTROLLERS:
                _CONTROLLERS[kind](state, body)

    def let_sleep(self, *parts: Part) -> None:
        """Let exactly these parts do nothing from now on; they catch up when they wake."""
        self.asleep = frozenset(parts)
        self._queue |= self._unseen
        self._unseen = {}
        self.run_controllers()

    def add_node(self, spec: NodeSpec) -> None:
        """Add a node; it is ready at once."""
        amounts = {"cpu": spec.cpu, "memory": spec.memory, "pods": spec.pods, **dict(spec.extended)}
        taints = [{"key": key, "value": value, "effect": effect} for key, value, effect in spec.taints]
        labels = {"kubernetes.io/hostname": spec.name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
        self.state.put(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": spec.name, "labels": {**labels, **dict(spec.labels)}},
                "spec": {"taints": taints} if taints else {},
                "status": {"capacity": amounts, "allocatable": amounts},
            }
        )
        self.run_controllers()

    def set_node_ready(self, name: str, *, is_ready: bool) -> None:
        """A node is lost (its kubelet stops to answer) or comes back."""
        node = self.get("Node", "", name)
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": self.state.time}
        if not is_ready:
            ready |= {"status": "Unknown", "reason": "NodeStatusUnknown"}
        conditions = with_condition(node["status"]["conditions"], ready, self.state.time)
        self.state.put({**node, "status": {**node["status"], "conditions": conditions}})
        self.run_controllers()

    def set_capacity(self, name: str, **amounts: str) -> None:
        """Change the capacity of a node: `set_capacity("n1", cpu="2")`."""
        node = self.get("Node", "", name)
        changed = {"capacity": {**node["status"]["capacity"], **amounts}}
        changed["allocatable"] = {**node["status"]["allocatable"], **amounts}
        self.state.put({**node, "status": {**node["status"], **changed}})
        self.run_controllers()

    def remove_node(self, name: str) -> None:
        """A node goes with everything on it."""
        self.state.remove(_NODES, self.get("Node", "", name))
        self.run_controllers()
