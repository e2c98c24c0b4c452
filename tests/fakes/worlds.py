"""Small worlds for tests of whole rounds: a store as YAML, members that hold what was applied."""

from __future__ import annotations

import copy
from typing import Any

import yaml
from msgspec.structs import replace

from reconciler.api.clusters import LiveObject, Member, NotRead, Observations, Read
from reconciler.api.fleet import Fleet, Snapshot, StoreFile
from reconciler.api.ledger import AppliedRow, JournalSnapshot
from reconciler.api.plan import Action, Cause, Change
from reconciler.api.refs import GVK, Identity
from reconciler.fleet import parse
from reconciler.fleet_snapshot import FleetSnapshot
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.observations import has_succeeded, memory_of, with_copy_at_rest
from reconciler.ownership import field_manager, read_owner
from reconciler.planner import Round, plan_round, previous_of

NOW = "2026-11-21T10:00:00Z"
FLEET = {"apiVersion": "fleet.reconciler/v1alpha1", "kind": "Fleet", "metadata": {"name": "test"}}
SERVED = {
    GVK("", "v1", "ConfigMap"): True,
    GVK("", "v1", "Namespace"): False,
    GVK("", "v1", "PersistentVolume"): False,
    GVK("", "v1", "PersistentVolumeClaim"): True,
    GVK("", "v1", "Secret"): True,
    GVK("", "v1", "Service"): True,
    GVK("apps", "v1", "Deployment"): True,
    GVK("apps", "v1", "StatefulSet"): True,
    GVK("batch", "v1", "Job"): True,
    GVK("external-secrets.io", "v1", "ExternalSecret"): True,
    GVK("external-secrets.io", "v1", "SecretStore"): True,
    GVK("apiextensions.k8s.io", "v1", "CustomResourceDefinition"): False,
}


def fleet_of(*documents: dict[str, Any], clusters: tuple[str, ...] = ("m1", "m2", "m3"), broken: str = "") -> Fleet:
    """A parsed store. `broken`: the text of one more file."""
    members = [
        {"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": name}}
        for name in clusters
    ]
    fleet = () if any(document.get("kind") == "Fleet" for document in documents) else (FLEET,)
    text = yaml.safe_dump_all([*fleet, *members, *documents])
    files = [StoreFile(path="all.yaml", blob="a", data=text.encode())]
    if broken:
        files.append(StoreFile(path="broken.yaml", blob="b", data=broken.encode()))
    return parse(Snapshot(revision="r1", files=tuple(files)))


def config_map(name: str = "app", **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "demo"}, "data": data}


def deployment(name: str = "app", replicas: int = 2, image: str = "nginx:1") -> dict[str, Any]:
    labels = {"app": name}
    containers = [{"name": "main", "image": image}]
    return {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "demo"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels},
                 "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}}},
    }  # fmt: skip


def job(name: str = "app") -> dict[str, Any]:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "nginx:1"}]}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": "demo"},
            "spec": {"template": template}}  # fmt: skip


def policy(
    kind: str, *clusters: str, name: str = "app", api: str = "policy.one.alibabacloud.com", **spec: Any
) -> dict[str, Any]:
    versions = {"Deployment": "apps/v1", "Job": "batch/v1"}
    placement = {"clusterAffinity": {"clusterNames": list(clusters)}} if clusters else {}
    metadata = {"name": name, "namespace": "demo"}
    return {"apiVersion": f"{api}/v1alpha1", "kind": "PropagationPolicy", "metadata": metadata,
            "spec": {"resourceSelectors": [{"apiVersion": versions.get(kind, "v1"), "kind": kind}],
                     "placement": placement, **spec}}  # fmt: skip


