from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.api.clusters import Health, LiveObject, PendingPods, Taint, Workload
from reconciler.api.refs import GVK, Identity
from reconciler.kinds import BUILT_IN_KINDS, pod_requests
from reconciler.kube import NodeObject, Pod
from reconciler.observe.model import (
    PodRequests,
    Unscheduled,
    newest_replica_sets,
    nodes_with_room,
    quota,
    unscheduled,
    workload,
)
from reconciler.observe.observe_cluster import pending_pods

NOW = "2026-11-21T12:00:00Z"
EARLIER = "2026-11-21T11:00:00Z"
LATER = "2026-11-21T11:30:00Z"


def pod(name: str = "p", **more: Any) -> Pod:
    body = {
        "metadata": {"name": name, "namespace": "demo", "uid": f"uid-{name}", **more.get("metadata", {})},
        "spec": {"containers": [container()], **more.get("spec", {})},
        "status": {"phase": "Pending", **more.get("status", {})},
    }
    return msgspec.convert(body, Pod)


def container(name: str = "c", **requests: str) -> dict[str, Any]:
    return {"name": name, "resources": {"requests": requests or {"cpu": "100m"}}}


def node(name: str, **more: Any) -> NodeObject:
    return msgspec.convert({"metadata": {"name": name, **more.pop("metadata", {})}, **more}, NodeObject)


def waiting_pod(name: str, owner: str, kind: str, revision: str = "", since: str = EARLIER, **more: Any) -> Pod:
    metadata = {
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "Other", "name": "o", "uid": "uid-other"},
            {"apiVersion": "v1", "kind": kind, "name": owner, "uid": f"uid-{owner}", "controller": True},
        ],
        "labels": {"controller-revision-hash": revision} if revision else {},
    }
    reason = more.pop("reason", "Unschedulable")
    condition = {"type": "PodScheduled", "status": "False", "reason": reason, "lastTransitionTime": since}
    return pod(name, metadata=metadata, status={"conditions": [condition]}, **more)


def live(kind: str, name: str, group: str = "apps", generation: int = 1, **body: Any) -> LiveObject:
    metadata = {"name": name, "namespace": "demo", "uid": f"uid-{name}", "generation": generation}
    return LiveObject(
        gvk=GVK(group, "v1", kind),
        identity=Identity(group, kind, "demo", name),
        uid=f"uid-{name}",
        resource_version="1",
        body={"kind": kind, "metadata": {**metadata, **body.pop("metadata", {})}, **body},
    )


def replica_set(name: str, owner: str, revision: str) -> LiveObject:
    metadata = {
        "ownerReferences": [{"kind": "Deployment", "uid": f"uid-{owner}", "controller": True}],
        "annotations": {"deployment.kubernetes.io/revision": revision},
    }
    return live("ReplicaSet", name, metadata=metadata)


def workload_of(found: LiveObject, pods: Unscheduled | None = None) -> Workload:
    interpreter = BUILT_IN_KINDS.of(found.identity.group, found.identity.kind)
    return workload(found, interpreter, pods or Unscheduled(), now=NOW)


amounts = st.dictionaries(
    st.sampled_from(["cpu", "memory", "example.com/gpu"]), st.sampled_from(["1", "250m", "64Mi", "2"]), max_size=3
)
containers = st.lists(
    st.builds(
        lambda requests, always: {
            "name": "c",
            "resources": {"requests": requests},
            **({"restartPolicy": "Always"} if always else {}),
        },
        amounts,
        st.booleans(),
    ),
    max_size=4,
)


@given(containers, containers, amounts, amounts)
def test_requests_of_a_running_pod_are_those_of_its_template(
    init: list[Any], main: list[Any], overhead: dict[str, str], pod_level: dict[str, str]
) -> None:
    spec = {"containers": main, "initContainers": init, "overhead": overhead, "resources": {"requests": pod_level}}
    assert PodRequests().of(pod(spec=spec)) == {**pod_requests(spec), "pods": 1}


