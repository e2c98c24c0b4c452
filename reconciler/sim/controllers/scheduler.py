"""Places pods on nodes: taints, node selectors, required node affinity, requests. No preferences, no preemption."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from math import ceil

from reconciler.sim.controllers.owned import with_condition
from reconciler.sim.objects import quantities
from reconciler.sim.objects.kinds import BY_KIND
from reconciler.sim.objects.selectors import expression_matches
from reconciler.sim.objects.status import Body
from reconciler.sim.state.state import State
from reconciler.sim.state.store import Event, Name, name_of

Amounts = dict[str, int]
"""Resource amounts in thousandths."""


@lru_cache(maxsize=4096)
def _thousandths(text: str) -> int:
    return ceil(quantities.parse(text) * 1000)


def _amounts(resources: Body | None) -> Amounts:
    return {name: _thousandths(str(value)) for name, value in (resources or {}).items()}


def requests(spec: Body) -> Amounts:
    """Return the requests of a pod: the sum of its containers, at least each init container, plus overhead, one pod."""
    total: Counter[str] = Counter()
    for container in spec.get("containers") or ():
        total.update(_amounts((container.get("resources") or {}).get("requests")))
    for container in spec.get("initContainers") or ():
        for name, amount in _amounts((container.get("resources") or {}).get("requests")).items():
            total[name] = max(total[name], amount)
    total.update(_amounts(spec.get("overhead")))
    return {**total, "pods": 1000}


class Scheduler:
    """Waiting pods and the used capacity of each node, from the events of the store."""

    def __init__(self, state: State) -> None:
        """Begin with an empty cluster."""
        self._state = state
        self._used: dict[str, Counter[str]] = {}
        self._waiting: set[Name] = set()
        self.is_due = False
        state.store.listeners.append(self._follow)

    def begin_anew(self) -> None:
        """Read the store again."""
        self._used.clear()
        self._waiting.clear()
        for kept_as, body in self._state.store.everything():
            self._follow(Event(self._state.store.version, "ADDED", kept_as, body, None))

    def _follow(self, event: Event) -> None:
        if event.kept_as == BY_KIND["Node"].group_plural:
            self.is_due = True
        elif event.kept_as == BY_KIND["Pod"].group_plural:
            now = event.body if event.type != "DELETED" else None
            self._count(event.previous, -1)
            self._count(now, 1)
            waits = now is not None and not now["spec"].get("nodeName") and "deletionTimestamp" not in now["metadata"]
            if waits and event.type == "ADDED":
                self._waiting.add(name_of(event.body))
                self.is_due = True
            elif not waits:
                self._waiting.discard(name_of(event.body))
                self.is_due = self.is_due or (now is None and bool(self._waiting))

    def _count(self, pod: Body | None, sign: int) -> None:
        if pod is None or not pod["spec"].get("nodeName"):
            return
        if (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
            return
        used = self._used.setdefault(pod["spec"]["nodeName"], Counter())
        for name, amount in requests(pod["spec"]).items():
            used[name] += sign * amount

    def run(self) -> None:
        """Place every waiting pod that fits somewhere; mark the others Unschedulable."""
        self.is_due = False
        nodes = [(n, _amounts((n.get("status") or {}).get("allocatable"))) for n in self._state.sorted("Node")]
        for name in sorted(self._waiting, key=self._age):
            pod = self._state.get("Pod", *name)
            assert pod is not None, f"waiting pod {name} is gone"
            if pod["spec"].get("schedulingGates"):
                continue
            self._place(pod, nodes)

    def _age(self, name: Name) -> tuple[int, Name]:
        pod = self._state.get("Pod", *name)
        return (int(pod["metadata"]["resourceVersion"]) if pod is not None and "status" not in pod else 0, name)

    def _place(self, pod: Body, nodes: list[tuple[Body, Amounts]]) -> None:
        wanted = requests(pod["spec"])
        reasons: Counter[str] = Counter()
        fitting: list[tuple[int, str]] = []
        for node, allocatable in nodes:
            node_name = node["metadata"]["name"]
            used = self._used.get(node_name, _NOTHING)
            reason = unsuitable(pod["spec"], node) or _lack(wanted, allocatable, used)
            if reason:
                reasons[reason] += 1
            else:
                fitting.append((_load(wanted, allocatable, used), node_name))
        state, status = self._state, pod.get("status") or {}
        if fitting:
            new = {"type": "PodScheduled", "status": "True", "lastProbeTime": None}
            conditions = with_condition(status.get("conditions") or (), new, state.time)
            spec = {**pod["spec"], "nodeName": min(fitting)[1]}
            state.put({**pod, "spec": spec, "status": {**status, "conditions": conditions}})
            return
        parts = ", ".join(f"{count} {reason}" for reason, count in sorted(reasons.items()))
        message = f"0/{len(nodes)} nodes are available: {parts}." if nodes else "no nodes available to schedule pods"
        new = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message,
                "lastProbeTime": None}  # fmt: skip
        conditions = with_condition(status.get("conditions") or (), new, state.time)
        if conditions != status.get("conditions"):
            state.put({**pod, "status": {**status, "conditions": conditions}})


_NOTHING: Counter[str] = Counter()


def _lack(wanted: Amounts, allocatable: Amounts, used: Counter[str]) -> str:
    for name, amount in wanted.items():
        if amount > 0 and used[name] + amount > allocatable.get(name, 0):
            return "Too many pods" if name == "pods" else f"Insufficient {name}"
    return ""


def _load(wanted: Amounts, allocatable: Amounts, used: Counter[str]) -> int:
    names = [name for name in ("cpu", "memory", "pods") if allocatable.get(name)]
    return max((1000 * (used[n] + wanted.get(n, 0)) // allocatable[n] for n in names), default=0)


def unsuitable(spec: Body, node: Body) -> str:
    """Return why a node may not take such a pod, leaving its free capacity aside; empty if it may."""
    if node["spec"].get("unschedulable") and not tolerates(spec, _UNSCHEDULABLE):
        return "node(s) were unschedulable"
    for taint in node["spec"].get("taints") or ():
        if taint["effect"] in ("NoSchedule", "NoExecute") and not tolerates(spec, taint):
            return f"node(s) had untolerated taint {{{taint['key']}: {taint.get('value', '')}}}"
    if not _is_selected(spec, node):
        return "node(s) didn't match Pod's node affinity/selector"
    return ""


_UNSCHEDULABLE: Body = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


def tolerates(spec: Body, taint: Body) -> bool:
    """Return whether a toleration covers a taint."""
    return bool(matching_tolerations(spec, taint))


def matching_tolerations(spec: Body, taint: Body) -> list[Body]:
    """The tolerations that cover a taint."""
    return [t for t in spec.get("tolerations") or () if _covers(t, taint)]


def _covers(toleration: Body, taint: Body) -> bool:
    if toleration.get("effect") not in (None, "", taint["effect"]):
        return False
    exists = toleration.get("operator") == "Exists"
    if not toleration.get("key"):
        return exists
    if toleration["key"] != taint["key"]:
        return False
    return exists or toleration.get("value", "") == taint.get("value", "")


def _is_selected(spec: Body, node: Body) -> bool:
    labels = node["metadata"].get("labels") or {}
    if any(labels.get(key) != value for key, value in (spec.get("nodeSelector") or {}).items()):
        return False
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return True
    fields = {"metadata.name": node["metadata"]["name"]}
    return any(
        all(expression_matches(e, labels) for e in term.get("matchExpressions") or ())
        and all(expression_matches(e, fields) for e in term.get("matchFields") or ())
        for term in required["nodeSelectorTerms"]
        if term.get("matchExpressions") or term.get("matchFields")
    )
