"""Members in memory that hold what a plan wants, as an API server would return it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from reconciler.api.clusters import LiveObject, Read
from reconciler.api.content import JsonObject
from reconciler.api.ledger import AppliedRow
from reconciler.api.plan import Manifest
from reconciler.api.refs import GVK, Identity
from reconciler.ownership import field_manager, read_owner

_SERVED = {
    GVK("apps", "v1", "Deployment"): True,
    GVK("", "v1", "Service"): True,
    GVK("", "v1", "ConfigMap"): True,
    GVK("", "v1", "Namespace"): False,
}


def members_of(
    manifests: Iterable[Manifest], fleet: str
) -> tuple[dict[str, Read], dict[str, dict[Identity, AppliedRow]]]:
    """Members that are in step, and the rows of the journal that say so."""
    objects: dict[str, dict[Identity, LiveObject]] = {}
    rows: dict[str, dict[Identity, AppliedRow]] = {}
    for number, manifest in enumerate(manifests):
        live = live_object(manifest.gvk, manifest.identity, manifest.body, fleet, "1", uid=f"uid-{number}")
        objects.setdefault(manifest.cluster, {})[manifest.identity] = live
        rows.setdefault(manifest.cluster, {})[manifest.identity] = row_of(manifest, live.uid)
    kinds = frozenset(gvk.group_kind for gvk in _SERVED)
    members = {name: Read(name=name, objects=found, kinds=kinds, served=_SERVED) for name, found in objects.items()}
    return members, rows


def live_object(
    gvk: GVK, identity: Identity, manifest: JsonObject, fleet: str, version: str, *, uid: str = ""
) -> LiveObject:
    """A manifest as an API server returns it once it was applied; without a `uid`, one of the identity."""
    body: Any = orjson.loads(orjson.dumps(manifest))
    uid = uid or f"uid of {identity}"
    fields = {key: value for key, value in body.items() if key not in ("apiVersion", "kind", "metadata")}
    owned = {"metadata": {key: body["metadata"].get(key, {}) for key in ("labels", "annotations")}, **fields}
    entry = {"manager": field_manager(fleet), "operation": "Apply", "apiVersion": body["apiVersion"],
             "time": "2026-11-21T10:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": _fields(owned)}  # fmt: skip
    body["metadata"].update(
        uid=uid, resourceVersion=version, generation=1, creationTimestamp="2026-11-21T10:00:00Z", managedFields=[entry]
    )
    if identity.kind == "Deployment":
        replicas = body["spec"]["replicas"]
        counts = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
        body["status"] = {"observedGeneration": 1, **dict.fromkeys(counts, replicas)}
    return LiveObject(gvk=gvk, identity=identity, uid=uid, resource_version=version, body=body)


def _fields(value: Any) -> Mapping[str, Any]:
    """The managedFields of a value; list items are keyed by name, which is enough for the generated fleet."""
    if isinstance(value, dict):
        return {f"f:{key}": _fields(below) for key, below in value.items()}
    if isinstance(value, list) and value and all(isinstance(item, dict) and "name" in item for item in value):
        return {f'k:{{"name":"{item["name"]}"}}': {".": {}, **_fields(item)} for item in value}
    return {}


def row_of(manifest: Manifest, uid: str) -> AppliedRow:
    """Return what the journal keeps of a manifest that was applied."""
    owner = read_owner(manifest.body)
    assert owner is not None, "what was rendered carries our mark"
    return AppliedRow(
        cluster=manifest.cluster, gvk=manifest.gvk, identity=manifest.identity, uid=uid,
        manifest_digest=manifest.digest, recorded=manifest.body, policy=str(owner.policy or ""),
        keep=owner.keep, flavor=owner.flavor, replicas=owner.replicas, dependency=owner.dependency,
    )  # fmt: skip
