"""From what Argo CD and Flux were told to a store on real clusters: each holds what the tools say, field by field."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.api.plan import Action
from tests.conftest import ThreeClusters
from tests.e2e.fleet_on_clusters import FleetOnClusters, of_action
from tests.hydration import STORE, lacks, path_with_helm
from tests.program import run_text
from tests.yaml_text import load_documents, load_yaml

pytestmark = pytest.mark.apiserver

REPOSITORY = "https://git.example.com/acme/platform.git"
KINDS = ("deployment", "service", "configmap", "poddisruptionbudget", "ingress")
TRACKED = {"argocd.argoproj.io/tracking-id": "web:/ConfigMap:demo/web"}


class Imported:
    """A checkout, a store beside it, and the tools to ask what is right."""

    def __init__(self, folder: Path, clusters: ThreeClusters, path: str) -> None:
        self.fleet, self.path, self.folder = FleetOnClusters(folder, clusters), path, folder
        self.checkout = folder / "checkout"
        shutil.copytree(STORE / "charts/web", self.checkout / "charts/web")
        shutil.copytree(STORE / "values", self.checkout / "env")
        shutil.copytree(STORE / "apps/web", self.checkout / "shop")

    def run(self, *args: str, code: int = 0) -> str:
        """A command of ours, and what it said."""
        done = run_text(*args, environment={**os.environ, "PATH": self.path}, code=code)
        return done.stdout + done.stderr

    def take(self, option: str, *more: str, documents: list[dict[str, Any]]) -> str:
        """Import documents into the store, and render it."""
        told = self.folder / "told.yaml"
        told.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": documents}))
        source = f"{REPOSITORY}={self.checkout}"
        store = str(self.fleet.store)
        said = self.run("import", option, str(told), "--source", source, "--folder", store, *more)
        self.run("hydrate", store)
        self.run("validate", store)
        return said

    def asked(self, *command: str, stdin: str = "") -> list[dict[str, Any]]:
        """Return what a tool says, hooks left out."""
        environ = {"PATH": self.path, "HOME": str(self.folder)}
        program = shutil.which(command[0], path=self.path)
        assert program is not None
        done = subprocess.run(
            [program, *command[1:]], cwd=self.checkout, env=environ, input=stdin, capture_output=True, text=True,
            check=True,
        )  # fmt: skip
        found = [body for body in load_documents(done.stdout) if body]
        return [body for body in found if "helm.sh/hook" not in body["metadata"].get("annotations", {})]

    def charted(self, *options: str) -> list[dict[str, Any]]:
        fixed = ["--namespace", self.fleet.namespace, "--kube-version", "1.36"]
        return self.asked("helm", "template", "web", "charts/web", *fixed, *options)

    def check(self, cluster: str, wanted: list[dict[str, Any]]) -> None:
        """The cluster holds these objects as they are, and no others of their kinds."""
        for body in wanted:
            live = self.fleet.live(cluster, body["kind"], body["metadata"]["name"])
            assert live is not None, f"{cluster} lacks {body['kind']} {body['metadata']['name']}"
            expected = {**body, "metadata": {**body["metadata"], "namespace": self.fleet.namespace}}
            assert lacks(expected, live) == [], f"{body['kind']} {body['metadata']['name']} @ {cluster}"
        member = self.fleet.clusters[cluster]
        held = json.loads(member.kubectl("get", ",".join(KINDS), "-n", self.fleet.namespace, "-o", "json"))["items"]
        names = {(one["kind"], one["metadata"]["name"]) for one in held} - {("ConfigMap", "kube-root-ca.crt")}
        assert names == {(body["kind"], body["metadata"]["name"]) for body in wanted}


def cluster_secret(name: str, stage: str) -> dict[str, Any]:
    """A cluster as Argo CD knows it."""
    labels = {"argocd.argoproj.io/secret-type": "cluster", "stage": stage}
    config = json.dumps({"bearerToken": "canary-of-a-token"})
    return {
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": f"cluster-{name}", "labels": labels},
        "stringData": {"name": name, "server": f"https://{name}.example.com", "config": config},
    }  # fmt: skip


def application_set(namespace: str) -> dict[str, Any]:
    """A chart over clusters, with values of each one's stage."""
    helm = {
        "releaseName": "web",
        "valueFiles": ["../../env/web.yaml", "../../env/web-{{ .metadata.labels.stage }}.yaml"],
        "parameters": [{"name": "image.tag", "value": "1.28", "forceString": True}],
    }
    spec = {
        "source": {"repoURL": REPOSITORY, "path": "charts/web", "helm": helm},
        "destination": {"server": "{{ .server }}", "namespace": namespace},
        "ignoreDifferences": [{"group": "apps", "kind": "Deployment", "jsonPointers": ["/spec/replicas"]}],
    }
    selector = {"matchExpressions": [{"key": "stage", "operator": "In", "values": ["prod", "edge"]}]}
    return {
        "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "metadata": {"name": "web"},
        "spec": {"goTemplate": True, "generators": [{"clusters": {"selector": selector}}],
                 "template": {"metadata": {"name": "web-{{ .name }}"}, "spec": spec}},
    }  # fmt: skip


