"""One plan: what an offline comparison shows is what the members would be asked for, and what is then written.

Source: design#one-plan; design#promise-9.
"""

from __future__ import annotations

import json
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from reconciler.api.binding import Constraint
from reconciler.api.fleet import Fleet
from reconciler.api.plan import Cause, Change, Plan
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.planner import compare_revisions, plan_round, previous_of
from reconciler.scheduler import schedule_fleet
from tests.examples import examples
from tests.properties.applied_members import AppliedMembers
from tests.properties.test_revisions import claimed_namespaces, overrides
from tests.properties.test_schedule_tables import (
    ALL_OBSERVED,
    BASE,
    CLUSTERS,
    FIXED,
    NOW,
    SCHEDULINGS,
    SPACES,
    SPREAD,
    WEIGHTED,
    Doc,
    broken,
    cluster,
    edits,
    fleet_of,
    path_of,
    plain,
    policy,
    selector,
)

KINDS = ("Deployment", "Deployment", "ConfigMap", "ServiceImport", "Job")
APIS = ("policy.one.alibabacloud.com/v1alpha1", "policy.karmada.io/v1alpha1")
STATIC = {
    **WEIGHTED,
    "weightPreference": {
        "staticWeightList": [
            {"targetCluster": {"clusterNames": ["m1"]}, "weight": 1},
            {"targetCluster": {"clusterNames": ["m2", "m3", "m4"]}, "weight": 2},
        ]
    },
}
HOLDS: tuple[Doc, ...] = (
    {}, {}, {}, {},
    {"suspension": {"dispatching": True}},
    {"suspension": {"dispatchingOnClusters": {"clusterNames": ["m1"]}}},
    {"dependentOverrides": ["o1"]},
    {"dependentOverrides": ["nowhere"]},
    {"conflictResolution": "Overwrite"},
)  # fmt: skip


def job(ns: str, replicas: int, image: str, lane: str) -> Doc:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": image}]}}
    spec = {"parallelism": replicas, "completions": replicas, "template": template}
    return {**plain("Job", ns, "j1", lane, spec=spec), "apiVersion": "batch/v1"}


def selects(kind: str, lane: str) -> Doc:
    return {**selector(kind, lane), "apiVersion": "batch/v1"} if kind == "Job" else selector(kind, lane)


@st.composite
def rules(draw: st.DrawFn) -> Doc:
    ns = draw(st.sampled_from(("", *SPACES)))
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=3, unique=True))
    lane = draw(st.sampled_from(("", "", "x", "y")))
    placement: dict[str, Any] = {"replicaScheduling": draw(st.sampled_from((*SCHEDULINGS, STATIC)))}
    names = draw(st.sampled_from(([], ["m1"], ["m2"], ["m2", "m3"], ["m1", "m4"])))
    if names:
        placement["clusterAffinity"] = {"clusterNames": names}
    if draw(st.integers(0, 4)) == 0:
        placement["spreadConstraints"] = SPREAD
    spec: dict[str, Any] = {"propagateDeps": draw(st.booleans()), **draw(st.sampled_from(HOLDS))}
    if (keep := draw(st.sampled_from((None, True, False, False)))) is not None:
        spec["preserveResourcesOnDeletion"] = keep
    kind = "PropagationPolicy" if ns else "ClusterPropagationPolicy"
    name = draw(st.sampled_from(("p1", "p2")))
    found = policy(kind, ns, name, [selects(kind, lane) for kind in kinds], placement, **spec)
    return {**found, "apiVersion": draw(st.sampled_from((*APIS[:1], *APIS)))}


jobs = st.builds(
    job, st.sampled_from(SPACES), st.integers(1, 6), st.sampled_from(("i", "i2")), st.sampled_from(("x", "y"))
)
fleets = st.builds(
    lambda guards, renamed: {
        "apiVersion": "fleet.reconciler/v1alpha1", "kind": "Fleet", "metadata": {"name": "g" if renamed else "f"},
        "spec": {"guards": guards, **({"previousNames": ["f"]} if renamed else {})},
    },
    st.sampled_from(({"maxDeletes": 0}, {"maxDeletes": 2, "maxDeletePercent": 50}, {"maxDeletes": 100})),
    st.sampled_from((False, False, True)),
)  # fmt: skip
members = st.one_of(
    st.sampled_from(("m3", "m4")).map(lambda name: (f"{name}.yaml", json.dumps(cluster(name, "r", False)).encode())),
    st.sampled_from(("m1", "m3", "m4")).map(lambda name: (f"{name}.yaml", None)),
    st.booleans().map(lambda taint: ("m3.yaml", json.dumps(cluster("m3", "s", taint)).encode())),
)
Edit = tuple[str, bytes | None]


