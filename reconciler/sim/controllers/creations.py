"""Pods as controllers make them: admission and quotas may refuse one, which an event of the owner tells."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction

from reconciler.sim.controllers.owned import digest
from reconciler.sim.objects.quantities import canonical, parse
from reconciler.sim.objects.status import Body, Refused, forbidden
from reconciler.sim.state.state import State

TRIES_AGAIN_S = 1.0
"""A controller backs off from milliseconds on; embedded ones try once a second."""
_FINISHED = ("Succeeded", "Failed")


def make_pod(state: State, owner: Body, pod: Body) -> Body | str:
    """The pod as it was made; why it was not: the words of the API server. An event of the owner says so, too."""
    try:
        admitted = state.admit(pod)
        _check_quotas(state, admitted)
    except Refused as refusal:
        message = str(refusal)
        _tell(state, owner, pod, message)
        state.wake(state.now_s + TRIES_AGAIN_S, owner)
        return message
    return state.put(admitted)


def reconcile_quota(state: State, quota: Body) -> None:
    """Count what is used of a quota."""
    hard = quota["spec"].get("hard") or {}
    counted = _used(state, quota["metadata"]["namespace"])
    status = {"hard": hard, "used": {name: canonical(_text(counted(name))) for name in hard}}
    if quota.get("status") != status:
        state.put({**quota, "status": status})


def _check_quotas(state: State, pod: Body) -> None:
    metadata = pod["metadata"]
    for quota in state.sorted("ResourceQuota", metadata["namespace"]):
        used = _used(state, metadata["namespace"])
        over = []
        for name, hard in sorted((quota["spec"].get("hard") or {}).items()):
            wanted = _amount(pod, name)
            if wanted and used(name) + wanted > parse(hard):
                over.append((name, wanted, used(name), parse(hard)))
        if over:
            requested, in_use, limited = (
                ",".join(f"{row[0]}={canonical(_text(row[place]))}" for row in over) for place in (1, 2, 3)
            )
            amounts = f"requested: {requested}, used: {in_use}, limited: {limited}"
            raise forbidden("pods", "", metadata["name"], f"exceeded quota: {quota['metadata']['name']}, {amounts}")


def _used(state: State, namespace: str) -> Callable[[str], Fraction]:
    pods = [pod for pod in state.sorted("Pod", namespace) if pod["status"].get("phase") not in _FINISHED]
    return lambda name: sum((_amount(pod, name) for pod in pods), Fraction(0))


def _amount(pod: Body, name: str) -> Fraction:
    """The amount that one pod counts for a resource of a quota. Source: Kubernetes, "Resource Quotas"."""
    if name in ("pods", "count/pods"):
        return Fraction(1)
    what, _, resource = name.rpartition(".")
    return sum(_parts(pod, what or "requests", resource), Fraction(0))


def _parts(pod: Body, what: str, resource: str) -> Iterator[Fraction]:
    for container in pod["spec"]["containers"]:
        yield parse(((container.get("resources") or {}).get(what) or {}).get(resource, 0))


def _text(amount: Fraction) -> str:
    return str(amount.numerator) if amount.denominator == 1 else f"{float(amount * 1000):g}m"


def _tell(state: State, owner: Body, pod: Body, message: str) -> None:
    metadata, kind = owner["metadata"], owner["kind"]
    name = f"{metadata['name']}.{digest([metadata['uid'], 'FailedCreate'])}"
    known = state.get("Event", metadata["namespace"], name)
    if kind == "StatefulSet":
        text = f"create Pod {pod['metadata']['name']} in StatefulSet {metadata['name']} failed error: {message}"
    else:
        text = f"Error creating: {message}"
    state.put(
        {
            **(known or {"apiVersion": "v1", "kind": "Event"}),
            "metadata": known["metadata"] if known is not None else {"name": name, "namespace": metadata["namespace"]},
            "involvedObject": {
                "kind": kind,
                "namespace": metadata["namespace"],
                "name": metadata["name"],
                "uid": metadata["uid"],
                "apiVersion": owner["apiVersion"],
            },
            "reason": "FailedCreate",
            "message": text,
            "source": {"component": f"{kind.lower()}-controller"},
            "firstTimestamp": known["firstTimestamp"] if known is not None else state.time,
            "lastTimestamp": state.time,
            "count": (known["count"] if known is not None else 0) + 1,
            "type": "Warning",
        }
    )
