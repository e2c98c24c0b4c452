"""Parts of a control plane that do nothing while the API server goes on.

Quantities, selectors, patches and ages: small functions of values.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.sim import Cluster, NodeSpec, Part, Request, Settings
from reconciler.sim.api.tables import duration
from reconciler.sim.objects import quantities
from reconciler.sim.objects.patches import merge_patch
from reconciler.sim.objects.selectors import labels_match, object_matches
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


def deployed(*asleep: Part) -> Cluster:
    """A cluster to which a Deployment of two came while parts were asleep, and a minute later."""
    cluster = Cluster("m1")
    cluster.add_node(NodeSpec(name="n1"))
    cluster.let_sleep(*asleep)
    container = {"name": "main", "image": "nginx:1"}
    labels = {"app": "web"}
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "default"},
            "spec": {"replicas": 2, "selector": {"matchLabels": labels},
                     "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}}}}  # fmt: skip
    cluster.request(Request(method="POST", path="/apis/apps/v1/namespaces/default/deployments", query={}, body=body,
                            content_type="application/json", accept="application/json", user_agent="test"))  # fmt: skip
    cluster.run_for(60)
    return cluster


def status(cluster: Cluster) -> dict[str, Any]:
    found: dict[str, Any] = cluster.get("Deployment", "default", "web").get("status") or {}
    return found


@pytest.mark.parametrize(
    ("asleep", "told", "pods"),
    [
        ((), {"availableReplicas": 2}, ["Running", "Running"]),
        ((Part.CONTROLLERS,), {}, []),
        ((Part.SCHEDULER,), {"replicas": 2, "unavailableReplicas": 2}, ["Pending", "Pending"]),
        ((Part.KUBELETS,), {"replicas": 2, "unavailableReplicas": 2}, ["Pending", "Pending"]),
        (tuple(Part), {}, []),
    ],
)
def test_what_sleeps_does_nothing_and_catches_up(
    asleep: tuple[Part, ...], told: dict[str, int], pods: list[str]
) -> None:
    cluster = deployed(*asleep)
    assert told.items() <= status(cluster).items()
    assert [pod["status"].get("phase", "Pending") for pod in cluster.state.sorted("Pod")] == pods
    assert bool(status(cluster)) is (Part.CONTROLLERS not in asleep)
    cluster.let_sleep()
    cluster.run_for(60)
    assert status(cluster)["availableReplicas"] == 2


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("1000m", "1"), ("0.5", "500m"), ("1024Mi", "1Gi"), ("1.5Gi", "1536Mi"), ("0", "0"), ("100m", "100m"),
        ("1e3", "1e3"), ("1000", "1k"), ("1500", "1500"), ("512Ki", "512Ki"), ("0.0001", "100u"), ("2000000", "2M"),
        (3, "3"),
    ],
)  # fmt: skip
def test_quantities_have_one_spelling(text: str | int, canonical: str) -> None:
    assert quantities.canonical(text) == canonical


@given(st.integers(0, 10**12), st.sampled_from(["", "m", "k", "M", "Ki", "Mi", "Gi"]))
def test_the_canonical_spelling_is_the_same_amount(number: int, suffix: str) -> None:
    text = f"{number}{suffix}"
    assert quantities.parse(quantities.canonical(text)) == quantities.parse(text)
    assert quantities.canonical(quantities.canonical(text)) == quantities.canonical(text)


@pytest.mark.parametrize("text", ["", "x", "1 Gi", "1KiB", "NaN", "--1"])
def test_nonsense_is_no_quantity(text: str) -> None:
    with pytest.raises(ValueError, match="not a quantity"):
        quantities.parse(text)


@pytest.mark.parametrize(
    ("selector", "labels", "matches"),
    [
        ("", {}, True), ("a", {"a": ""}, True), ("!a", {"a": ""}, False), ("a=b,c!=d", {"a": "b"}, True),
        ("a in (b,c)", {"a": "c"}, True), ("a notin (b)", {}, True), ("a==b", {"a": "c"}, False),
        ("n>3", {"n": "4"}, True),
    ],
)  # fmt: skip
def test_label_queries(selector: str, labels: dict[str, str], matches: bool) -> None:
    assert labels_match(selector)(labels) == matches


def test_an_empty_selector_object_selects_everything_and_none_nothing() -> None:
    assert object_matches({}, {"a": "b"})
    assert not object_matches(None, {"a": "b"})


TREES = st.recursive(st.integers(0, 3), lambda t: st.dictionaries(st.sampled_from("abc"), t, max_size=3), max_leaves=8)
OBJECTS = st.dictionaries(st.sampled_from("abc"), TREES, max_size=3)


@given(OBJECTS, OBJECTS)
def test_a_merge_patch_leaves_what_it_says(value: dict[str, Any], patch: dict[str, Any]) -> None:
    merged = merge_patch(value, patch)
    assert merge_patch(merged, patch) == merged
    assert merge_patch(value, {}) == value


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (119, "119s"), (120, "2m"), (190, "3m10s"), (900, "15m"), (10800, "3h"), (12000, "3h20m"),
     (90000, "25h"),
     (200000, "2d7h"), (86400 * 10, "10d"), (86400 * 800, "2y70d")],
)  # fmt: skip
def test_ages_read_as_kubectl_prints_them(seconds: int, text: str) -> None:
    assert duration(seconds) == text