def test_an_application_set_becomes_what_helm_says_in_each_cluster(
    tmp_path: Path, three_clusters: ThreeClusters, kubernetes_binaries: Path
) -> None:
    imported = Imported(tmp_path, three_clusters, path_with_helm(kubernetes_binaries))
    fleet = imported.fleet
    # What Argo CD holds is there already, with its mark: it is taken over and not made again.
    member = fleet.clusters["m1"]
    member.kubectl("create", "namespace", fleet.namespace)
    held = next(body for body in imported.charted() if body["kind"] == "ConfigMap")
    held = {**held, "metadata": {**held["metadata"], "namespace": fleet.namespace, "annotations": TRACKED}}
    member.kubectl("apply", "-f", "-", stdin=json.dumps(held))
    uid = fleet.live("m1", "configmap", "web")["metadata"]["uid"]  # type: ignore[index]

    documents = [
        cluster_secret("m1", "prod"), cluster_secret("m2", "edge"), cluster_secret("m3", "none"),
        application_set(fleet.namespace),
    ]  # fmt: skip
    said = imported.take("--from-argocd", documents=documents)
    assert "fleet.yaml: it exists" in said
    for file in fleet.store.rglob("*"):
        assert not file.is_file() or b"canary-of-a-token" not in file.read_bytes(), file
    render = load_yaml((fleet.store / "renders/web.yaml").read_text())
    assert [variant["clusters"] for variant in render["spec"]["variants"]] == [
        {"clusterNames": ["m1"]}, {"clusterNames": ["m2"]},
    ]  # fmt: skip

    adopted = [(change.cluster, change.identity.kind) for change in of_action(fleet.plan(), Action.ADOPT)]
    assert ("m1", "ConfigMap") in adopted
    fleet.apply()
    for cluster, stage in (("m1", "prod"), ("m2", "edge")):
        values = [f"--values=env/{name}.yaml" for name in ("web", f"web-{stage}")]
        imported.check(cluster, imported.charted(*values, "--set-string", "image.tag=1.28"))
    assert fleet.live("m3", "deployment", "web") is None
    assert fleet.live("m1", "configmap", "web")["metadata"]["uid"] == uid  # type: ignore[index]
    assert fleet.plan().changes == ()


def flux_documents(namespace: str) -> list[dict[str, Any]]:
    """A release of the chart and a kustomization, of one repository."""
    source = {"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
              "metadata": {"name": "platform", "namespace": "flux-system"},
              "spec": {"url": REPOSITORY, "ref": {"branch": "main"}}}  # fmt: skip
    reference = {"kind": "GitRepository", "name": "platform", "namespace": "flux-system"}
    values = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "of-prod", "namespace": namespace},
              "data": {"values.yaml": (STORE / "values/web-prod.yaml").read_text()}}  # fmt: skip
    release = {
        "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
        "metadata": {"name": "web", "namespace": namespace},
        "spec": {"interval": "1h", "chart": {"spec": {"chart": "./charts/web", "sourceRef": reference}},
                 "valuesFrom": [{"kind": "ConfigMap", "name": "of-prod"}], "values": {"image": {"tag": "1.28"}}},
    }  # fmt: skip
    kustomization = {
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
        "metadata": {"name": "shop", "namespace": "flux-system"},
        "spec": {"interval": "1h", "prune": True, "path": "./shop/overlays/prod", "sourceRef": reference,
                 "targetNamespace": namespace, "images": [{"name": "registry.example.com/shop", "newTag": "1.28"}],
                 "postBuild": {"substitute": {"greeting": "Welcome to all"}}},
    }  # fmt: skip
    return [source, values, release, kustomization]


def test_flux_becomes_what_helm_and_kustomize_say(
    tmp_path: Path, three_clusters: ThreeClusters, kubernetes_binaries: Path
) -> None:
    imported = Imported(tmp_path, three_clusters, path_with_helm(kubernetes_binaries))
    fleet = imported.fleet
    motd = imported.checkout / "shop/base/motd.txt"
    motd.write_text("Welcome to all, visitors.\n")
    overlay = imported.checkout / "told"
    overlay.mkdir()
    body = {"resources": ["../shop/overlays/prod"], "namespace": fleet.namespace,
            "images": [{"name": "registry.example.com/shop", "newTag": "1.28"}]}  # fmt: skip
    (overlay / "kustomization.yaml").write_text(yaml.safe_dump(body))
    wanted = imported.asked("kubectl", "kustomize", "told")
    wanted += imported.charted("--values=env/web-prod.yaml", "--set-string", "image.tag=1.28")
    shutil.rmtree(overlay)
    motd.write_text("${greeting}, ${who:-visitors}.\n")
    fleet.clusters["m1"].create_namespace(fleet.namespace)
    fleet.clusters["m1"].apply(*(labelled(one, fleet.namespace) for one in wanted), manager="kustomize-controller")

    imported.take("--from-flux", "--cluster", "m1", documents=flux_documents(fleet.namespace))
    changes = [change for change in fleet.plan().changes if change.identity.kind != "Namespace"]
    assert len(changes) == len(wanted)
    assert {change.action for change in changes} == {Action.ADOPT}
    # Its mark goes, ours and the word that it may be taken over come: nothing that runs changes.
    labels = ("kustomize.toolkit.fluxcd.io/name", "fleet.reconciler/fleet")
    marks = ("metadata.annotations", *(f"metadata.labels['{name}']" for name in labels))
    paths = [field.path for change in changes for field in change.fields]
    assert [path for path in paths if not path.startswith(marks)] == []
    fleet.apply()
    imported.check("m1", wanted)
    assert fleet.live("m2", "deployment", "web") is None
    assert fleet.plan().changes == ()


def labelled(body: dict[str, Any], namespace: str) -> dict[str, Any]:
    """Return an object as Flux applies it."""
    metadata = body["metadata"]
    labels = {**metadata.get("labels", {}), "kustomize.toolkit.fluxcd.io/name": "shop"}
    return {**body, "metadata": {**metadata, "namespace": namespace, "labels": labels}}