def test_shapes_that_differ_in_anything_are_not_mixed_up() -> None:
    requests = PodRequests()
    specs: list[dict[str, Any]] = [
        {"containers": [container(cpu="1")]},
        {"containers": [container(cpu="1")], "overhead": {"cpu": "1"}},
        {"containers": [container(cpu="1")], "initContainers": [container(cpu="3")]},
        {"containers": [container(cpu="1")], "resources": {"requests": {"cpu": "4"}}},
    ]
    assert [requests.of(pod(spec=spec))["cpu"] for spec in specs * 2] == [1000, 2000, 3000, 4000] * 2


@pytest.mark.parametrize(
    ("allocated", "actual", "cpu"),
    [
        ({"cpu": "3"}, None, 3000),
        ({"cpu": "1"}, {"cpu": "4"}, 4000),
        ({"cpu": "1"}, {"cpu": "1"}, 2000),
        ({}, None, 2000),
    ],
)
def test_while_a_container_is_resized_the_larger_amount_counts(
    allocated: dict[str, str], actual: dict[str, str] | None, cpu: int
) -> None:
    status = {"name": "c", "allocatedResources": allocated, "resources": {"requests": actual} if actual else None}
    found = pod(spec={"containers": [container(cpu="2", memory="1Gi")]}, status={"containerStatuses": [status]})
    assert PodRequests().of(found) == {"cpu": cpu, "memory": 2**30, "pods": 1}


def test_a_node_carries_what_is_bound_to_it_and_not_finished() -> None:
    pods = [
        pod("running", spec={"nodeName": "n1"}, status={"phase": "Running"}),
        pod("starting", spec={"nodeName": "n1"}),
        pod("leaving", spec={"nodeName": "n1"}, metadata={"deletionTimestamp": NOW}, status={"phase": "Running"}),
        pod("done", spec={"nodeName": "n1"}, status={"phase": "Succeeded"}),
        pod("failed", spec={"nodeName": "n1"}, status={"phase": "Failed"}),
        pod("elsewhere", spec={"nodeName": "gone"}, status={"phase": "Running"}),
        pod("waiting"),
    ]
    (found,) = nodes_with_room([node("n1")], pods, PodRequests())
    assert found.requested == {"cpu": 300, "pods": 3}


def test_a_node_says_whether_for_whom_and_how_much() -> None:
    raw = node(
        "n1",
        metadata={"labels": {"zone": "a"}},
        spec={"unschedulable": True, "taints": [{"key": "gpu", "effect": "NoSchedule"}]},
        status={
            "allocatable": {"cpu": "7910m", "memory": "16Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    )
    (found,) = nodes_with_room([raw], [], PodRequests())
    assert (found.ready, found.unschedulable, found.labels) == (True, True, {"zone": "a"})
    assert found.taints == (Taint(key="gpu", value="", effect="NoSchedule"),)
    assert found.allocatable == {"cpu": 7910, "memory": 16 * 2**30, "pods": 110}


@pytest.mark.parametrize("conditions", [None, [], [{"type": "Ready", "status": "Unknown"}]])
def test_a_node_that_does_not_say_that_it_is_ready_is_not(conditions: Any) -> None:
    (found,) = nodes_with_room([node("n", status={"conditions": conditions})], [], PodRequests())
    assert not found.ready


def test_nodes_come_in_the_order_of_their_names() -> None:
    found = nodes_with_room([node("b"), node("a")], [], PodRequests())
    assert [each.name for each in found] == ["a", "b"]


def test_pending_is_what_competes_for_a_node() -> None:
    pods = [
        pod("waiting"),
        pod("bound", spec={"nodeName": "n"}),
        pod("leaving", metadata={"deletionTimestamp": NOW}),
        pod("gated", spec={"schedulingGates": [{"name": "g"}]}),
        pod("failed", status={"phase": "Failed"}),
    ]
    found, asked = pending_pods(pods, (), PodRequests())
    assert asked == {"cpu": 100, "pods": 1}
    assert found == (PendingPods(namespace="demo", pods=1, names=("waiting",)),)


SSD = {"key": "disk", "operator": "In", "values": ["ssd"]}
AFFINITY = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [SSD]}]}}
TAINT = {"key": "gpu", "effect": "NoSchedule"}
NODES = [
    node("n1", status={"allocatable": {"cpu": "2", "pods": "10"}}, metadata={"labels": {"zone": "a"}}),
    node("n2", status={"allocatable": {"cpu": "4", "pods": "10"}}, spec={"taints": [TAINT], "unschedulable": True}),
]