class TestBed:
    """Members in memory; `run` plans a round and makes its changes as an API server would."""

    __test__ = False

    def __init__(self, *names: str) -> None:
        self.objects: dict[str, dict[Identity, LiveObject]] = {name: {} for name in names or ("m1", "m2", "m3")}
        self.down: set[str] = set()
        self.ledger: dict[str, dict[Identity, AppliedRow]] = {name: {} for name in self.objects}
        self.observations = Observations()
        self.has_history = True
        self.interpreters = BUILT_IN_KINDS
        self._version = 0

    def world(self, fleet: Fleet) -> FleetSnapshot:
        members: dict[str, Member] = {}
        for name, objects in self.objects.items():
            kinds = frozenset(gvk.group_kind for gvk in SERVED)
            wanted = {*fleet.templates, *objects, Identity("", "Namespace", "", "demo")}
            members[name] = Read(name=name, objects=dict(objects), absent=frozenset(wanted - objects.keys()),
                                 kinds=kinds, served=SERVED)  # fmt: skip
        for name in self.down:
            members[name] = NotRead(name=name, why="no answer")
        return FleetSnapshot(
            fleet=fleet,
            interpreters=self.interpreters,
            now=NOW,
            members=members,
            observations=self.observations,
            journal=JournalSnapshot(ledger=self.ledger, has_history=self.has_history),
        )

    def plan(self, fleet: Fleet) -> Round:
        return plan_round(self.world(fleet))

    def run(self, fleet: Fleet) -> Round:
        planned = self.plan(fleet)
        for wave in planned.plan.waves:
            for index in wave:
                self.make(planned.plan.changes[index], fleet)
        self.record_rest(planned)
        previous = previous_of(planned.schedule.bindings)
        self.observations = replace(self.observations, previous=previous)
        return planned

    def record_rest(self, planned: Round) -> None:
        """Record in the journal copies where nothing is on its way."""
        for cluster, seen in planned.at_rest.items():
            rows = self.ledger[cluster]
            rows.update({i: with_copy_at_rest(rows[i], rest) for i, rest in seen.items() if i in rows})

    def make(self, change: Change, fleet: Fleet) -> None:
        """Do what an API server would do."""
        objects, rows = self.objects[change.cluster], self.ledger[change.cluster]
        if change.action in (Action.DELETE, Action.RELEASE):
            if change.action is Action.DELETE:
                del objects[change.identity]
            else:
                objects[change.identity] = self.live(change.gvk, self._bare(change, objects))
            row = rows.pop(change.identity, None)
            if row is not None and change.cause is Cause.COMPLETED:
                assert change.before is not None
                rows[change.identity] = replace(row, finished=True, failed=not has_succeeded(change.before))
            return
        assert change.manifest is not None
        body = copy.deepcopy(dict(change.manifest))
        entry = self._entry(body, fleet.settings.name)
        body["metadata"] = {**body["metadata"], "generation": 1, "managedFields": [entry]}
        before = objects.get(change.identity)
        uid = before.uid if before and change.action is not Action.REPLACE else ""
        live = objects[change.identity] = self.live(change.gvk, body, uid)
        owner = read_owner(change.manifest)
        assert owner is not None
        memory = memory_of(rows.get(change.identity), live.uid, owner.replicas)
        rows[change.identity] = AppliedRow(
            cluster=change.cluster, gvk=change.gvk, identity=change.identity, uid=live.uid,
            manifest_digest=change.manifest_digest, recorded=change.declared or change.manifest,
            policy=str(owner.policy or ""), keep=owner.keep, flavor=owner.flavor, replicas=owner.replicas,
            dependency=owner.dependency, source=change.source,
            established=memory.established, base=memory.base,
        )  # fmt: skip

    def live(self, gvk: GVK, body: dict[str, Any], uid: str = "") -> LiveObject:
        self._version += 1
        metadata = body["metadata"]
        identity = Identity(gvk.group, gvk.kind, metadata.get("namespace", ""), metadata["name"])
        return LiveObject(gvk=gvk, identity=identity, uid=uid or f"uid-{self._version}",
                          resource_version=str(self._version), body=body)  # fmt: skip

    def edit(self, cluster: str, identity: Identity, **fields: Any) -> None:
        """Top-level fields of an object changed by somebody else."""
        live = self.objects[cluster][identity]
        self.objects[cluster][identity] = replace(live, body={**live.body, **fields})

    def healthy(self, cluster: str, identity: Identity) -> None:
        """A Deployment that has rolled out."""
        live = self.objects[cluster][identity]
        count = live.body["spec"]["replicas"]
        status = {"observedGeneration": 1, "replicas": count, "updatedReplicas": count, "readyReplicas": count,
                  "availableReplicas": count}  # fmt: skip
        self.edit(cluster, identity, status=status)

    def _bare(self, change: Change, objects: dict[Identity, LiveObject]) -> dict[str, Any]:
        body = dict(objects[change.identity].body)
        kept = ("name", "namespace")
        return {**body, "metadata": {key: value for key, value in body["metadata"].items() if key in kept}}

    def _entry(self, body: dict[str, Any], fleet: str) -> dict[str, Any]:
        fields = {
            f"f:{key}": _fields(value) for key, value in body.items() if key not in ("apiVersion", "kind", "metadata")
        }
        metadata = {
            f"f:{key}": _fields(value) for key, value in body["metadata"].items() if key in ("labels", "annotations")
        }
        return {"manager": field_manager(fleet), "operation": "Apply", "apiVersion": body["apiVersion"],
                "fieldsType": "FieldsV1", "fieldsV1": {**fields, "f:metadata": metadata}}  # fmt: skip


def _fields(value: Any) -> dict[str, Any]:
    if isinstance(value, dict) and value:
        return {f"f:{key}": _fields(below) for key, below in value.items()}
    if isinstance(value, list) and value and all(isinstance(item, dict) and "name" in item for item in value):
        return {f'k:{{"name":"{item["name"]}"}}': {".": {}, **_fields(item)} for item in value}
    return {}
