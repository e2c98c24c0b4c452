"""The observations file: what it may say, what is refused with which line, and that writing and reading are inverse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.api.binding import Constraint, PreviousPlacement, TargetCluster
from reconciler.api.clusters import (
    ClusterNode,
    ClusterObservation,
    Health,
    Observations,
    PendingPods,
    Quota,
    Taint,
    Workload,
)
from reconciler.api.refs import GVK, Identity
from reconciler.observations import dump_observations, parse_observations
from tests.yaml_text import load_yaml

FAULTS = load_yaml((Path(__file__).parents[2] / "cases" / "observations" / "faults.yaml").read_text())

WEB = Identity("apps", "Deployment", "demo", "web")
AS_DOCUMENTED = b"""
version: 1
clusters:
  - name: m1
    reachable: true
    observedAt: "2026-11-21T10:00:00Z"
    apis: [v1/ConfigMap, apps/v1/Deployment]   # kinds served; absent = assume built-in kinds
    pendingRequests: {cpu: "0", memory: "0", pods: "0"}
    quotas: []
    nodes:
      - {name: n1, ready: true, unschedulable: false, labels: {}, taints: [],
         allocatable: {cpu: "8", memory: 16Gi, pods: "110"}, requested: {cpu: "1", memory: 1Gi, pods: "3"}}
    workloads:
      - {apiVersion: apps/v1, kind: Deployment, namespace: demo, name: web, replicas: 3, ready: 3, unschedulable: 0,
         health: Healthy}
constraints: []
bindings:
  - resource: {apiVersion: apps/v1, kind: Deployment, namespace: demo, name: web}
    placement: [{cluster: m1, replicas: 3}]