@pytest.mark.parametrize(
    ("spec", "refusal"),
    [
        ({}, ""),
        ({"nodeSelector": {"zone": "a"}}, ""),
        ({"nodeSelector": {"zone": "b"}}, "node selector zone=b (1 node), taint gpu:NoSchedule (1 node)"),
        (
            {"nodeSelector": {"zone": "b"}, "tolerations": [{"key": "gpu", "operator": "Exists"}]},
            "node selector zone=b (2 nodes)",
        ),
        ({"affinity": {"nodeAffinity": AFFINITY}}, "required node affinity (1 node), taint gpu:NoSchedule (1 node)"),
        ({"containers": [container(cpu="3")]}, "too little cpu (1 node), taint gpu:NoSchedule (1 node)"),
        # The node is cordoned, which passes.
        ({"containers": [container(cpu="3")], "tolerations": [{"key": "gpu", "operator": "Exists"}]}, ""),
        (
            {"containers": [container(cpu="5", memory="1Gi")], "tolerations": [{"operator": "Exists"}]},
            "too little cpu and memory (2 nodes)",
        ),
    ],
)
def test_pods_that_no_node_ever_takes_take_no_room(spec: dict[str, Any], refusal: str) -> None:
    pods = [pod(name, spec=spec) for name in ("d", "b", "c", "a")]
    requests = PodRequests()
    for nodes in (NODES, [node(each.metadata.name, metadata={"labels": each.metadata.labels},
                               spec={"unschedulable": True, "taints": [TAINT] if each.spec.taints else []},
                               status=msgspec.to_builtins(each.status)) for each in NODES]):  # fmt: skip
        found, asked = pending_pods(pods, nodes_with_room(nodes, (), requests), requests)
        assert found == (PendingPods(namespace="demo", pods=4, names=("a", "b", "c"), refusal=refusal),)
        assert bool(asked) is not bool(refusal)
    # A cluster without nodes may get some of any kind, and nodes that may not be read may be of any.
    assert pending_pods(pods, (), requests)[1]["pods"] == 4


def test_a_quota_is_what_is_enforced() -> None:
    spec, status = {"hard": {"requests.cpu": "1"}}, {"hard": {"requests.cpu": "2"}, "used": {"requests.cpu": "500m"}}
    assert quota(live("ResourceQuota", "q", group="", spec=spec, status=status)).hard == {"requests.cpu": 2000}
    assert quota(live("ResourceQuota", "q", group="", spec=spec)).hard == {"requests.cpu": 1000}
    assert quota(live("ResourceQuota", "q", group="", spec=spec, status=status)).used == {"requests.cpu": 500}


