"""The Helm chart gives what the kustomizations give, and its values are checked."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.rendered import ROOT, kustomized, one, own, pod_template
from tests.hydration import folder_of_helm
from tests.yaml_text import load_documents

STORE = "https://git.example.com/platform/fleet.git"


@pytest.fixture(scope="module")
def helm() -> str:
    folder = folder_of_helm()
    if folder is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("there is no helm in RENDER_TOOLS or on the PATH")
    return str(folder / "helm")


@pytest.fixture(scope="module")
def chart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("chart") / "fleet-reconciler"
    subprocess.run([sys.executable, "scripts/make_chart.py", str(folder)], cwd=ROOT, check=True)
    return folder


def templated(helm: str, chart: Path, *values: str, namespace: str = "fleet-reconciler") -> list[dict[str, Any]]:
    """The objects that `helm template` prints."""
    given = (part for value in values for part in ("--set", value))
    command = [helm, "template", "fleet-reconciler", str(chart), "--namespace", namespace, *given]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return load_documents(done.stdout)


def comparable(objects: Iterable[dict[str, Any]]) -> Mapping[str, Any]:
    """Objects by name. How a pod is started again when its options change is left out: by a name, or by a checksum."""
    (options,) = [found["metadata"]["name"] for found in objects if found["kind"] == "ConfigMap"]

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: plain(item) for key, item in value.items() if key != "annotations"}
        if isinstance(value, list):
            return [plain(item) for item in value]
        return "fleet-reconciler" if value == options else value

    return {f"{found['kind']}/{plain(found['metadata']['name'])}": plain(found) for found in objects}


@pytest.mark.apiserver
@pytest.mark.parametrize(
    ("overlay", "components", "values"),
    [
        ("single", (), ()),
        ("standby", (), ("standby=true",)),
        ("single", ("in-cluster",), ("inCluster=true",)),
        ("standby", ("in-cluster", "monitoring"), ("standby=true", "inCluster=true", "monitoring.enabled=true")),
    ],
)
def test_the_chart_gives_what_the_kustomization_gives(
    overlay: str, components: tuple[str, ...], values: tuple[str, ...], kubernetes_binaries: Path, helm: str,
    chart: Path, tmp_path: Path,
) -> None:  # fmt: skip
    wanted = kustomized(kubernetes_binaries, own(tmp_path, *components, overlay=overlay, RECONCILER_STORE=STORE))
    options = (f"options.RECONCILER_STORE={STORE}", "namespace.create=true")
    found = templated(helm, chart, *options, *values)
    for kind in ("StatefulSet", "CronJob"):
        (container,) = pod_template(one(found, kind))["spec"]["containers"]
        container["image"], _, tag = container["image"].partition(":")
        assert tag, "the version is the tag"
    assert comparable(found) == comparable(wanted)


def test_lint_has_nothing_to_say(helm: str, chart: Path) -> None:
    done = subprocess.run([helm, "lint", "--strict", str(chart)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("imag.tag=1", "imag"),
        ("image.digest=sha256:1", "digest"),
        ("standby=2", "standby"),
        ("options.reconciler-store=x", "reconciler-store"),
    ],
)
def test_a_value_that_is_none_of_the_chart_is_refused(value: str, said: str, helm: str, chart: Path) -> None:
    command = [helm, "template", "fleet-reconciler", str(chart), "--set", value]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert said in done.stderr


def test_values_reach_the_pod(helm: str, chart: Path) -> None:
    digest = f"sha256:{'a' * 64}"
    values = [
        "image.repository=registry.example.com/fleet",
        "options.RECONCILER_POLL=30",
        "storage.size=9Gi",
        "storage.storageClassName=fast",
        "resources.limits.memory=4Gi",
        "nodeSelector.disk=ssd",
        "imagePullSecrets[0].name=pull",
        "tolerations[0].key=infra",
        "secrets.credentials=keys",
        "podAnnotations.team=sre",
    ]
    values += [f"image.digest={digest}", "options.LISTEN_NAMES=a b"]
    found = templated(helm, chart, *values, namespace="elsewhere")
    workload, options = one(found, "StatefulSet"), one(found, "ConfigMap")
    (claim,) = workload["spec"]["volumeClaimTemplates"]
    template = workload["spec"]["template"]
    pod, container = template["spec"], template["spec"]["containers"][0]
    assert {made["metadata"]["namespace"] for made in found} == {"elsewhere"}
    defaults = {"RECONCILER_LISTEN": "0.0.0.0:9180", "RECONCILER_LOG_FORMAT": "json"}
    assert options["data"] == {**defaults, "LISTEN_NAMES": "a b", "RECONCILER_POLL": "30"}
    assert container["image"] == f"registry.example.com/fleet@{digest}"
    assert container["resources"]["limits"]["memory"] == "4Gi"
    assert (claim["spec"]["storageClassName"], claim["spec"]["resources"]["requests"]) == ("fast", {"storage": "9Gi"})
    assert (pod["nodeSelector"], pod["imagePullSecrets"]) == ({"disk": "ssd"}, [{"name": "pull"}])
    assert pod["tolerations"] == [{"key": "infra"}]
    assert pod["volumes"][0]["projected"]["sources"][0]["secret"]["name"] == "keys"
    assert template["metadata"]["annotations"]["team"] == "sre"
    assert "checksum/options" in template["metadata"]["annotations"]