def written(doc: Doc) -> Edit:
    return (path_of(doc), json.dumps(doc).encode())


def commits(*more: st.SearchStrategy[list[Edit]]) -> st.SearchStrategy[list[Edit]]:
    docs = st.one_of(rules(), rules(), jobs, overrides)
    edit = st.one_of(
        edits.map(lambda found: [found]),
        docs.flatmap(lambda doc: st.sampled_from(([written(doc)], [written(doc)], [(path_of(doc), None)]))),
        claimed_namespaces.map(lambda found: list(map(written, found))),
        members.map(lambda found: [found]),
        st.sampled_from([path_of(doc) for doc in BASE]).map(lambda path: [(path, None)]),
        *more,
    )
    return st.lists(edit, max_size=6).map(lambda lists: [one for found in lists for one in found])


first = commits(broken.map(lambda found: [found]))
second = commits(broken.map(lambda found: [found]), fleets.map(lambda doc: [written(doc)]))


def applied(files: dict[str, bytes], found: list[Edit]) -> dict[str, bytes]:
    return {path: data for path, data in (files | dict(found)).items() if data is not None}


def told(change: Change, *, is_counted: bool) -> tuple[Any, ...]:
    """A change as it is compared.

    An offline comparison knows the former template, and so says which fields an override has made; members do not.
    `is_counted`: the guard could count every deletion, of which it holds too many.
    """

    def cause(found: Cause) -> Cause:
        return Cause.DECLARED if found in (Cause.OVERRIDE, Cause.REMOVED) else found

    held = change.held if is_counted or not change.guarded else None
    return (
        change.identity, change.cluster, str(change.action), held, cause(change.cause), change.reason,
        [(field.path, field.before, field.after, cause(field.cause)) for field in change.fields], change.manifest,
    )  # fmt: skip


def all_told(plan: Plan, *, is_counted: bool) -> list[tuple[Any, ...]]:
    return [told(change, is_counted=is_counted) for change in plan.changes]


def check(base: Fleet, head: Fleet, kind: int, ticked: int, sick: int, gone: str) -> None:
    bed = AppliedMembers(CLUSTERS, ALL_OBSERVED[kind])
    constraints = tuple(
        Constraint(identity=identity, cluster="m1", replicas_max=ticked - 1, reason="t", excludes=ticked == 2)
        for identity in sorted(base.templates)[:ticked]
    )
    bed.observations = replace(bed.observations, constraints=constraints)
    bed.settle(base)
    copies = bed.copies()
    bed.become_available(copies[sick - 1 :: 2] if sick else ())
    bed.look()
    if gone:
        bed.lose(gone)
    # The members are as base leaves them. Where base itself is about to place something otherwise, they will be.
    assume(
        previous_of(schedule_fleet(base, bed.observations, NOW, interpreters=BUILT_IN_KINDS).bindings)
        == bed.observations.previous
    )
    offline = compare_revisions(base, head, bed.observations, NOW, interpreters=BUILT_IN_KINDS)
    live = plan_round(bed.world(head)).plan
    # What rests on room that nobody observed is named and not judged, and the plan is not complete then.
    unjudged = {found.identity for found in offline.unjudged}
    said, due = (all_told(plan, is_counted=not unjudged) for plan in (offline, live))
    due = [one for one in due if one[0] not in unjudged]
    more, less = [one[:-1] for one in said if one not in due], [one[:-1] for one in due if one not in said]
    assert not (more or less), f"only offline {more}, only live {less}"
    assert said == due
    assert offline.placements == tuple(placed for placed in live.placements if placed.identity not in unjudged)
    assert offline.is_complete == (live.is_complete and base.is_complete and not unjudged)
    if not unjudged:
        assert offline.waves == live.waves
        assert offline.held_digest == live.held_digest


@settings(max_examples=examples(125), deadline=None)
@given(
    first, second, st.sampled_from((0, 1, 1, 2, 4, 5)), st.integers(0, 3), st.integers(0, 2),
    st.sampled_from(("", "", "", "m2")),
)  # fmt: skip
def test_the_offline_plan_is_the_live_plan(
    made: list[Edit], edited: list[Edit], kind: int, ticked: int, sick: int, gone: str
) -> None:
    files = applied(FIXED | dict(map(written, BASE)), made)  # type: ignore[arg-type]
    check(fleet_of(files, {}), fleet_of(applied(files, edited), {}), kind, ticked, sick, gone)
