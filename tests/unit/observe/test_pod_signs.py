"""Signs of trouble in pods that the status of their workload lacks. Source: Kubernetes, "Disruptions"."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.api.clusters import Health, LiveObject, Workload
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.kube import NodeObject, Pod
from reconciler.observe.model import Unscheduled, unscheduled, workload
from reconciler.observe.pod_counts import PodSigns, pod_signs
from tests.unit.observe.test_model import EARLIER, NOW, live, node, pod, waiting_pod

READY = {"type": "Ready", "status": "True", "lastTransitionTime": EARLIER}
NODES = [
    node("n1", status={"conditions": [READY]}),
    node("dead", status={"conditions": [{**READY, "status": "Unknown"}]}),
]
DISRUPTED = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"}
BACK_OFF = {"conditions": [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded",
                            "lastTransitionTime": EARLIER}]}  # fmt: skip
JUST_NOW = "2026-11-21T11:59:50Z"


def of(owner: str, kind: str, on: str = "n1", phase: str = "Running", **more: Any) -> Pod:
    """A pod that a workload controls, on a node."""
    owners = [{"apiVersion": "apps/v1", "kind": kind, "name": owner, "uid": f"uid-{owner}", "controller": True}]
    metadata = {"ownerReferences": owners, **more.pop("metadata", {})}
    name = more.pop("name", "p")
    return pod(name, metadata=metadata, spec={"nodeName": on}, status={"phase": phase, **more})


def job(**body: Any) -> LiveObject:
    return live("Job", "sum", group="batch", **{"spec": {"parallelism": 3, "backoffLimit": 0}, **body})


def training(**body: Any) -> LiveObject:
    spec = {"pytorchReplicaSpecs": {"Master": {"replicas": 1}, "Worker": {"replicas": 2}}}
    return live("PyTorchJob", "bert", group="kubeflow.org", spec=spec, **body)


def judged(found: LiveObject, *pods: Pod, nodes: list[NodeObject] | None = None) -> Workload:
    signs = pod_signs([found], pods, NODES if nodes is None else nodes, NOW)
    interpreter = BUILT_IN_KINDS.of(*found.identity[:2])
    waiting = Unscheduled(by_owner=unscheduled(pods))
    return workload(found, interpreter, waiting, now=NOW, signs=signs.get(found.identity))


RUNNING = {"conditions": [{"type": "Running", "status": "True"}]}


class TestInterrupted:
    @pytest.mark.parametrize(
        "found",
        [
            of("sum", "Job", on="dead"),
            of("sum", "Job", on="dead", metadata={"deletionTimestamp": NOW}),
            waiting_pod("p", "sum", "Job"),
        ],
        ids=["its node does not answer", "nobody can end it", "it finds no node"],
    )
    def test_a_job_of_which_nothing_runs(self, found: Pod) -> None:
        judgement = judged(job(status={"active": 1, "ready": 0}), found)
        assert (judgement.health, judgement.unhealthy_since) == (Health.UNHEALTHY, EARLIER)

    def test_a_node_that_is_gone_has_been_so_since_now(self) -> None:
        judgement = judged(job(status={"active": 1, "ready": 1}), of("sum", "Job", on="gone"))
        assert (judgement.health, judgement.unhealthy_since) == (Health.UNHEALTHY, NOW)

    def test_a_job_of_which_something_runs_is_not(self) -> None:
        pods = [of("sum", "Job", on="dead"), waiting_pod("p", "sum", "Job"), of("sum", "Job")]
        assert judged(job(status={"active": 3, "ready": 1}), *pods).health is Health.PROGRESSING

    def test_a_pod_that_has_only_just_been_refused_may_find_a_node(self) -> None:
        refused = waiting_pod("p", "sum", "Job", since=JUST_NOW)
        assert judged(job(status={"active": 1, "ready": 0}), refused).health is Health.PROGRESSING

    def test_a_set_of_which_one_pod_lost_its_node(self) -> None:
        pods = [of("bert", "PyTorchJob", name=f"p{n}", on="dead" if n == 2 else "n1") for n in range(3)]
        assert judged(training(status=RUNNING), *pods).health is Health.UNHEALTHY
        assert judged(training(status=RUNNING), *pods[:2]).health is Health.HEALTHY, "nothing is stuck"

    def test_a_set_of_which_one_pod_finds_no_node(self) -> None:
        pods = [of("bert", "PyTorchJob", name="a"), of("bert", "PyTorchJob", name="b")]
        found = judged(training(status=RUNNING), *pods, waiting_pod("c", "bert", "PyTorchJob"))
        assert (found.health, found.unschedulable, found.unhealthy_since) == (Health.UNHEALTHY, 1, EARLIER)

    def test_executors_belong_to_what_controls_their_driver(self) -> None:
        spark = live("SparkApplication", "pi", group="sparkoperator.k8s.io",
                     status={"applicationState": {"state": "RUNNING"}})  # fmt: skip
        driver = of("pi", "SparkApplication", name="driver")
        executor = waiting_pod("executor", "driver", "Pod")
        found = judged(spark, driver, executor)
        assert (found.unschedulable, found.health) == (1, Health.HEALTHY), "it goes on without it"

    def test_a_custom_workload_of_which_nothing_runs(self) -> None:
        widget = live("Widget", "w", group="example.com")
        assert judged(widget, of("w", "Widget", on="dead")).health is Health.UNHEALTHY
        assert judged(widget).health is Health.HEALTHY

    def test_what_has_succeeded_is_not_interrupted_any_more(self) -> None:
        done = training(status={"conditions": [{"type": "Succeeded", "status": "True"}]})
        assert judged(done, of("bert", "PyTorchJob", on="dead")).health is Health.HEALTHY

    def test_where_nodes_cannot_be_read_no_pod_is_on_a_lost_one(self) -> None:
        found = job(status={"active": 1, "ready": 1})
        signs = pod_signs([found], [of("sum", "Job", on="dead")], None, NOW)
        assert signs[found.identity] == PodSigns(alive=1)

    def test_what_apps_report_is_believed(self) -> None:
        assert pod_signs([live("Deployment", "web")], [of("web", "Deployment", on="dead")], NODES, NOW) == {}


class TestEnd:
    def test_a_job_whose_container_failed_ended_by_itself(self) -> None:
        found = judged(job(status=BACK_OFF), of("sum", "Job", phase="Failed"))
        assert (found.health, found.ended_by_itself) == (Health.UNHEALTHY, True)

    @pytest.mark.parametrize(
        "pods",
        [
            (),
            (of("sum", "Job", phase="Failed", conditions=[DISRUPTED]),),
            (of("sum", "Job", phase="Failed", reason="Evicted"),),
        ],
        ids=["gone with its node", "disrupted", "evicted by its kubelet"],
    )
    def test_a_job_that_was_interrupted_once_too_often_did_not(self, pods: tuple[Pod, ...]) -> None:
        assert not judged(job(status=BACK_OFF), *pods).ended_by_itself

    def test_a_bare_pod(self) -> None:
        failed = live("Pod", "p", group="", status={"phase": "Failed"})
        assert judged(failed, pod("p", status={"phase": "Failed"})).ended_by_itself
        assert not judged(failed, pod("p", status={"phase": "Failed", "reason": "NodeLost"})).ended_by_itself

    def test_without_its_pods_nothing_says_that_it_was_interrupted(self) -> None:
        found = job(status=BACK_OFF)
        interpreter = BUILT_IN_KINDS.of("batch", "Job")
        assert workload(found, interpreter, Unscheduled(), now=NOW).ended_by_itself
