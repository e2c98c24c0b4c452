"""The manifests of `deploy/kubernetes`: each name leads somewhere, and nothing is asked without need.

Source: design#stateful-set.
"""

from __future__ import annotations

import re
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest

from reconciler.cli.main import cli
from reconciler.kube.connection.kubeconfig import SERVICE_ACCOUNT_FOLDER
from tests.deploy.rendered import DEPLOY, ROOT, environment, image, kustomized, one, own, pod_template
from tests.docs.test_pages import misuse
from tests.yaml_text import load_yaml

pytestmark = pytest.mark.apiserver

WORKLOADS = ("StatefulSet", "CronJob")


@pytest.fixture(scope="module")
def single(kubernetes_binaries: Path) -> list[dict[str, Any]]:
    return kustomized(kubernetes_binaries, DEPLOY / "overlays/single")


@pytest.fixture
def with_components(kubernetes_binaries: Path, tmp_path: Path) -> list[dict[str, Any]]:
    return kustomized(kubernetes_binaries, own(tmp_path, "in-cluster", "monitoring", RECONCILER_STORE="s"))


def test_with_a_standby_there_are_two_pods_apart_and_nothing_else_differs(
    single: list[dict[str, Any]], kubernetes_binaries: Path
) -> None:
    standby = kustomized(kubernetes_binaries, DEPLOY / "overlays/standby")
    workload = one(standby, "StatefulSet")
    spread = workload["spec"]["template"]["spec"].pop("topologySpreadConstraints")
    labels = workload["spec"]["selector"]["matchLabels"]
    assert [rule["labelSelector"]["matchLabels"] for rule in spread] == [labels, labels]
    assert workload["spec"]["replicas"] == 2
    workload["spec"]["replicas"] = 1
    assert standby == single


def test_every_folder_is_used_or_an_entry(kubernetes_binaries: Path) -> None:
    """A manifest that no test renders is one that nobody has tried."""
    folders = {path.parent.relative_to(DEPLOY).as_posix() for path in DEPLOY.rglob("kustomization.yaml")}
    assert folders == {"base", "components/in-cluster", "components/monitoring", "overlays/single", "overlays/standby"}
    for path in DEPLOY.rglob("*.yaml"):
        if path.name != "kustomization.yaml":
            assert path.name in (path.parent / "kustomization.yaml").read_text(), path


@pytest.mark.parametrize("kind", WORKLOADS)
def test_each_argument_and_variable_is_one_that_the_program_takes(kind: str, single: list[dict[str, Any]]) -> None:
    template = pod_template(one(single, kind))
    (container,) = template["spec"]["containers"]
    assert not misuse(container["args"])
    variables = environment(single, container, "x")
    run = cli.get_command(click.Context(cli), "run")
    assert run is not None
    known = {option.envvar for option in run.params} | {"CREDENTIALS_DIRECTORY", "NAMESPACE", "LISTEN_NAMES"}
    assert set(variables) <= known


def test_ports_of_probes_service_and_policy_are_the_one_that_is_listened_on(
    with_components: list[dict[str, Any]],
) -> None:
    (container,) = pod_template(one(with_components, "StatefulSet"))["spec"]["containers"]
    (port,) = container["ports"]
    variables = environment(with_components, container, "x")
    assert variables["RECONCILER_LISTEN"] == f"0.0.0.0:{port['containerPort']}"
    probes = [container[name]["httpGet"] for name in ("startupProbe", "livenessProbe", "readinessProbe")]
    assert [probe["path"] for probe in probes] == ["/livez", "/livez", "/readyz"]
    service = one(with_components, "Service")["spec"]
    monitor = one(with_components, "ServiceMonitor")["spec"]
    policies = [item for item in with_components if item["kind"] == "NetworkPolicy"]
    named = {probe["port"] for probe in probes} | {found["targetPort"] for found in service["ports"]}
    named |= {found["port"] for found in monitor["endpoints"]}
    named |= {found["port"] for policy in policies for rule in policy["spec"]["ingress"] for found in rule["ports"]}
    assert named == {port["name"]}


def test_every_selector_finds_the_pods_and_no_service_leads_to_the_job(with_components: list[dict[str, Any]]) -> None:
    labels = pod_template(one(with_components, "StatefulSet"))["metadata"]["labels"].items()
    of_job = pod_template(one(with_components, "CronJob"))["metadata"]["labels"].items()
    service = one(with_components, "Service")
    monitor = one(with_components, "ServiceMonitor")["spec"]["selector"]["matchLabels"]
    assert monitor.items() <= service["metadata"]["labels"].items()
    assert service["spec"]["selector"].items() <= labels
    assert not service["spec"]["selector"].items() <= of_job
    assert one(with_components, "PodDisruptionBudget")["spec"]["selector"]["matchLabels"].items() <= labels
    for policy in (item for item in with_components if item["kind"] == "NetworkPolicy"):
        assert policy["spec"]["podSelector"]["matchLabels"].items() <= labels
    assert (
        one(with_components, "NetworkPolicy", "fleet-reconciler")["spec"]["podSelector"]["matchLabels"].items()
        <= of_job
    )


