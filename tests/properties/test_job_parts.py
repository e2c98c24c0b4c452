"""No completion of a divided Job is lost, whatever ticks, persons and edits do to its placement.

Source: Kubernetes: spec.completions is immutable; design#jobs: split at creation and fixed.
"""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from reconciler.api.binding import Constraint, Tick
from reconciler.api.clusters import ClusterNode, ClusterObservation
from reconciler.api.fleet import Fleet
from reconciler.api.refs import Identity
from tests.examples import examples
from tests.fakes.worlds import TestBed, fleet_of, job, policy

CLUSTERS = ("m1", "m2", "m3", "m4")
JOB = Identity("batch", "Job", "demo", "app")
DYNAMIC = {"replicaDivisionPreference": "Weighted", "weightPreference": {"dynamicWeight": "AvailableReplicas"}}
STATIC = {"replicaDivisionPreference": "Weighted"}
AGGREGATED = {"replicaDivisionPreference": "Aggregated"}
ROUNDS = 3
"""A part goes, and its successor comes one round later."""

steps = st.one_of(
    st.tuples(st.just("evict"), st.sampled_from(CLUSTERS)),
    st.tuples(st.just("cap"), st.sampled_from(CLUSTERS)),
    st.tuples(st.just("readmit"), st.sampled_from(CLUSTERS)),
    st.tuples(st.just("parallelism"), st.sampled_from(("1", "3", "5"))),
    st.tuples(st.just("full"), st.sampled_from(CLUSTERS)),
    st.tuples(st.just("empty"), st.sampled_from(CLUSTERS)),
)


def store(parallelism: int, completions: int, division: dict[str, Any], clusters: int) -> Fleet:
    body = job()
    body["spec"] |= {"parallelism": parallelism, "completions": completions}
    rule = policy("Job", *CLUSTERS[:clusters])
    rule["spec"]["placement"]["replicaScheduling"] = {"replicaSchedulingType": "Divided", **division}
    return fleet_of(body, rule, clusters=CLUSTERS)


def parts(bed: TestBed) -> dict[str, int]:
    found = {name: objects[JOB].body["spec"] for name, objects in bed.objects.items() if JOB in objects}
    return {name: spec["completions"] for name, spec in found.items()}


def start(bed: TestBed) -> None:
    """Every part is at work."""
    for name in parts(bed):
        bed.edit(name, JOB, status={"active": 1, "ready": 1})


def step(bed: TestBed, what: str, value: str) -> None:
    seen = bed.observations
    if what in ("evict", "cap"):
        found = Constraint(identity=JOB, cluster=value, replicas_max=0, reason=what, excludes=what == "evict",
                           tick=Tick.EVICTION if what == "evict" else Tick.DESCHEDULING)  # fmt: skip
        bed.observations = replace(seen, constraints=(*seen.constraints, found))
    elif what == "readmit":
        bed.observations = replace(seen, constraints=tuple(c for c in seen.constraints if c.cluster != value))
    elif what in ("full", "empty"):
        bed.observations = replace(seen, clusters={**seen.clusters, value: room(value, 0 if what == "full" else 50)})


def room(name: str, cpus: int) -> ClusterObservation:
    amounts = {"cpu": cpus * 1000, "memory": 2**40, "pods": cpus}
    return ClusterObservation(name=name, nodes=(ClusterNode(name="n", allocatable=amounts),))


@settings(max_examples=examples(20), deadline=None)
@given(
    st.lists(steps, min_size=1, max_size=4),
    st.sampled_from((DYNAMIC, STATIC, AGGREGATED)),
    st.integers(2, 12),
    st.integers(2, 4),
)
def test_the_parts_of_a_job_have_all_its_completions(
    series: list[tuple[str, str]], division: dict[str, Any], completions: int, clusters: int
) -> None:
    parallelism, bed = 3, TestBed(*CLUSTERS)
    bed.observations = replace(bed.observations, clusters={name: room(name, 50) for name in CLUSTERS})
    for what, value in (("parallelism", "3"), *series):
        if what == "parallelism":
            parallelism = int(value)
        step(bed, what, value)
        fleet = store(parallelism, completions, division, clusters)
        problems: set[str] = set()
        for _ in range(ROUNDS):
            problems = {problem.code for problem in bed.run(fleet).plan.problems}
            start(bed)
        assert sum(parts(bed).values()) == completions
        assert "completions-lost" not in problems


def test_what_is_lost_all_the_same_is_said() -> None:
    bed = TestBed(*CLUSTERS)
    bed.observations = replace(bed.observations, clusters={name: room(name, 50) for name in CLUSTERS})
    fleet = store(3, 9, DYNAMIC, 3)
    bed.run(fleet)
    start(bed)
    assert parts(bed) == {"m1": 3, "m2": 3, "m3": 3}
    # As a program that did not know better left it: the part is gone, and its parallelism is with the others.
    gone = bed.objects["m3"].pop(JOB)
    bed.ledger["m3"].pop(gone.identity)
    previous = bed.observations.previous[JOB]
    targets = tuple(target._replace(replicas=2) for target in previous.targets if target.cluster != "m3")[:2]
    less = replace(previous, targets=(targets[0], targets[1]._replace(replicas=1)))
    bed.observations = replace(bed.observations, previous={JOB: less})
    (problem,) = [found for found in bed.plan(fleet).plan.problems if found.code == "completions-lost"]
    assert "3 of its 9 completions run nowhere: those of the parts in m1, m2 are fixed" in problem.message


def test_a_part_that_ended_and_was_taken_away_by_hand_has_done_its_share() -> None:
    bed = TestBed(*CLUSTERS)
    bed.observations = replace(bed.observations, clusters={name: room(name, 50) for name in CLUSTERS})
    fleet = store(3, 9, DYNAMIC, 3)
    bed.run(fleet)
    start(bed)
    del bed.objects["m3"][JOB]
    bed.ledger["m3"][JOB] = replace(bed.ledger["m3"][JOB], finished=True)
    assert [problem.code for problem in bed.plan(fleet).plan.problems] == []
