from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.sim import Cluster, NodeSpec, Settings
from reconciler.sim.state.store import Store
from tests.unit.sim.worlds import CORE, a_cluster, apply, get, pod_template, pods, run, send, workload


def story(seed: int) -> str:
    """Everything that a cluster holds after some events."""
    cluster = a_cluster(NodeSpec(name="n1"), NodeSpec(name="n2"), seed=seed)
    run(cluster, workload("Deployment", replicas=5))
    run(cluster, workload("StatefulSet", "db", replicas=3, template=pod_template("db")))
    cluster.run_for(4)
    cluster.set_node_ready("n2", is_ready=False)
    run(cluster, workload("Deployment", replicas=2, template=pod_template(image="nginx:2")))
    cluster.run_for(400)
    return json.dumps(list(cluster.state.store.everything()))


def test_the_same_seed_tells_the_same_story() -> None:
    assert story(7) == story(7)
    assert story(7) != story(8)


@given(st.lists(st.floats(0.01, 3), min_size=1, max_size=6))
def test_time_in_small_steps_ends_as_in_one(steps: list[float]) -> None:
    ends = []
    for parts in (steps, [sum(steps)]):
        cluster = a_cluster()
        run(cluster, workload("Deployment", replicas=3))
        begin = cluster.now_s
        for part in parts:
            cluster.advance(cluster.now_s + part)
        cluster.advance(begin + 20)
        ends.append([(pod["metadata"]["name"], pod["status"]["phase"]) for pod in pods(cluster)])
    assert ends[0] == ends[1]


def test_a_cluster_at_rest_writes_nothing() -> None:
    cluster = a_cluster()
    for kind, name in (("Deployment", "web"), ("StatefulSet", "db"), ("DaemonSet", "ds")):
        run(cluster, workload(kind, name, template=pod_template(name)))
    cluster.run_for(30)
    version = cluster.state.store.version
    cluster.run_for(3600)
    assert cluster.state.store.version == version


def test_time_never_runs_backwards() -> None:
    cluster = a_cluster()
    with pytest.raises(AssertionError, match="runs forward"):
        cluster.advance(cluster.now_s - 1)


def test_every_write_is_on_the_audit_trail_with_who_and_what_came_of_it() -> None:
    cluster = a_cluster()
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
    send(cluster, "POST", f"{CORE}/configmaps", body, user_agent="x/1 fleet")
    send(cluster, "POST", f"{CORE}/configmaps", body, user_agent="x/1 fleet")
    send(cluster, "DELETE", f"{CORE}/configmaps/c", {"dryRun": ["All"]})
    send(cluster, "GET", f"{CORE}/configmaps/c")
    assert [(e.verb, e.user_agent, e.name, e.is_dry_run, e.code) for e in cluster.audit] == [
        ("create", "x/1 fleet", "c", False, 201),
        ("create", "x/1 fleet", "c", False, 409),
        ("delete", "test/1", "c", True, 200),
    ]
    assert all(entry.time.endswith("Z") for entry in cluster.audit)


def test_another_cluster_has_another_uid_and_nothing_of_the_old_one() -> None:
    cluster = a_cluster()
    run(cluster, workload("Deployment"))
    uid = cluster.uid
    cluster.become_another(seed=99)
    assert cluster.uid != uid
    assert cluster.state.sorted("Deployment") == []


def test_what_is_lacking_says_so() -> None:
    cluster = a_cluster()
    run(cluster, workload("StatefulSet", replicas=1))
    answer = send(cluster, "GET", f"{CORE}/pods/web-0/log")
    assert (answer.status, answer.body["reason"]) == (501, "NotImplemented")
    assert send(cluster, "PATCH", "/apis/apps/v1/namespaces/default/statefulsets/web/scale", {},
                content_type="application/apply-patch+yaml").status == 501  # fmt: skip


def test_permissions_can_be_withheld() -> None:
    cluster = Cluster("m1", permits=lambda verb, group, plural, namespace: verb != "delete")
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
    apply(cluster, f"{CORE}/configmaps/c", body)
    answer = send(cluster, "DELETE", f"{CORE}/configmaps/c")
    assert (answer.status, answer.body["reason"]) == (403, "Forbidden")
    review = {"kind": "SelfSubjectAccessReview", "spec": {"resourceAttributes": {"verb": "delete", "resource": "pods"}}}
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    assert send(cluster, "POST", path, review).body["status"] == {"allowed": False}


def test_a_forgotten_version_is_gone() -> None:
    cluster = a_cluster()
    cluster.state.store.compact()
    run(cluster, workload("Deployment"))
    answer = send(cluster, "GET", f"{CORE}/pods", query={"watch": "1", "resourceVersion": "1"})
    assert answer.watch is not None
    [event] = answer.watch.poll()
    assert (event["type"], event["object"]["code"], answer.watch.ended) == ("ERROR", 410, True)


def test_an_old_continue_token_is_gone() -> None:
    cluster = a_cluster()
    run(cluster, workload("Deployment", replicas=3))
    first = send(cluster, "GET", f"{CORE}/pods", query={"limit": "1"}).body
    run(cluster, workload("Deployment", replicas=4))
    cluster.state.store.compact()
    answer = send(cluster, "GET", f"{CORE}/pods", query={"limit": "1", "continue": first["metadata"]["continue"]})
    assert (answer.status, answer.body["reason"]) == (410, "Expired")


def test_the_change_log_is_bounded() -> None:
    store = Store(history_max=10)
    for number in range(50):
        store.put(("", "configmaps"), {"kind": "ConfigMap", "metadata": {"name": f"c{number}"}})
    assert store.oldest == store.version - 10


def test_a_load_balancer_gets_an_address_when_the_settings_say_so() -> None:
    cluster = a_cluster(settings=Settings(load_balancer_s=5))
    spec = {"type": "LoadBalancer", "ports": [{"port": 80}]}
    path = f"{CORE}/services/lb"
    apply(cluster, path, {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "lb"}, "spec": spec})
    assert get(cluster, path)["status"] == {"loadBalancer": {}}
    cluster.run_for(6)
    assert get(cluster, path)["status"]["loadBalancer"]["ingress"][0]["ip"].startswith("192.0.2.")


def test_a_definition_takes_its_objects_along() -> None:
    cluster = a_cluster()
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "things", "kind": "Thing"}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.a.example"},
        "spec": {"group": "a.example", "scope": "Namespaced", "names": names, "versions": [version]},
    }
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.a.example"
    apply(cluster, path, definition)
    thing = "/apis/a.example/v1/namespaces/default/things/t"
    apply(cluster, thing, {"apiVersion": "a.example/v1", "kind": "Thing", "metadata": {"name": "t"}, "x": 1})
    send(cluster, "DELETE", path)
    assert send(cluster, "GET", thing).status == 404
    apply(cluster, path, definition)
    assert send(cluster, "GET", thing.removesuffix("/t")).body["items"] == []
