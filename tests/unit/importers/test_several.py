"""An object of several clusters becomes one template, and the store that is written gives it back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.api.clusters import LiveObject, Observations
from reconciler.api.policies import ConflictResolution
from reconciler.api.problem import Severity
from reconciler.api.refs import GVK, Identity
from reconciler.importers import Imported, imported, policies_of
from reconciler.importers.several import template_of
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.report import rendering
from reconciler.scheduler import schedule_fleet
from tests.fleets import Documents, fleet_of, member

NOW = "2026-11-21T10:00:00Z"


def live(body: dict[str, Any]) -> LiveObject:
    gvk = GVK.parse(body["apiVersion"], body["kind"])
    metadata = body["metadata"]
    identity = Identity(gvk.group, gvk.kind, metadata.get("namespace", ""), metadata["name"])
    return LiveObject(gvk=gvk, identity=identity, uid="u", resource_version="1", body=body)


def deployment(replicas: int, image: str = "nginx:1.27", **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "demo", "uid": "u", "labels": {"app": "web", **labels}},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}},
                 "template": {"metadata": {"labels": {"app": "web"}},
                              "spec": {"containers": [{"name": "nginx", "image": image}]}}},
        "status": {"replicas": replicas},
    }  # fmt: skip


def config_map(name: str = "c", **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "demo"}, "data": data}


def one(copies: Mapping[str, dict[str, Any]]) -> Imported:
    return imported({name: live(body) for name, body in copies.items()}, BUILT_IN_KINDS)


def rendered(objects: list[Imported]) -> dict[tuple[str, str], Any]:
    """By cluster and name what the written store makes of it, without our marks."""
    files: dict[str, Documents] = {
        "objects.yaml": [found.template for found in objects],
        "policies.yaml": list(policies_of(objects)),
        "members.yaml": [member(name) for name in ("m1", "m2", "m3")],
    }
    fleet = fleet_of(files)
    assert not [found for found in fleet.problems if found.severity is not Severity.HINT]
    assert {policy.conflict_resolution for policy in fleet.propagation} == {ConflictResolution.OVERWRITE}
    result = rendering(schedule_fleet(fleet, Observations(), NOW, interpreters=BUILT_IN_KINDS), with_bodies=True)
    return {
        (manifest.cluster, manifest.identity.name): template_of(live(dict(manifest.body)), BUILT_IN_KINDS)
        for manifest in result.manifests
        if manifest.identity.kind != "Namespace"
    }


def clean(copies: Mapping[str, dict[str, Any]]) -> dict[tuple[str, str], Any]:
    return {(name, body["metadata"]["name"]): template_of(live(body), BUILT_IN_KINDS) for name, body in copies.items()}


def test_other_replicas_become_weights_and_nothing_else() -> None:
    copies = {"m1": deployment(2), "m2": deployment(5)}
    found = one(copies)
    assert found.template["spec"]["replicas"] == 7
    assert (dict(found.weights), dict(found.patches)) == ({"m1": 2, "m2": 5}, {})
    assert rendered([found]) == clean(copies)


def test_equal_replicas_stay_what_each_cluster_has() -> None:
    copies = {"m1": deployment(2), "m2": deployment(2), "m3": deployment(2)}
    found = one(copies)
    assert found.template["spec"]["replicas"] == 2
    assert (dict(found.weights), dict(found.patches)) == ({}, {})
    assert rendered([found]) == clean(copies)


def test_what_a_minority_has_otherwise_becomes_an_override() -> None:
    copies = {
        "m1": deployment(1, "registry.example.com/nginx:1.27", zone="a"),
        "m2": deployment(3),
        "m3": deployment(3),
    }
    found = one(copies)
    assert [operation["path"] for operation in found.patches["m1"]] == [
        "/metadata/labels/zone",
        "/spec/template/spec/containers/0/image",
    ]
    assert list(found.patches) == ["m1"]
    assert rendered([found]) == clean(copies)


def test_a_copy_that_is_scaled_to_nothing_is_kept_so_by_an_override() -> None:
    copies = {"m1": deployment(0), "m2": deployment(3)}
    found = one(copies)
    assert not found.weights
    assert {name: body["spec"]["replicas"] for (name, _), body in rendered([found]).items()} == {"m1": 0, "m2": 3}


def test_objects_of_the_same_clusters_share_a_policy() -> None:
    objects = [one({"m1": config_map(name), "m2": config_map(name)}) for name in ("a", "b")]
    objects.append(one({"m1": config_map("alone")}))
    policies = list(policies_of(objects))
    assert [(policy["metadata"]["name"], len(policy["spec"]["resourceSelectors"])) for policy in policies] == [
        ("imported-m1", 1),
        ("imported-m1-m2", 2),
    ]


def test_what_has_no_namespace_gets_cluster_policies() -> None:
    def role(*verbs: str) -> dict[str, Any]:
        rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": list(verbs)}]
        return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
                "metadata": {"name": "viewer"}, "rules": rules}  # fmt: skip

    copies = {"m1": role("get"), "m2": role("get", "list")}
    found = one(copies)
    assert [policy["kind"] for policy in policies_of([found])] == [
        "ClusterOverridePolicy",
        "ClusterPropagationPolicy",
    ]
    assert rendered([found]) == clean(copies)


def test_clusters_of_different_versions_get_one_version() -> None:
    older = {**deployment(1), "apiVersion": "apps/v1beta2"}
    found = one({"m1": deployment(1), "m2": older})
    assert found.template["apiVersion"] == "apps/v1"
    assert not found.patches


@pytest.mark.parametrize("name", ["a" * 200, "with_underscore", "Größe"])
def test_a_policy_has_a_legal_name_whatever_it_is_about(name: str) -> None:
    (policy,) = policies_of([one({name: config_map()})])
    assert policy["metadata"]["name"].startswith("imported-")
    assert len(policy["metadata"]["name"]) <= 63
    assert policy["metadata"]["name"].isascii()


TEXTS = st.sampled_from(["", "a", "a~b/c", "1", "true"])
DATA = st.dictionaries(st.sampled_from(["a", "b.c", "d_e"]), TEXTS, max_size=3)
LABELS = st.dictionaries(st.sampled_from(["a", "true"]), st.sampled_from(["a", "1"]), max_size=2)
DEPLOYMENTS = st.builds(
    lambda replicas, image, labels: deployment(replicas, image, **labels),
    st.integers(1, 9),
    st.sampled_from(["nginx:1.27", "nginx:1.28"]),
    LABELS,
)
CLUSTERS = st.sampled_from(["m1", "m2", "m3"])


@given(copies=st.dictionaries(CLUSTERS, DEPLOYMENTS, min_size=1), data=st.dictionaries(CLUSTERS, DATA, min_size=1))
def test_the_store_that_is_written_gives_back_what_runs(
    copies: dict[str, dict[str, Any]], data: dict[str, dict[str, str]]
) -> None:
    maps = {name: {**config_map(), "data": held} for name, held in data.items()}
    assert rendered([one(copies), one(maps)]) == {**clean(copies), **clean(maps)}
