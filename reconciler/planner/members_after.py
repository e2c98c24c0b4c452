"""The members after a revision was applied to them and came to rest.

Two revisions are compared by planning the second against such members: the same question, answered by the same code, as
with real ones. Source: design#one-plan.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Final

from msgspec.structs import replace

from reconciler.api.clusters import ClusterObservation, Health, LastHealth, LiveObject, Member, NotRead, Read
from reconciler.api.content import JsonObject, dig
from reconciler.api.ledger import AppliedRow, JournalSnapshot
from reconciler.api.plan import Manifest
from reconciler.api.policies import Flavor
from reconciler.api.refs import GVK, Identity
from reconciler.containment import try_call
from reconciler.diff import applied_fields, sendable
from reconciler.documents import Schema
from reconciler.kinds.registry import Registry
from reconciler.ownership import RELEASE, field_manager, read_owner, recorded_form
from reconciler.render import RenderTables, managed_in, render_all, template_of
from reconciler.scheduler import (
    KindSchemas,
    Schedule,
    dependents,
    waits_for_prerequisite,
    withheld,
    withheld_prerequisites,
)

_BEGUN: Final[Mapping[tuple[str, str], JsonObject]] = {
    ("batch", "Job"): {"status": {"active": 1}},
    ("", "Pod"): {"status": {"phase": "Running"}},
}
"""The status of a started run: only its cluster could report that it has not started, or has ended."""

_ENDED: Final = {"status": {"phase": "Succeeded", "conditions": [{"type": "Complete", "status": "True"}]}}
"""The status of a hook of a revision at rest."""


def is_written(schedule: Schedule, identity: Identity, cluster: str) -> bool:
    """Return whether a scheduled object is written there: neither it nor its prerequisites are frozen or held back."""
    if withheld(schedule, identity, cluster) is not None:
        return False
    return waits_for_prerequisite(schedule, identity, cluster) is None


def written_in(tables: RenderTables, observed: Mapping[str, ClusterObservation]) -> Counter[str]:
    """Return how many objects a schedule leaves in each cluster that is as `observed`."""
    schedule, managed = tables.schedule, Counter(managed_in(tables))
    waiting = held_back(schedule) | (schedule.frozen & schedule.bindings.keys())
    lacking: dict[GVK, frozenset[str]] = {}
    for identity, binding in schedule.bindings.items():
        template = template_of(schedule.fleet, identity)
        assert template is not None, f"{identity} is bound and has no template"
        gvk, names = template.gvk, schedule.fleet.clusters
        if gvk not in lacking:
            lacking[gvk] = frozenset(name for name in names if _served(schedule, gvk, name, observed) is False)
        if lacking[gvk] and not lacking[gvk].isdisjoint(binding.clusters):
            waiting.add(identity)
    # Unrendered objects were not counted in the first place.
    managed.subtract(
        manifest.cluster
        for manifest in render_all(tables, waiting).manifests
        if not _is_written(schedule, manifest, observed)
    )
    return managed


def _is_written(schedule: Schedule, manifest: Manifest, observed: Mapping[str, ClusterObservation]) -> bool:
    """Return whether a manifest is written in its cluster, where its kind is not known to be missing."""
    identity, cluster = manifest.identity, manifest.cluster
    return is_written(schedule, identity, cluster) and _served(schedule, manifest.gvk, cluster, observed) is not False


def held_back(schedule: Schedule) -> set[Identity]:
    """Return placed objects that may be held back: while they are, they stay due, whatever else changes."""
    held = schedule.bindings.keys() & schedule.holds.keys()
    if any(policy.suspension.is_any for policy in schedule.fleet.propagation):
        for identity, policy in schedule.policies.items():
            if policy.suspension.is_any and identity in schedule.bindings:
                held.add(identity)
    return held | dependents(schedule, held | (schedule.frozen & schedule.bindings.keys()))


def written_by(
    before: Schedule,
    after: Schedule,
    manifests: Collection[Manifest],
    observed: Mapping[str, ClusterObservation],
    only: Collection[Identity] | None = None,
) -> tuple[dict[str, Member], JournalSnapshot]:
    """Return the objects of `before`'s manifests in the members of `after`, all else absent there.

    `only`: the objects asked for. A copy is available if observed healthy, or not at all; silent members are not read.
    """
    shared: dict[int, tuple[LiveObject, AppliedRow]] = {}
    schemas = KindSchemas(before)
    objects: dict[str, dict[Identity, LiveObject]] = {name: {} for name in after.fleet.clusters}
    ledger: dict[str, dict[Identity, AppliedRow]] = {
        name: {} for name in {*before.fleet.clusters, *after.fleet.clusters}
    }
    for manifest in manifests:
        identity, cluster = manifest.identity, manifest.cluster
        if not _is_written(before, manifest, observed):
            continue
        # Clusters with equal content share the result.
        known = shared.get(id(manifest.content))
        if known is None:
            known = try_call(_applied, manifest, before, schemas.of(manifest.gvk)).value
            if known is None:
                continue  # As it is not there, the comparison meets the same fault and tells of it.
            shared[id(manifest.content)] = known
        live, row = known
        workload = observed[cluster].workloads.get(identity) if cluster in observed else None
        # The replicas that a copy has served with, as observed: of a healthy one all.
        is_full = workload is None or workload.health is Health.HEALTHY
        established = row.replicas or 0 if workload is None or is_full else workload.established
        is_same = row.cluster == cluster and row.established == established
        ledger[cluster][identity] = row if is_same else replace(row, cluster=cluster, established=established)
        if cluster in objects:
            objects[cluster][identity] = live
    wanted = after.bindings.keys() if only is None else {*only, *withheld_prerequisites(after, only)}
    return _members(before, after, observed, frozenset(wanted), objects), JournalSnapshot(ledger=ledger)


def _applied(manifest: Manifest, schedule: Schedule, schema: Schema | None) -> tuple[LiveObject, AppliedRow]:
    """Return the object and the row that clusters with one outcome have in common."""
    fleet, gvk, identity = schedule.fleet, manifest.gvk, manifest.identity
    body = sendable(manifest.body, schema)
    owner = read_owner(body)
    entry = {
        "manager": field_manager(fleet.settings.name),
        "operation": "Apply",
        "apiVersion": body.get("apiVersion"),
        "fieldsType": "FieldsV1",
        "fieldsV1": applied_fields(body, schema),
    }
    kind = (GVK.parse(str(body.get("apiVersion", "")), "").group, str(body.get("kind", "")))
    status = _ENDED if dig(body, "metadata", "annotations", RELEASE) else _BEGUN.get(kind, {})
    stored = {**body, **status, "metadata": {**body["metadata"], "managedFields": [entry]}}
    return LiveObject(gvk=gvk, identity=identity, uid="", resource_version="", body=stored), AppliedRow(
        cluster=manifest.cluster,
        gvk=gvk,
        identity=identity,
        manifest_digest=manifest.digest,
        recorded=recorded_form(body, b""),
        policy=str(manifest.policy or ""),
        keep=owner.keep if owner else True,
        flavor=owner.flavor if owner else Flavor.ACK,
        replicas=owner.replicas if owner else None,
        dependency=owner.dependency if owner else False,
        revision=fleet.revision,
        source=manifest.source,
    )


def _members(
    before: Schedule,
    after: Schedule,
    observed: Mapping[str, ClusterObservation],
    wanted: frozenset[Identity],
    objects: Mapping[str, Mapping[Identity, LiveObject]],
) -> dict[str, Member]:
    """Return the members that hold these objects: served kinds, absent objects, and the health of copies."""
    # The scope of a kind in a cluster is not observed: it is taken to be that of the store.
    scopes = {
        template.gvk: bool(identity.namespace)
        for identity in wanted
        for fleet in (before.fleet, after.fleet)
        if (template := template_of(fleet, identity)) is not None
    }
    # Without knowledge, every kind is served but those whose definition is still to come.
    unknown = {gvk: after.definition_of(gvk.group_kind) is None for gvk in scopes}
    members: dict[str, Member] = {}
    for name, held in sorted(objects.items()):
        cluster = observed.get(name)
        if cluster is not None and not cluster.reachable:
            members[name] = NotRead(name=name, why="it did not answer when it was observed")
            continue
        served = {gvk: _served(before, gvk, name, observed) for gvk in scopes}
        members[name] = Read(
            name=name,
            objects=held,
            absent=wanted - held.keys(),
            kinds=frozenset(identity[:2] for identity in wanted),
            served={gvk: scopes[gvk] for gvk, known in served.items() if (unknown[gvk] if known is None else known)},
            last_healths={
                identity: _observed_health(cluster, live, before.interpreters) for identity, live in held.items()
            },
        )
    return members


def _served(schedule: Schedule, gvk: GVK, cluster: str, observed: Mapping[str, ClusterObservation]) -> bool | None:
    """Return whether a cluster serves a kind once the schedule is carried out; None: unknown."""
    definition, observation = schedule.definition_of(gvk.group_kind), observed.get(cluster)
    if definition is not None:
        return cluster in schedule.bindings[definition].clusters and is_written(schedule, definition, cluster)
    return None if observation is None or observation.apis is None else gvk in observation.apis


def _observed_health(observation: ClusterObservation | None, live: LiveObject, interpreters: Registry) -> LastHealth:
    """Return the observed health; without observation that of a revision at rest."""
    interpreter = interpreters.of(*live.identity[:2])
    workload = observation.workloads.get(live.identity) if observation is not None else None
    is_counted = interpreter.counts_replicas
    if workload is None:
        return LastHealth(Health.HEALTHY, interpreter.demand(live.body).replicas if is_counted else None)
    return LastHealth(workload.health, workload.ready if is_counted else None)
