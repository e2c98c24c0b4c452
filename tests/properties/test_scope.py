"""A round that looks at an object in one cluster alone plans there what a round over everything plans.

Source: ADR 15.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from reconciler.api.clusters import Read
from reconciler.api.fleet import Fleet
from reconciler.api.plan import Change
from reconciler.api.refs import Identity
from reconciler.controller.cluster_reads.scope import ReadScope, scope_of, with_unasked
from reconciler.fleet_snapshot import FleetSnapshot
from reconciler.planner import is_held_by_guard, plan_round
from reconciler.render import arrivals, changed_identities
from reconciler.scheduler import schedule_fleet
from tests.examples import examples
from tests.fakes.worlds import NOW, TestBed, config_map, deployment, fleet_of, job, policy

CLUSTERS = ("m1", "m2", "m3")
KINDS: dict[str, Callable[[str], dict[str, Any]]] = {"Deployment": deployment, "ConfigMap": config_map, "Job": job}
Copy = tuple[str, Identity]


@st.composite
def stores(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Some objects, each with a policy of its own."""
    documents: list[dict[str, Any]] = []
    for number in range(draw(st.integers(1, 3))):
        name, kind = f"a{number}", draw(st.sampled_from(sorted(KINDS)))
        documents.append(KINDS[kind](name))
        where = draw(st.sets(st.sampled_from(CLUSTERS)))
        found = policy(kind, *sorted(where), name=name)
        found["spec"]["resourceSelectors"][0]["name"] = name
        if kind == "Deployment" and draw(st.booleans()):
            documents[-1]["spec"]["replicas"] = draw(st.integers(0, 7))
            weights = {"staticWeightList": [
                {"targetCluster": {"clusterNames": [cluster]}, "weight": draw(st.integers(1, 3))}
                for cluster in CLUSTERS
            ]}  # fmt: skip
            found["spec"]["placement"]["replicaScheduling"] = {
                "replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted",
                "weightPreference": weights,
            }  # fmt: skip
        documents.append(found)
    return documents


@st.composite
def edits(draw: st.DrawFn, bed: TestBed) -> list[Copy]:
    """Hand edits of copies; these are what watches tell of."""
    copies = [(cluster, identity) for cluster, objects in bed.objects.items() for identity in objects]
    chosen = draw(st.lists(st.sampled_from(sorted(copies)), max_size=3, unique=True)) if copies else []
    for cluster, identity in chosen:
        live = bed.objects[cluster][identity]
        match draw(st.sampled_from(["gone", "data", "marks", "status", "another"])):
            case "gone":
                del bed.objects[cluster][identity]
            case "data":
                bed.edit(cluster, identity, data={"by": "hand"}, spec={**live.body.get("spec", {}), "replicas": 9})
            case "marks":
                body = copy.deepcopy(dict(live.body))
                body["metadata"].pop(draw(st.sampled_from(["labels", "annotations"])), None)
                bed.objects[cluster][identity] = replace(live, body=body)
            case "status":
                bed.edit(cluster, identity, status={})
            case "another":
                bed.objects[cluster][identity] = replace(live, uid="another")
    return chosen


def seen_by(scope: ReadScope, world: FleetSnapshot) -> FleetSnapshot:
    """The world as a round with this scope sees it."""
    read = {
        name: replace(member, objects={i: live for i, live in member.objects.items() if i in scope.asked_in(name)})
        for name, member in world.members.items()
        if isinstance(member, Read)
    }
    return replace(world, only=scope.only, members=with_unasked(dict.fromkeys(read, ""), read, scope))


def key(change: Change) -> tuple[Any, ...]:
    return (change.identity, change.cluster, change.action, change.held, change.cause, change.fields, change.manifest)


def copy_of(change: Change) -> Copy:
    return change.cluster, change.identity


def run(bed: TestBed, fleet: Fleet) -> None:
    """Until nothing is left to be done."""
    for _ in range(4):
        for cluster, objects in bed.objects.items():
            for identity in objects:
                if identity.kind == "Deployment":
                    bed.healthy(cluster, identity)
        bed.run(fleet)


@settings(max_examples=examples(50), deadline=None)
@given(data=st.data())
def test_what_is_read_in_one_cluster_is_planned_as_if_all_were_read(data: st.DataObject) -> None:
    documents, bed = data.draw(stores()), TestBed(*CLUSTERS)
    before = fleet_of(*documents, clusters=data.draw(st.sampled_from([CLUSTERS, CLUSTERS[:2]])))
    run(bed, before)
    edited = data.draw(st.permutations(documents)) if data.draw(st.booleans()) else data.draw(stores())
    fleet = fleet_of(*edited, clusters=data.draw(st.sampled_from([CLUSTERS, CLUSTERS[1:]])))
    if data.draw(st.booleans()):
        # What moves is on its way when something happens to it.
        bed.run(fleet)
        before = fleet
    old = schedule_fleet(before, bed.observations, NOW, interpreters=bed.interpreters)
    due = bed.plan(fleet).plan.changes
    marked = data.draw(edits(bed))
    world = bed.world(fleet)
    schedule = schedule_fleet(fleet, bed.observations, NOW, interpreters=bed.interpreters)

    copies: dict[str, set[Identity]] = {}
    for cluster, identity in marked:
        copies.setdefault(cluster, set()).add(identity)
    changed = changed_identities(old, schedule)
    coming = arrivals(old, schedule, changed)
    for identity, clusters in coming.items():
        for cluster in clusters:
            copies.setdefault(cluster, set()).add(identity)
    # What a guard holds is looked at by every round.
    confirming = {change.identity for change in due if is_held_by_guard(change)}
    scope = scope_of(
        schedule, bed.ledger, identities=(changed - coming.keys()) | confirming, copies=copies,
        unfinished={change.identity for change in due if change.held},
        clusters=data.draw(st.sets(st.sampled_from(CLUSTERS), max_size=1)),
    )  # fmt: skip

    whole = plan_round(world, schedule).plan.changes
    part = plan_round(seen := seen_by(scope, world), schedule).plan.changes
    looked_at = [change for change in whole if seen.is_asked(change.cluster, change.identity)]
    assert sorted(map(key, part), key=repr) == sorted(map(key, looked_at), key=repr)
    # What it did not look at was due before anything happened, and is remembered.
    assert {copy_of(change) for change in whole} - set(map(copy_of, looked_at)) <= set(map(copy_of, due))
