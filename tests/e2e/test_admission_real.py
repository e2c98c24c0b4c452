"""Admission on a real cluster: what it changes, denies and holds up is told as it is, and no value of a Secret is.

Source: design#altered-writes; design#secrets.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests.e2e.admission_webhook import NAME, AdmissionWebhook, admitting
from tests.e2e.test_kinds import cluster_policy
from tests.fakes.worlds import deployment, policy
from tests.real_clusters import RealCluster
from tests.unit.cli.command_line import Ran, run

pytestmark = pytest.mark.apiserver

WORD = "hunter2-canary"
CHANGED = "the cluster changed what was written (an admission webhook?): "


class Scene(NamedTuple):
    """A store for a namespace of its own, and a webhook there."""

    cluster: RealCluster
    webhook: AdmissionWebhook
    namespace: str
    folder: Path

    def put(self, *bodies: dict[str, Any]) -> None:
        """These objects are wanted, and nothing else."""
        rules = [policy(body["kind"], "m1", name=f"p-{body['kind'].lower()}") for body in bodies]
        for document in (*bodies, *rules):
            document["metadata"]["namespace"] = self.namespace
        (self.folder / "store" / "app.yaml").write_text(yaml.safe_dump_all([*bodies, *rules]))

    def put_widget(self, definition: dict[str, Any] | None, **spec: Any) -> None:
        """A Widget is wanted, and its definition where that is in the store."""
        bodies = [{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": spec}]
        rules = [policy("Widget", "m1", name="p-widget")]
        rules[0]["spec"]["resourceSelectors"][0]["apiVersion"] = "example.com/v1"
        for document in (*bodies, *rules):
            document["metadata"]["namespace"] = self.namespace
        if definition is not None:
            bodies.append(definition)
            name = definition["metadata"]["name"]
            rules.append(cluster_policy("definitions", ("apiextensions.k8s.io/v1", "CustomResourceDefinition", name)))
        (self.folder / "store" / "app.yaml").write_text(yaml.safe_dump_all([*bodies, *rules]))

    def run(self, *args: str) -> Ran:
        kubeconfig, journal = str(self.cluster.kubeconfig), str(self.folder / "journal.db")
        clusters = ("--kubeconfig", kubeconfig) if args[0] in ("apply", "diff") else ()
        return run(*args, *clusters, "--journal", journal)

    def apply(self) -> Ran:
        return self.run("apply", str(self.folder / "store"), "--yes")


@pytest.fixture
def scene(tmp_path: Path, real_cluster: RealCluster) -> Iterator[Scene]:
    namespace = real_cluster.new_namespace()
    store = tmp_path / "store"
    store.mkdir()
    (store / "fleet.yaml").write_text(yaml.safe_dump_all([
        {"apiVersion": "fleet.reconciler/v1alpha1", "kind": "Fleet", "metadata": {"name": f"f-{namespace}"}},
        {"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": "m1"}},
    ]))  # fmt: skip
    with admitting(real_cluster, namespace, tmp_path) as webhook:
        yield Scene(real_cluster, webhook, namespace, tmp_path)


def config_map(value: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "app"}, "data": {"value": value}}


def secret() -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "app"}, "stringData": {"password": WORD}}


def until_asked(scene: Scene, kind: str) -> None:
    """API servers learn of a webhook a moment after it is registered."""
    deadline = time.monotonic() + 180
    while not scene.webhook.asked:
        assert time.monotonic() < deadline, "the webhook was never asked"
        scene.cluster.kubectl("create", kind, f"probe{time.monotonic_ns()}", "-n", scene.namespace)
        time.sleep(0.1)  # the API server reads its webhooks when it likes


def until_exhausted(scene: Scene) -> None:
    """API servers learn of a quota a moment after it was made, and of its use a moment later."""
    deadline, refusal = time.monotonic() + 180, ""
    while "exceeded quota" not in refusal:
        assert time.monotonic() < deadline, f"no secret was refused for the quota: {refusal}"
        try:
            scene.cluster.kubectl("create", "secret", "generic", "probe", "--dry-run=server", "-n", scene.namespace)
        except AssertionError as error:
            refusal = str(error)
        time.sleep(0.1)  # the API server reads its quotas when it likes


def test_what_admission_makes_of_a_write_is_told_as_it_is(scene: Scene) -> None:
    until_asked(scene, "configmap")
    scene.webhook.reviews = {
        "ConfigMap": lambda body: [{"op": "replace", "path": "/data/value", "value": "theirs"}],
        "Deployment": lambda body: [
            {"op": "replace", "path": "/spec/replicas", "value": 1},
            {"op": "add", "path": "/spec/template/spec/containers/0", "value": {"name": "proxy", "image": "envoy:1"}},
        ],
    }
    scene.put(config_map("1"), deployment("app", 3))
    ran = scene.apply()
    assert ran.code == 1, ran
    assert f'{CHANGED}data.value is "theirs", not "1"' in ran.err
    assert f"{CHANGED}spec.replicas is 1, not 3\n" in ran.err, "a sidecar is nothing of ours"
    assert "0 changes made, 2 failed" in ran.err
    status = scene.run("status", "-o", "wide").out
    assert "Failed" in status, status
    assert "spec.replicas is 1, not 3" in status
    history = scene.run("history").out
    assert "failed" in history
    assert "updated" not in history
    scene.webhook.reviews = {
        "Deployment": lambda body: [{"op": "add", "path": "/metadata/annotations/seen", "value": ""}]
    }
    ran = scene.apply()
    assert (ran.code, "2 changes made, 0 failed" in ran.err) == (0, True), ran
    assert scene.apply().err.count("changed what was written") == 0


def test_a_refused_secret_says_who_and_never_what(scene: Scene) -> None:
    until_asked(scene, "configmap")
    scene.webhook.reviews = {"Secret": lambda body: f"no: {body['data']['password']} {WORD}"}
    scene.put(secret())
    denied = scene.apply()
    scene.webhook.reviews = {"Secret": lambda body: None}
    hung = scene.apply()
    scene.webhook.reviews = {}
    scene.cluster.apply({"apiVersion": "v1", "kind": "ResourceQuota",
                         "metadata": {"name": "few", "namespace": scene.namespace},
                         "spec": {"hard": {"count/secrets": "0"}}})  # fmt: skip
    until_exhausted(scene)
    exhausted = scene.apply()
    for ran, told in (
        (denied, f"admission webhook {NAME} denied it, HTTP 400"),
        (hung, f"admission webhook {NAME} could not be asked, HTTP 500 InternalError"),
        (exhausted, "ResourceQuota few is exhausted, HTTP 403 Forbidden"),
    ):
        assert ran.code == 1
        assert told in ran.err, ran
        said = ran.out + ran.err + scene.run("status").out + scene.run("history", "-o", "json").out
        assert WORD not in said
        assert "aHVudGVyMi1jYW5hcnk=" not in said


DEFINITION: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {"group": "example.com", "scope": "Namespaced", "names": {"kind": "Widget", "plural": "widgets"},
             "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
                 "type": "object", "properties": {"spec": {"type": "object", "properties": {
                     "mode": {"type": "string", "default": "calm"},
                     "size": {"type": "integer",
                              "x-kubernetes-validations": [{"rule": "self >= oldSelf || self > 0"}]},
                     "parts": {"type": "array", "items": {"type": "object", "properties": {
                         "name": {"type": "string"}, "weight": {"type": "integer", "default": 1}}}},
                 }}}}}}]},
}  # fmt: skip


@pytest.fixture(params=["in the store", "in the cluster"])
def definition(request: pytest.FixtureRequest, scene: Scene) -> Iterator[dict[str, Any] | None]:
    """Yield the store's definition of Widgets. `in the cluster`: None, as the cluster has it."""
    if request.param == "in the cluster":
        scene.cluster.apply(DEFINITION)
        scene.cluster.kubectl("wait", "--for=condition=Established", f"crd/{DEFINITION['metadata']['name']}")
    yield DEFINITION if request.param == "in the store" else None
    scene.cluster.kubectl("delete", "crd", DEFINITION["metadata"]["name"], "--ignore-not-found")


def test_a_field_that_the_schema_of_a_custom_resource_lacks_is_told_and_never_written(
    scene: Scene, definition: dict[str, Any] | None
) -> None:
    """No API server prunes it in silence: it is refused, or not even sent. What is only a default is nothing."""
    scene.put_widget(definition, size=1, parts=[{"name": "a"}])
    made = scene.apply()
    assert (made.code, "0 failed" in made.err) == (0, True), made
    assert scene.apply().out.startswith("no changes")

    def version() -> str:
        return scene.cluster.kubectl("get", "widgets.example.com", "w", "-n", scene.namespace, "-o",
                                     "jsonpath={.metadata.resourceVersion}")  # fmt: skip

    before = version()
    scene.put_widget(definition, size=1, ghost="x", parts=[{"name": "a"}])
    for _ in range(2):
        ran = scene.apply()
        assert ran.code == 1, ran
        assert "ghost" in ran.out
        assert "made" not in ran.err, ran
    status = scene.run("status").out
    assert "ghost" in status, status
    assert version() == before
    scene.cluster.kubectl("delete", "widgets.example.com", "w", "-n", scene.namespace)
    ran = scene.apply()
    assert (ran.code, "ghost" in ran.out + ran.err) == (1, True), ran
