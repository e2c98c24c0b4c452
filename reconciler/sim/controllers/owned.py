"""Pods and sets under an owner: finding, creating, judging and deleting them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable

from msgspec import Struct

from reconciler.sim.objects import managed
from reconciler.sim.objects.defaults import defaulted
from reconciler.sim.objects.kinds import BY_KIND
from reconciler.sim.objects.managed import Manager
from reconciler.sim.objects.shapes import Shape
from reconciler.sim.objects.status import Body, Json
from reconciler.sim.state.state import State

CONTROLLER = "kube-controller-manager"
_SAFE = "bcdfghjklmnpqrstvwxz2456789"


class Settings(Struct, frozen=True, kw_only=True):
    """The behaviour of the embedded nodes."""

    start_s: float = 1.0
    """From a pod's binding to its containers being ready."""
    stop_s: float = 0.5
    """From a pod's deletion to its end, at most its grace period."""
    job_s: float = 2.0
    """The run time of a Job's container."""
    broken_images: tuple[str, ...] = ("broken",)
    """A container whose image tag contains one of these crashes for ever; in a Job it fails."""
    load_balancer_s: float | None = None
    """The delay until a Service of type LoadBalancer gets an address; None: never."""


def controller_of(body: Body) -> Body | None:
    """The controlling owner reference."""
    return next((r for r in body["metadata"].get("ownerReferences") or () if r.get("controller")), None)


def owner_reference(owner: Body) -> Body:
    """A controller reference to an owner."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def digest(value: Json, length: int = 10) -> str:
    """A name-safe digest of a pod template."""
    raw = hashlib.sha256(json.dumps(value, sort_keys=True).encode()).digest()
    return "".join(_SAFE[byte % len(_SAFE)] for byte in raw[:length])


def new_pod(owner: Body, template: Body, name: str, *, labels: Body | None = None, spec: Body | None = None) -> Body:
    """A pod from a template, under an owner."""
    metadata = template.get("metadata") or {}
    pod_metadata: Body = {"name": name, "namespace": owner["metadata"]["namespace"], "generation": 1,
                  "ownerReferences": [owner_reference(owner)]}  # fmt: skip
    own_labels = {**(metadata.get("labels") or {}), **(labels or {})}
    if own_labels:
        pod_metadata["labels"] = own_labels
    if metadata.get("annotations"):
        pod_metadata["annotations"] = metadata["annotations"]
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": pod_metadata, "spec": {**template["spec"], **(spec or {})}}
    return defaulted(body)


def is_ready(pod: Body) -> bool:
    """Return whether the pod is ready and not being deleted."""
    return condition(pod, "Ready").get("status") == "True" and "deletionTimestamp" not in pod["metadata"]


def is_active(pod: Body) -> bool:
    """Return whether the pod is neither finished nor being deleted."""
    return pod["status"].get("phase") not in ("Succeeded", "Failed") and "deletionTimestamp" not in pod["metadata"]


def condition(body: Body, type_: str) -> Body:
    """Return a status condition, empty if missing."""
    return next((c for c in (((body.get("status") or {}).get("conditions")) or ()) if c["type"] == type_), {})


def with_condition(conditions: Iterable[Body], new: Body, time: str) -> list[Body]:
    """The conditions with one replaced; lastTransitionTime moves only when the status does."""
    existing = list(conditions)
    old = next((c for c in existing if c["type"] == new["type"]), None)
    since = old["lastTransitionTime"] if old is not None and old["status"] == new["status"] else time
    updated = {**new, "lastTransitionTime": since}
    if old is None:
        return [*existing, updated]
    return [updated if c is old else c for c in existing]


def delete(state: State, body: Body, *, grace_s: int | None = None) -> None:
    """Delete in the background."""
    state.delete(BY_KIND[body["kind"]].group_plural, body, "Background", grace_s)


def write_status(state: State, live: Body, new: Body) -> None:
    """Store a controller's status and annotations, with ownership of the changed fields."""
    if new == live:
        return
    who = Manager(CONTROLLER, "Update", live["apiVersion"], "status")
    state.put(managed.written(new, managed.after_update(live, new, who, Shape(live["kind"]), state.time)))
