"""kubectl works against an embedded cluster as against a real one: the same commands, the same words."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.contract.sim_examples import config_map, deployment, path_of
from tests.contract.sim_sides import NODE, TOLERATION, Side
from tests.real_clusters import wait_until

pytest_plugins = ("tests.contract.sim_fixtures",)
pytestmark = pytest.mark.apiserver


class Kubectl:
    def __init__(self, binary: Path, side: Side, space: str) -> None:
        self._command = [str(binary), "--kubeconfig", str(side.kubeconfig), "--namespace", space]

    def __call__(self, *args: str, stdin: str = "", fails: bool = False) -> str:
        done = subprocess.run(
            [*self._command, *args], input=stdin, capture_output=True, text=True, timeout=120, check=False,
            env={**os.environ, "HOME": "/nonexistent", "KUBECACHEDIR": "/nonexistent"},
        )  # fmt: skip
        assert (done.returncode != 0) == fails, done.stderr
        return done.stderr if fails else done.stdout


@pytest.fixture
def kubectl(kubernetes_binaries: Path, side: Side, space: str) -> Kubectl:
    return Kubectl(kubernetes_binaries / "kubectl", side, space)


def web(image: str = "nginx:1.25") -> str:
    body = deployment(image=image, resources={"requests": {"cpu": "100m"}})
    body["spec"]["template"]["spec"]["tolerations"] = [TOLERATION]
    return json.dumps(body)


def test_applies_server_side_and_diffs(kubectl: Kubectl) -> None:
    body = config_map(a="1")
    assert kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(body)) == "configmap/cfg serverside-applied\n"
    assert kubectl("diff", "--server-side", "-f", "-", stdin=json.dumps(body)) == ""
    body["data"]["a"] = "2"
    refusal = kubectl("apply", "--server-side", "--field-manager=x", "-f", "-", stdin=json.dumps(body), fails=True)
    assert 'conflict with "kubectl": .data.a' in refusal
    forced = kubectl(
        "apply", "--server-side", "--force-conflicts", "--field-manager=x", "-f", "-", stdin=json.dumps(body)
    )
    assert forced == "configmap/cfg serverside-applied\n"


def test_applies_a_list(kubectl: Kubectl) -> None:
    body = {"apiVersion": "v1", "kind": "List", "items": [config_map("a"), config_map("b")]}
    applied = kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(body))
    assert applied == "configmap/a serverside-applied\nconfigmap/b serverside-applied\n"


def test_applies_client_side(kubectl: Kubectl) -> None:
    assert kubectl("apply", "-f", "-", stdin=json.dumps(config_map(a="1", b="2"))) == "configmap/cfg created\n"
    assert kubectl("apply", "-f", "-", stdin=json.dumps(config_map(a="1"))) == "configmap/cfg configured\n"
    assert json.loads(kubectl("get", "cm", "cfg", "-o", "json"))["data"] == {"a": "1"}


def test_rolls_out_scales_and_restarts(kubectl: Kubectl) -> None:
    kubectl("apply", "--server-side", "-f", "-", stdin=web())
    assert kubectl("rollout", "status", "deploy/web", "--timeout=90s").endswith("successfully rolled out\n")
    assert kubectl("scale", "deploy/web", "--replicas=3") == "deployment.apps/web scaled\n"
    kubectl("rollout", "status", "deploy/web", "--timeout=90s")
    assert re.search(r"^web +3/3 +3 +3 ", kubectl("get", "deploy"), re.MULTILINE)
    assert kubectl("set", "image", "deploy/web", "main=nginx:1.26") == "deployment.apps/web image updated\n"
    kubectl("rollout", "status", "deploy/web", "--timeout=90s")
    assert kubectl("rollout", "restart", "deploy/web") == "deployment.apps/web restarted\n"
    kubectl("rollout", "status", "deploy/web", "--timeout=90s")
    assert kubectl("rollout", "undo", "deploy/web") == "deployment.apps/web rolled back\n"
    kubectl("rollout", "status", "deploy/web", "--timeout=90s")
    images = kubectl("get", "pods", "-l", "app=web", "-o", "jsonpath={.items[*].spec.containers[0].image}")
    assert set(images.split()) == {"nginx:1.26"}
    kubectl("wait", "deploy/web", "--for=condition=Available", "--timeout=90s")


def test_prints_and_describes(kubectl: Kubectl) -> None:
    kubectl("apply", "--server-side", "-f", "-", stdin=web())
    kubectl("rollout", "status", "deploy/web", "--timeout=90s")
    assert kubectl("get", "deploy", "-o", "wide").split("\n")[0].split() == [
        "NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE", "CONTAINERS", "IMAGES", "SELECTOR",
    ]  # fmt: skip
    assert kubectl("get", "pods", "-o", "name").count("pod/web-") == 2
    assert "deployment.apps/web" in kubectl("get", "all")
    described = kubectl("describe", "deploy", "web")
    assert "2 desired | 2 updated | 2 total | 2 available | 0 unavailable" in described
    assert "NewReplicaSetAvailable" in described
    assert re.search(r"Status: +Running", kubectl("describe", "pods"))
    assert re.search(r" web-\S+ +100m \(2%\)", kubectl("describe", "node", NODE))


def test_labels_annotates_and_deletes(kubectl: Kubectl) -> None:
    kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(config_map(a="1")))
    assert kubectl("label", "cm", "cfg", "tier=web") == "configmap/cfg labeled\n"
    assert kubectl("annotate", "cm", "cfg", "note=x") == "configmap/cfg annotated\n"
    assert kubectl("get", "cm", "-l", "tier=web", "-o", "name") == "configmap/cfg\n"
    assert "deleted" in kubectl("delete", "cm", "cfg", "--dry-run=server")
    assert "deleted" in kubectl("delete", "cm", "cfg", "--timeout=90s")
    assert "NotFound" in kubectl("get", "cm", "cfg", fails=True)


def test_cordons_and_taints(kubectl: Kubectl, side: Side, space: str) -> None:
    try:
        assert kubectl("cordon", NODE) == f"node/{NODE} cordoned\n"
        assert f"{NODE}   Ready,SchedulingDisabled" in kubectl("get", "node", NODE)
        kubectl("apply", "--server-side", "-f", "-", stdin=web())

        def waits() -> bool:
            pods = side.get(path_of("api/v1/pods", space)).body["items"]
            conditions = [c for pod in pods for c in pod["status"].get("conditions") or ()]
            return len([c for c in conditions if c.get("reason") == "Unschedulable"]) == 2

        wait_until(waits, "two pods to be unschedulable")
        assert kubectl("uncordon", NODE) == f"node/{NODE} uncordoned\n"
        kubectl("rollout", "status", "deploy/web", "--timeout=90s")
        assert kubectl("taint", "node", NODE, "x=y:NoSchedule") == f"node/{NODE} tainted\n"
        kubectl("rollout", "restart", "deploy/web")
        wait_until(lambda: "Pending" in kubectl("get", "pods"), "a pod to wait")
    finally:
        kubectl("uncordon", NODE)
        assert kubectl("taint", "node", NODE, "x-") == f"node/{NODE} untainted\n"
    kubectl("rollout", "status", "deploy/web", "--timeout=90s")