"""


def read(text: bytes, path: str = "observations.yaml") -> Observations:
    observations, problems = parse_observations(text, path)
    assert observations is not None, problems
    assert problems == ()
    return observations


def test_reads_the_documented_example() -> None:
    observations = read(AS_DOCUMENTED)
    seen = observations.clusters["m1"]
    assert seen == ClusterObservation(
        name="m1",
        observed_at="2026-11-21T10:00:00Z",
        apis=frozenset({GVK("", "v1", "ConfigMap"), GVK("apps", "v1", "Deployment")}),
        pending_requests={"cpu": 0, "memory": 0, "pods": 0},
        nodes=(
            ClusterNode(
                name="n1",
                allocatable={"cpu": 8000, "memory": 16 * 2**30, "pods": 110},
                requested={"cpu": 1000, "memory": 2**30, "pods": 3},
            ),
        ),
        workloads={
            WEB: Workload(gvk=GVK("apps", "v1", "Deployment"), identity=WEB, replicas=3, ready=3, health=Health.HEALTHY)
        },
    )
    targets = (TargetCluster(cluster="m1", replicas=3),)
    assert observations.previous == {WEB: PreviousPlacement(identity=WEB, targets=targets)}


def test_tells_nodes_that_are_not_known_from_a_cluster_without_nodes() -> None:
    observations = read(b"version: 1\nclusters: [{name: a}, {name: b, nodes: []}, {name: c, nodes: null}]")
    assert observations.clusters["a"].nodes is None
    assert observations.clusters["b"].nodes == ()
    assert observations.clusters["c"].nodes is None


def test_tells_no_kinds_from_kinds_that_are_not_known() -> None:
    observations = read(b"version: 1\nclusters: [{name: a}, {name: b, apis: []}]")
    assert observations.clusters["a"].apis is None
    assert observations.clusters["b"].apis == frozenset()


def test_a_placement_without_replicas_has_none() -> None:
    text = b"version: 1\nbindings: [{resource: {apiVersion: v1, kind: ConfigMap, name: c}, placement: [{cluster: m1}]}]"
    (placement,) = read(text).previous.values()
    assert placement.targets == (TargetCluster(cluster="m1", replicas=None),)


def test_a_plain_timestamp_stays_text() -> None:
    observations = read(b"version: 1\nclusters: [{name: a, observedAt: 2026-11-21T10:00:00Z}]")
    assert observations.clusters["a"].observed_at == "2026-11-21T10:00:00Z"


def test_numbers_are_quantities_too() -> None:
    observations = read(b"version: 1\nclusters: [{name: a, nodes: [{name: n1, allocatable: {cpu: 1.5, pods: 7}}]}]")
    assert observations.clusters["a"].nodes == (ClusterNode(name="n1", allocatable={"cpu": 1500, "pods": 7}),)


def test_reads_json_that_is_larger_than_a_store_file_may_be() -> None:
    nodes = [{"name": f"node-{index:06}", "labels": {"pad": "x" * 60}} for index in range(50_000)]
    data = orjson.dumps({"version": 1, "clusters": [{"name": "m1", "nodes": nodes}]})
    seen = read(data, "observations.json").clusters["m1"]
    assert seen.nodes is not None
    assert len(seen.nodes) == 50_000


@pytest.mark.parametrize("fault", FAULTS, ids=[fault["case"] for fault in FAULTS])
def test_refuses_with_field_and_line(fault: dict[str, Any]) -> None:
    observations, problems = parse_observations(fault["file"].encode(), "observations.yaml")
    assert observations is None
    assert [[p.code, p.path, p.source.line] for p in problems] == fault["problems"], problems


NAMES = st.text("abc-1", min_size=1, max_size=6).filter(lambda text: text.strip("-") == text)
AMOUNTS = st.dictionaries(
    st.sampled_from(["cpu", "memory", "pods", "ephemeral-storage", "nvidia.com/gpu", "requests.cpu"]),
    st.one_of(st.integers(0, 10**7), st.integers(0, 64).map(lambda n: n * 2**30)),
    max_size=4,
)
TIMES = st.sampled_from(["", "2026-11-21T10:00:00Z", "2026-11-21T10:00:00.5+01:00"])
KINDS = st.sampled_from([GVK("apps", "v1", "Deployment"), GVK("", "v1", "ConfigMap"), GVK("batch", "v1", "Job")])
COUNTS = st.integers(0, 2**31 - 1)


@st.composite
def identities(draw: st.DrawFn) -> Identity:
    gvk = draw(KINDS)
    return Identity(gvk.group, gvk.kind, draw(st.sampled_from(["", "demo"])), draw(NAMES))


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    identity = draw(identities())
    return Workload(
        gvk=GVK(identity.group, draw(st.sampled_from(["v1", "v2beta1"])), identity.kind),
        identity=identity,
        replicas=draw(COUNTS),
        ready=draw(COUNTS),
        unschedulable=draw(COUNTS),
        unschedulable_since=draw(TIMES),
        health=draw(st.sampled_from(Health)),
        unhealthy_since=draw(TIMES),
        without_node=draw(st.one_of(st.none(), COUNTS)),
    )


@st.composite
def nodes(draw: st.DrawFn) -> ClusterNode:
    return ClusterNode(
        name=draw(NAMES),
        ready=draw(st.booleans()),
        unschedulable=draw(st.booleans()),
        labels=draw(st.dictionaries(NAMES, st.sampled_from(["", "x", "true", "1"]), max_size=2)),
        taints=tuple(
            Taint(
                key=key,
                value=draw(st.sampled_from(["", "v"])),
                effect=draw(st.sampled_from(["NoSchedule", "NoExecute"])),
            )
            for key in draw(st.lists(NAMES, max_size=2))
        ),
        allocatable=draw(AMOUNTS),
        requested=draw(AMOUNTS),
    )


@st.composite
def observed(draw: st.DrawFn) -> Observations:
    clusters = {
        name: ClusterObservation(
            name=name,
            reachable=draw(st.booleans()),
            observed_at=draw(TIMES),
            apis=draw(st.one_of(st.none(), st.frozensets(KINDS))),
            pending_requests=draw(AMOUNTS),
            pending=tuple(
                PendingPods(
                    namespace="demo",
                    pods=draw(COUNTS),
                    names=draw(st.sampled_from([(), ("a", "b")])),
                    refusal=draw(st.sampled_from(["", "node selector disk=ssd (1 node)"])),
                )
                for _ in range(draw(st.integers(0, 2)))
            ),
            quotas=tuple(
                Quota(namespace="demo", hard=draw(AMOUNTS), used=draw(AMOUNTS)) for _ in range(draw(st.integers(0, 2)))
            ),
            nodes=draw(st.one_of(st.none(), st.lists(nodes(), max_size=2, unique_by=lambda n: n.name).map(tuple))),
            workloads={w.identity: w for w in draw(st.lists(workloads(), max_size=2))},
        )
        for name in draw(st.lists(NAMES, max_size=2, unique=True))
    }
    constraints = tuple(
        Constraint(
            identity=draw(identities()),
            cluster=draw(NAMES),
            replicas_max=draw(COUNTS),
            reason=draw(st.sampled_from(["", "pods wait: 2"])),
            until=draw(TIMES),
            excludes=draw(st.booleans()),
        )
        for _ in range(draw(st.integers(0, 2)))
    )
    previous = {
        identity: PreviousPlacement(
            identity=identity,
            targets=tuple(
                TargetCluster(cluster=name, replicas=draw(st.one_of(st.none(), COUNTS)))
                for name in sorted(draw(st.sets(NAMES, max_size=2)))
            ),
            affinity_name=draw(st.sampled_from(["", "idc"])),
        )
        for identity in draw(st.lists(identities(), max_size=2, unique=True))
    }
    return Observations(clusters=clusters, constraints=constraints, previous=previous)


@given(observed(), st.sampled_from(["json", "yaml"]))
@settings(max_examples=100, deadline=None)
def test_what_is_written_reads_back_the_same(observations: Observations, form: str) -> None:
    tree = dump_observations(observations)
    text = orjson.dumps(tree) if form == "json" else yaml.safe_dump(tree).encode()
    assert read(text, f"observations.{form}") == observations


def test_writes_quantities_as_people_do() -> None:
    seen = ClusterObservation(name="m1", pending_requests={"cpu": 1500, "memory": 3 * 2**29, "nvidia.com/gpu": 2})
    tree = dump_observations(Observations(clusters={"m1": seen}))
    assert tree["clusters"][0]["pendingRequests"] == {"cpu": "1500m", "memory": "1536Mi", "nvidia.com/gpu": "2"}
