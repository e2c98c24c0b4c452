"""Members in memory to which one revision after the other is applied until all is quiet, and what is seen of them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from msgspec.structs import replace

from reconciler.api.clusters import (
    ClusterObservation,
    Health,
    LiveObject,
    Member,
    NotRead,
    Observations,
    Read,
    Workload,
)
from reconciler.api.content import dig
from reconciler.api.fleet import Fleet
from reconciler.api.ledger import AppliedRow, JournalSnapshot
from reconciler.api.refs import GVK, Identity
from reconciler.documents import FREE, Schema, builtin_schema, is_namespaced
from reconciler.fleet_snapshot import FleetSnapshot
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.planner import Round
from tests.fakes.worlds import NOW, SERVED, TestBed

EVERY_KIND = SERVED | {
    GVK("bitnami.com", "v1alpha1", "SealedSecret"): True,
    GVK("autoscaling", "v2", "HorizontalPodAutoscaler"): True,
    GVK("multicluster.x-k8s.io", "v1alpha1", "ServiceImport"): True,
    GVK("discovery.k8s.io", "v1", "EndpointSlice"): True,
    GVK("scheduling.k8s.io", "v1", "PriorityClass"): False,
    GVK("", "v1", "Service"): True,
}
OPEN_KINDS = {gvk: Schema(root=FREE, keeps_empty=True) for gvk in EVERY_KIND if builtin_schema(gvk) is None}
"""The answers of members about custom resources: anything goes."""
_RUNS = {("apps", "Deployment"), ("batch", "Job")}
Copy = tuple[str, Identity]


class AppliedMembers(TestBed):
    """Clusters that do what a revision asks of them. `seen`: their nodes and what else is observed of them."""

    def __init__(self, names: Collection[str], seen: Observations) -> None:
        super().__init__(*names)
        self.observations = seen

    def world(self, fleet: Fleet) -> FleetSnapshot:
        """As a round of the service finds them: the members that the store names, the journal of all."""
        members: dict[str, Member] = {}
        for name in fleet.clusters:
            if name in self.down:
                continue
            objects = self.objects.setdefault(name, {})
            self.ledger.setdefault(name, {})
            wanted = {*fleet.templates, *objects, *(Identity("", "Namespace", "", space) for space in "ab")}
            seen = self.observations.clusters.get(name)
            apis = seen.apis if seen is not None and seen.apis is not None else EVERY_KIND
            members[name] = Read(
                name=name, objects=dict(objects), absent=frozenset(wanted - objects.keys()),
                kinds=frozenset(gvk.group_kind for gvk in apis), served=_scopes(apis),
            )  # fmt: skip
        members |= {name: NotRead(name=name, why="no answer") for name in self.down}
        return FleetSnapshot(
            fleet=fleet,
            members=members,
            observations=self.observations,
            journal=JournalSnapshot(ledger=self.ledger),
            now=NOW,
            schemas=OPEN_KINDS,
            interpreters=BUILT_IN_KINDS,
        )

    def settle(self, fleet: Fleet) -> Round:
        """Apply a revision until nothing is due any more; every copy becomes available."""
        for _ in range(8):
            planned = self.run(fleet)
            self.become_available(())
            if not planned.plan.waves and not planned.at_rest:
                return planned
        raise AssertionError("it does not come to rest")

    def become_available(self, but: Collection[Copy]) -> None:
        """Every workload runs as it should, but for these."""
        for cluster, objects in self.objects.items():
            for identity in [i for i in objects if i[:2] in _RUNS]:
                self._run_copy(cluster, identity, is_available=(cluster, identity) not in but)

    def copies(self) -> list[Copy]:
        """Every workload that is there."""
        return [
            (cluster, i) for cluster, objects in sorted(self.objects.items()) for i in sorted(objects) if i[:2] in _RUNS
        ]

    def look(self) -> None:
        clusters = dict(self.observations.clusters)
        for name, objects in self.objects.items():
            rows = self.ledger[name]
            workloads = {i: _workload(live, rows.get(i)) for i, live in objects.items() if i[:2] in _RUNS}
            clusters[name] = replace(clusters.get(name) or ClusterObservation(name=name), workloads=workloads)
        self.observations = replace(self.observations, clusters=clusters)

    def lose(self, name: str) -> None:
        """A cluster does not answer any more."""
        self.down.add(name)
        clusters = self.observations.clusters
        self.observations = replace(
            self.observations, clusters={**clusters, name: replace(clusters[name], reachable=False)}
        )

    def _run_copy(self, cluster: str, identity: Identity, *, is_available: bool) -> None:
        if identity.kind == "Job":
            self.edit(cluster, identity, status={"active": 1})
            return
        count = dig(self.objects[cluster][identity].body, "spec", "replicas")
        count = 1 if count is None else count
        ready = count if is_available else max(0, count - 1)
        status: dict[str, Any] = {"observedGeneration": 1, "replicas": count, "updatedReplicas": count,
                                  "readyReplicas": ready, "availableReplicas": ready}  # fmt: skip
        if not is_available:
            status["conditions"] = [{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}]
        self.edit(cluster, identity, status=status)


def _workload(live: LiveObject, row: AppliedRow | None) -> Workload:
    interpreter = BUILT_IN_KINDS.of(*live.identity[:2])
    count = interpreter.demand(live.body).replicas or 0
    health = interpreter.health(live.body)
    return Workload(
        gvk=live.gvk, identity=live.identity, replicas=count, ready=count if health is Health.HEALTHY else count - 1,
        health=health, established=row.established if row else None,
    )  # fmt: skip


def _scopes(apis: Collection[GVK]) -> dict[GVK, bool]:
    """Return whether each kind is served in namespaces; one that is not built in is."""
    return {gvk: is_namespaced(*gvk.group_kind) is not False for gvk in apis}