@pytest.mark.parametrize("kind", WORKLOADS)
def test_all_that_the_image_writes_to_is_mounted_and_the_rest_is_read_only(
    kind: str, single: list[dict[str, Any]]
) -> None:
    spec = pod_template(one(single, kind))["spec"]
    (container,) = spec["containers"]
    variables, program = image()
    assert program == "reconciler"
    writable = {mount["mountPath"] for mount in container["volumeMounts"] if not mount.get("readOnly")}
    assert writable == {variables["STATE_DIRECTORY"], variables["HOME"], "/tmp"}
    assert container["securityContext"]["readOnlyRootFilesystem"]
    user, group = re.findall(r"^USER (\d+):(\d+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)[0]
    context = spec["securityContext"]
    assert (context["runAsUser"], context["runAsGroup"], context["fsGroup"]) == (int(user), int(group), int(group))
    mounted = {mount["name"] for mount in container["volumeMounts"]}
    claimed = {claim["metadata"]["name"] for claim in one(single, "StatefulSet")["spec"]["volumeClaimTemplates"]}
    volumes = {volume["name"] for volume in spec["volumes"]} | (claimed if kind == "StatefulSet" else set())
    assert mounted == volumes


def test_the_job_has_the_volume_of_the_first_pod_and_the_credentials_of_the_clusters(
    single: list[dict[str, Any]],
) -> None:
    workload = one(single, "StatefulSet")
    job = pod_template(one(single, "CronJob"))["spec"]
    (claim,) = [volume["persistentVolumeClaim"]["claimName"] for volume in job["volumes"] if volume["name"] == "state"]
    assert (
        claim == f"{workload['spec']['volumeClaimTemplates'][0]['metadata']['name']}-{workload['metadata']['name']}-0"
    )
    assert one(single, "CronJob")["spec"]["suspend"] is True


def test_without_need_the_account_has_no_token_and_no_role(single: list[dict[str, Any]]) -> None:
    assert not [item for item in single if "rbac" in item["apiVersion"] or item["kind"].startswith("Role")]
    assert one(single, "ServiceAccount")["automountServiceAccountToken"] is False
    for kind in WORKLOADS:
        spec = pod_template(one(single, kind))["spec"]
        assert spec["automountServiceAccountToken"] is False
        assert "serviceAccountToken" not in str(spec["volumes"])


@pytest.mark.parametrize("kind", WORKLOADS)
def test_the_component_mounts_the_account_where_it_is_looked_for(
    kind: str, with_components: list[dict[str, Any]]
) -> None:
    spec = pod_template(one(with_components, kind))["spec"]
    mounts = {mount["name"]: mount for mount in spec["containers"][0]["volumeMounts"]}
    assert mounts["account"]["mountPath"] == SERVICE_ACCOUNT_FOLDER
    assert mounts["account"]["readOnly"]
    (account,) = [volume["projected"] for volume in spec["volumes"] if volume["name"] == "account"]
    token, authority = account["sources"]
    assert token["serviceAccountToken"]["path"] == "token"
    assert authority["configMap"]["items"] == [{"key": "ca.crt", "path": "ca.crt"}]
    assert not account["defaultMode"] & stat.S_IRWXO


def test_it_may_take_what_the_unit_may_and_more_than_was_measured(single: list[dict[str, Any]]) -> None:
    (container,) = pod_template(one(single, "StatefulSet"))["spec"]["containers"]
    limit, request = (container["resources"][name]["memory"] for name in ("limits", "requests"))
    unit = (ROOT / "systemd/reconciler.service").read_text()
    assert f"MemoryMax={limit.removesuffix('i')}\n" in unit
    assert (
        f"TimeoutStopSec={pod_template(one(single, 'StatefulSet'))['spec']['terminationGracePeriodSeconds']}\n" in unit
    )
    (measured,) = re.findall(
        r"peak memory of a cold plan \|[^|]*\| (\d+) MiB", (ROOT / "docs/performance.md").read_text()
    )
    assert int(measured) <= int(request.removesuffix("Mi"))


def test_a_change_of_what_is_run_starts_the_pod_anew(kubernetes_binaries: Path, tmp_path: Path) -> None:
    """The name of the ConfigMap is in the template, for both workloads."""
    first, second = (
        kustomized(kubernetes_binaries, own(tmp_path / rev, RECONCILER_STORE="s", RECONCILER_REV=rev))
        for rev in ("main", "next")
    )
    for kind in WORKLOADS:
        assert pod_template(one(first, kind)) != pod_template(one(second, kind))


def test_it_lives_in_any_namespace(kubernetes_binaries: Path, tmp_path: Path) -> None:
    objects = kustomized(kubernetes_binaries, own(tmp_path, "in-cluster", "monitoring", namespace="other"))
    assert {item["metadata"].get("namespace", item["metadata"]["name"]) for item in objects} == {"other"}
    (container,) = pod_template(one(objects, "StatefulSet"))["spec"]["containers"]
    names = environment(objects, container, "other")["RECONCILER_LISTEN_NAME"].split()
    assert "fleet-reconciler.other.svc" in names


def test_the_rule_of_the_operator_is_made_of_the_alerts() -> None:
    done = subprocess.run(
        [sys.executable, "scripts/make_deploy.py", "--check"], cwd=ROOT, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stdout.decode()
    rule = load_yaml((DEPLOY / "components/monitoring/prometheusrule.yaml").read_text())
    assert rule["spec"] == load_yaml((ROOT / "monitoring/alerts.yaml").read_text())