class TestUnschedulable:
    def test_counts_pods_of_the_newest_revision_of_a_deployment_only(self) -> None:
        pods = [
            waiting_pod("a", "web-new", "ReplicaSet", since=LATER),
            waiting_pod("b", "web-new", "ReplicaSet", since=EARLIER),
            waiting_pod("c", "web-old", "ReplicaSet"),
        ]
        sets = [replica_set("web-old", "web", "9"), replica_set("web-new", "web", "10")]
        found = Unscheduled(by_owner=unscheduled(pods), newest_replica_set=newest_replica_sets(sets))
        web = workload_of(live("Deployment", "web", spec={"replicas": 3}), found)
        assert (web.unschedulable, web.unschedulable_since) == (2, EARLIER)

    def test_a_deployment_whose_template_the_controller_has_not_seen_yet_has_none(self) -> None:
        found = Unscheduled(
            by_owner=unscheduled([waiting_pod("a", "web-1", "ReplicaSet")]),
            newest_replica_set=newest_replica_sets([replica_set("web-1", "web", "1")]),
        )
        body = live("Deployment", "web", generation=2, status={"observedGeneration": 1})
        assert workload_of(body, found).unschedulable == 0

    def test_counts_pods_of_the_update_revision_of_a_statefulset_only(self) -> None:
        pods = [waiting_pod("a", "db", "StatefulSet", "r2"), waiting_pod("b", "db", "StatefulSet", "r1")]
        body = live("StatefulSet", "db", status={"updateRevision": "r2"})
        assert workload_of(body, Unscheduled(by_owner=unscheduled(pods))).unschedulable == 1

    def test_counts_pods_of_a_job_and_a_bare_pod(self) -> None:
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "lastTransitionTime": LATER}
        pods = [
            waiting_pod("a", "sum", "Job"),
            waiting_pod("b", "sum", "Job"),
            pod("bare", status={"conditions": [condition]}),
        ]
        found = Unscheduled(by_owner=unscheduled(pods))
        assert workload_of(live("Job", "sum", group="batch"), found).unschedulable == 2
        assert workload_of(live("Pod", "bare", group=""), found).unschedulable_since == LATER

    @pytest.mark.parametrize(
        "counted_out",
        [
            waiting_pod("a", "sum", "Job", reason="SchedulingGated"),
            waiting_pod("a", "sum", "Job", spec={"nodeName": "n"}),
            pod(
                "a",
                metadata={
                    "ownerReferences": [
                        {"apiVersion": "v1", "kind": "Job", "name": "sum", "uid": "uid-sum", "controller": True}
                    ]
                },
            ),
        ],
        ids=["gated", "bound since", "not looked at yet"],
    )
    def test_a_pod_that_the_scheduler_has_not_refused_does_not_count(self, counted_out: Pod) -> None:
        found = Unscheduled(by_owner=unscheduled([counted_out]))
        assert workload_of(live("Job", "sum", group="batch"), found).unschedulable == 0

    def test_replica_sets_are_wanted_only_where_they_matter(self) -> None:
        found = Unscheduled(by_owner=unscheduled([waiting_pod("a", "x", "ReplicaSet"), waiting_pod("b", "y", "Job")]))
        assert found.replica_set_namespaces == ("demo",)
        assert Unscheduled(by_owner=unscheduled([waiting_pod("b", "y", "Job")])).replica_set_namespaces == ()

    @given(st.permutations(["9", "10", "2"]))
    def test_revisions_are_numbers_whatever_their_order(self, revisions: list[str]) -> None:
        sets = [replica_set(f"r{revision}", "web", revision) for revision in revisions]
        assert newest_replica_sets(sets) == {"uid-web": "uid-r10"}


class TestReady:
    @pytest.mark.parametrize(
        ("found", "ready"),
        [
            (live("Deployment", "d", status={"readyReplicas": 2}), 2),
            (live("Deployment", "d"), 0),
            (live("DaemonSet", "d", status={"numberReady": 3}), 3),
            (live("Job", "j", group="batch", status={"ready": 1, "succeeded": 2}), 3),
            (live("Pod", "p", group="", status={"conditions": [{"type": "Ready", "status": "True"}]}), 1),
            (live("Pod", "p", group="", status={"conditions": [{"type": "Ready", "status": "False"}]}), 0),
        ],
    )
    def test_ready_is_read_where_the_kind_keeps_it(self, found: LiveObject, ready: int) -> None:
        assert workload_of(found).ready == ready


class TestUnhealthySince:
    def broken(self, *conditions: tuple[str, str, str]) -> LiveObject:
        entries = [{"type": kind, "status": s, "lastTransitionTime": at} for kind, s, at in conditions]
        status = {"observedGeneration": 1, "updatedReplicas": 2, "conditions": entries}
        return live("Deployment", "web", spec={"replicas": 2}, status=status)

    def test_begins_when_the_last_condition_turned_bad(self) -> None:
        found = workload_of(self.broken(("Available", "False", EARLIER), ("Progressing", "False", LATER)))
        assert (found.health, found.unhealthy_since) == (Health.UNHEALTHY, LATER)

    def test_begins_now_without_evidence_or_when_a_members_clock_is_ahead(self) -> None:
        assert workload_of(self.broken()).unhealthy_since == NOW
        assert workload_of(self.broken(("Progressing", "False", "2027-01-01T00:00:00Z"))).unhealthy_since == NOW

    def test_is_forgotten_once_it_is_healthy(self) -> None:
        good = live("Deployment", "web", spec={"replicas": 0}, status={"observedGeneration": 1})
        healed = workload_of(good)
        assert (healed.health, healed.unhealthy_since) == (Health.HEALTHY, "")
