"""A schedule built on the one before is the one that is made from nothing, whatever was edited in between."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.api.binding import Constraint, PreviousPlacement
from reconciler.api.clusters import ClusterNode, ClusterObservation, Observations, Quota, Workload
from reconciler.api.content import digest_of_bytes
from reconciler.api.fleet import Fleet, Snapshot, StoreFile
from reconciler.api.refs import GVK, Identity
from reconciler.fleet import ParsedFile, parse
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.render import changed_identities
from reconciler.render.signatures import signatures
from reconciler.scheduler import Schedule, ScheduleTables, schedule_fleet
from tests.examples import examples

NOW = "2026-11-21T10:00:00Z"
CLUSTERS = ("m1", "m2", "m3")
SPACES = ("a", "b")
GATEWAYS = "gateway.networking.k8s.io"
ACK = "policy.one.alibabacloud.com/v1alpha1"
Doc = Mapping[str, Any]


def deployment(ns: str, name: str, replicas: int, config: str, cpu: str, lane: str) -> Doc:
    container = {
        "name": "c", "image": "i", "envFrom": [{"configMapRef": {"name": config}}, {"secretRef": {"name": "t1"}}],
        "resources": {"requests": {"cpu": cpu}},
    }  # fmt: skip
    spec = {"replicas": replicas, "selector": {"matchLabels": {"a": name}},
            "template": {"metadata": {"labels": {"a": name}}, "spec": {"containers": [container]}}}  # fmt: skip
    return {"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": name, "namespace": ns, "labels": {"lane": lane}}, "spec": spec}  # fmt: skip


def plain(kind: str, ns: str, name: str, lane: str, **fields: Any) -> Doc:
    api = {"HorizontalPodAutoscaler": "autoscaling/v2", "ServiceImport": "multicluster.x-k8s.io/v1alpha1",
           "EndpointSlice": "discovery.k8s.io/v1", "ExternalSecret": "external-secrets.io/v1",
           "SecretStore": "external-secrets.io/v1", "SealedSecret": "bitnami.com/v1alpha1",
           "HTTPRoute": f"{GATEWAYS}/v1", "ReferenceGrant": f"{GATEWAYS}/v1beta1"}.get(kind, "v1")  # fmt: skip
    metadata = {"name": name, "labels": {"lane": lane, **fields.pop("labels", {})}, **({"namespace": ns} if ns else {})}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **fields}


def policy(kind: str, ns: str, name: str, selects: list[Doc], placement: Doc, **spec: Any) -> Doc:
    return {"apiVersion": ACK, "kind": kind, "metadata": {"name": name, **({"namespace": ns} if ns else {})},
            "spec": {"resourceSelectors": selects, "placement": placement, **spec}}  # fmt: skip


APIS = {
    "Deployment": "apps/v1",
    "ExternalSecret": "external-secrets.io/v1",
    "HTTPRoute": f"{GATEWAYS}/v1",
    "HorizontalPodAutoscaler": "autoscaling/v2",
    "ServiceImport": "multicluster.x-k8s.io/v1alpha1",
}


def selector(kind: str, lane: str = "", name: str = "") -> Doc:
    return {"apiVersion": APIS.get(kind, "v1"), "kind": kind, **({"name": name} if name else {}),
            **({"labelSelector": {"matchLabels": {"lane": lane}}} if lane else {})}  # fmt: skip


WEIGHTED = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted"}
SCHEDULINGS: tuple[Doc, ...] = (
    {"replicaSchedulingType": "Duplicated"},
    WEIGHTED,
    {**WEIGHTED, "weightPreference": {"dynamicWeight": "AvailableReplicas"}},
    {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"},
)
SPREAD = [{"spreadByField": "cluster", "maxGroups": 2, "minGroups": 1}]

deployments = st.builds(
    deployment, st.sampled_from(SPACES), st.sampled_from(("d1", "d2")), st.integers(0, 5),
    st.sampled_from(("c1", "c2", "absent")), st.sampled_from(("100m", "1", "2")), st.sampled_from(("x", "y")),
)  # fmt: skip
others = st.one_of(
    st.builds(
        lambda ns, lane, v: {
            **policy("OverridePolicy", ns, "o", [selector("Deployment", lane)], {}),
            "spec": {"resourceSelectors": [selector("Deployment", lane)], "overrideRules": [
                {"overriders": {"labelsOverrider": [{"operator": "add", "value": {"v": v}}]}}]},
        },
        st.sampled_from(SPACES), st.sampled_from(("", "x")), st.sampled_from("12"),
    ),
    st.builds(
        lambda ns, name, lane, v: plain("ConfigMap", ns, name, lane, data={"v": v}),
        st.sampled_from(SPACES), st.sampled_from(("c1", "c2")), st.sampled_from(("x", "y")), st.sampled_from("12"),
    ),
    st.builds(
        lambda ns, lane: plain("ServiceImport", ns, "s1", lane, spec={"type": "ClusterSetIP", "ports": []}),
        st.sampled_from(SPACES), st.sampled_from(("x", "y")),
    ),
    st.builds(
        lambda ns, name, owner: plain(
            "EndpointSlice", ns, name, "x", labels={"kubernetes.io/service-name": owner},
            addressType="IPv4", endpoints=[],
        ),
        st.sampled_from(SPACES), st.sampled_from(("e1", "e2")), st.sampled_from(("derived-s1", "other")),
    ),
    st.builds(
        lambda ns, target: plain(
            "HorizontalPodAutoscaler", ns, "h1", "x",
            spec={"maxReplicas": 5, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": target}},
        ),
        st.sampled_from(SPACES), st.sampled_from(("d1", "d2")),
    ),
    st.builds(
        lambda ns, name, made, store, creation: plain(
            "ExternalSecret", ns, name, "x",
            spec={"secretStoreRef": {"name": store}, "target": {"name": made, "creationPolicy": creation}},
        ),
        st.sampled_from(SPACES), st.sampled_from(("x1", "x2")), st.sampled_from(("t1", "t2")),
        st.sampled_from(("s1", "s2")), st.sampled_from(("Owner", "Owner", "Merge", "None")),
    ),
    st.builds(
        lambda ns, name, made: plain(
            "SecretStore", ns, name, "x", spec={"provider": {"vault": {"tokenSecretRef": {"name": made, "key": "k"}}}}
        ),
        st.sampled_from(SPACES), st.sampled_from(("s1", "s2")), st.sampled_from(("t1", "t2")),
    ),
    st.builds(
        lambda ns, kind, name, lane: plain(kind, ns, name, lane),
        st.sampled_from(SPACES), st.sampled_from(("Secret", "SealedSecret")), st.sampled_from(("t1", "t2")),
        st.sampled_from("xy"),
    ),
    st.builds(lambda name, lane: plain("Namespace", "", name, lane), st.sampled_from(SPACES), st.sampled_from("xy")),
    st.builds(
        lambda ns, name, lane: plain("Service", ns, "s1", lane, spec={"selector": {"a": name}}),
        st.sampled_from(SPACES), st.sampled_from(("d1", "d2")), st.sampled_from("xy"),
    ),
    st.builds(
        lambda ns, lane, backends: plain(
            "HTTPRoute", ns, "r1", lane,
            spec={"rules": [{"backendRefs": [{"name": "s1", "namespace": backend} for backend in backends]}]},
        ),
        st.sampled_from(SPACES), st.sampled_from("xy"), st.lists(st.sampled_from(SPACES), max_size=2),
    ),
    st.builds(
        lambda ns, guest, kind: plain(
            "ReferenceGrant", ns, "g1", "x",
            spec={"from": [{"group": GATEWAYS, "kind": "HTTPRoute", "namespace": guest}],
                  "to": [{"group": "", "kind": kind}]},
        ),
        st.sampled_from(SPACES), st.sampled_from(SPACES), st.sampled_from(("Service", "Service", "Secret")),
    ),
    st.builds(
        lambda value: {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "gold"},
                       "value": value},
        st.integers(-1, 1),
    ),
)  # fmt: skip


@st.composite
def policies(draw: st.DrawFn) -> Doc:
    ns = draw(st.sampled_from(("", *SPACES)))
    kinds = [*APIS, "ConfigMap", *([] if ns else ["Namespace"])]
    lane = draw(st.sampled_from(("", "x", "y")))
    selects = [selector(kind, lane) for kind in draw(st.lists(st.sampled_from(kinds), min_size=1, unique=True))]
    placement: dict[str, Any] = {"replicaScheduling": draw(st.sampled_from(SCHEDULINGS))}
    names = draw(st.sampled_from(([], ["m1"], ["m2", "m3"], ["m1", "m2", "m3"])))
    if names:
        placement["clusterAffinity"] = {"clusterNames": names}
    if draw(st.booleans()):
        placement["spreadConstraints"] = SPREAD
    spec: dict[str, Any] = {"propagateDeps": draw(st.booleans())}
    if draw(st.integers(0, 5)) == 0:
        spec["dependentOverrides"] = ["nowhere"]
    if draw(st.booleans()):
        spec["schedulePriority"] = {"priorityClassSource": "KubePriorityClass", "priorityClassName": "gold"}
    kind = "PropagationPolicy" if ns else "ClusterPropagationPolicy"
    found = policy(kind, ns, draw(st.sampled_from(("p1", "p2"))), selects, placement, **spec)
    brings = draw(st.sampled_from(("", "services", "services,autoscalers", "routes", "services,routes")))
    return {**found, "metadata": {**found["metadata"], "annotations": {"fleet.reconciler/bring": brings}}}


def cluster(name: str, region: str, taint: bool) -> Doc:
    taints = [{"key": "k", "effect": "NoSchedule"}] if taint else []
    return {"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": name},
            "spec": {"region": region, "taints": taints}}  # fmt: skip


FIXED: dict[str, bytes] = {
    **{f"{name}.yaml": json.dumps(cluster(name, "r", False)).encode() for name in CLUSTERS},
    "fleet.yaml": b'{"apiVersion": "fleet.reconciler/v1alpha1", "kind": "Fleet", "metadata": {"name": "f"}}',
}


def path_of(doc: Doc) -> str:
    metadata = doc["metadata"]
    return f"{doc['kind']}-{metadata.get('namespace', '')}-{metadata['name']}.yaml"


edits = st.one_of(deployments, deployments, others, others, policies(), policies()).flatmap(
    lambda doc: st.tuples(
        st.just(path_of(doc)),
        st.sampled_from((doc, doc, doc, None)).map(lambda d: json.dumps(d).encode() if d else None),
    )
)
broken = st.tuples(st.just("broken.yaml"), st.sampled_from((b"a: [", None, None)))
changed_clusters = st.builds(cluster, st.just("m3"), st.sampled_from("rs"), st.booleans()).map(
    lambda doc: ("m3.yaml", json.dumps(doc).encode())
)
steps = st.tuples(
    st.lists(st.one_of(edits, edits, edits, edits, broken, changed_clusters), max_size=3),
    st.integers(0, 5),
    st.booleans(),
    st.integers(0, 4),
)


def observed(kind: int) -> Observations:
    """Free room that differs by `kind`; 0: nothing is known."""
    if kind == 0:
        return Observations()
    nodes = [
        ClusterNode(name="n", allocatable={"cpu": 2000 * kind + 1000 * index, "memory": 2**33, "pods": 20})
        for index in range(len(CLUSTERS))
    ]
    lagging = Identity("apps", "Deployment", "a", "d1")
    seen = Workload(gvk=GVK("apps", "v1", "Deployment"), identity=lagging, replicas=kind - 1, assigned=2, missing=1)
    clusters = {
        name: ClusterObservation(
            name=name,
            reachable=not (kind == 3 and name == "m2"),
            nodes=(node,),
            workloads={lagging: seen} if kind == 2 else {},
            pods={lagging: 1} if kind in (3, 4) else None,
            quotas=(Quota(namespace="a", hard={"count/configmaps": 2, "pods": 6}),) if kind == 4 else (),
            apis=frozenset({GVK("apps", "v1", "Deployment"), GVK("", "v1", "ConfigMap")}) if kind == 5 else None,
        )
        for name, node in zip(CLUSTERS, nodes, strict=True)
    }
    return Observations(clusters=clusters)


ALL_OBSERVED = [observed(kind) for kind in range(6)]


def fleet_of(files: Mapping[str, bytes], cache: dict[str, ParsedFile]) -> Fleet:
    stored = tuple(StoreFile(path=path, blob=digest_of_bytes(files[path]), data=files[path]) for path in sorted(files))
    return parse(Snapshot(revision="r", files=stored), cache)


def placements(schedule: Schedule) -> dict[Identity, PreviousPlacement]:
    return {
        identity: PreviousPlacement(identity=identity, targets=binding.targets, affinity_name=binding.affinity_name)
        for identity, binding in schedule.bindings.items()
    }


BASE: tuple[Doc, ...] = (
    *(deployment(ns, name, 3, "c1", "1", lane) for ns in SPACES for name, lane in (("d1", "x"), ("d2", "y"))),
    *(plain("ConfigMap", ns, name, "x", data={"v": "1"}) for ns in SPACES for name in ("c1", "c2")),
    *(plain("ExternalSecret", ns, "x1", "x", spec={"secretStoreRef": {"name": "s1"}, "target": {"name": "t1"}})
      for ns in SPACES),
    *(plain("SecretStore", ns, "s1", "x",
            spec={"provider": {"vault": {"tokenSecretRef": {"name": "t2", "key": "k"}}}}) for ns in SPACES),
    *(plain("SealedSecret", ns, "t2", "x") for ns in SPACES),
    *(plain("ServiceImport", ns, "s1", "x", spec={"type": "ClusterSetIP", "ports": []}) for ns in SPACES),
    plain("Namespace", "", "a", "x"),
    policy("PropagationPolicy", "a", "p1", [selector("Deployment")], {"replicaScheduling": SCHEDULINGS[2]},
           propagateDeps=True),
    policy("ClusterPropagationPolicy", "", "p1", [selector("Deployment", "x"), selector("ServiceImport")],
           {"replicaScheduling": SCHEDULINGS[1]}, propagateDeps=True),
    policy("ClusterPropagationPolicy", "", "p2", [selector("Deployment", "y"), selector("ConfigMap", name="c2")],
           {"replicaScheduling": SCHEDULINGS[0], "spreadConstraints": SPREAD}, propagateDeps=True),
)  # fmt: skip


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(steps, min_size=2, max_size=10))
def test_a_memo_never_changes_a_decision(
    series: list[tuple[list[tuple[str, bytes | None]], int, bool, int]],
) -> None:
    files = FIXED | {path_of(doc): json.dumps(doc).encode() for doc in BASE}
    cache, memo = dict[str, ParsedFile](), ScheduleTables()
    previous: dict[Identity, PreviousPlacement] = {}
    copies: dict[Identity, set[str]] = {}
    last: Schedule | None = None
    for number, (edited, kind, remembers, ticked) in enumerate(series):
        for path, data in edited:
            if data is None:
                files.pop(path, None)
            else:
                files[path] = data
        fleet = fleet_of(files, cache)
        constraints = tuple(
            Constraint(identity=identity, cluster="m1", replicas_max=ticked - 1, reason="t", excludes=ticked == 2)
            for identity in sorted(fleet.templates)[: ticked // 2]
        )
        seen = Observations(
            clusters=ALL_OBSERVED[kind].clusters, previous=previous, constraints=constraints if ticked else ()
        )
        fresh = number % 5 == 4
        again = schedule_fleet(fleet, seen, NOW, copies=copies, fresh=fresh, tables=memo, interpreters=BUILT_IN_KINDS)
        anew = schedule_fleet(fleet, seen, NOW, copies=copies, fresh=fresh, interpreters=BUILT_IN_KINDS)
        assert again == anew
        for one, other in ((again.bindings, anew.bindings), (again.policies, anew.policies), (again.needs, anew.needs)):
            assert list(one) == list(other)
        old, new = signatures(last) if last else {}, signatures(again)
        differing = {identity for identity in {*old, *new} if old.get(identity) != new.get(identity)}
        assert changed_identities(last, again) == differing
        assert changed_identities(last, again, memo.changed) == differing
        last = again
        if remembers:
            lost = CLUSTERS[number % 3] if ticked == 1 else ""
            copies = {identity: {*binding.clusters} - {lost} for identity, binding in again.bindings.items()}
            previous = placements(again)
