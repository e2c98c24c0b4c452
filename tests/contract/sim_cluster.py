"""An embedded cluster with the face of a real one, so that the same tests run on both."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from reconciler.sim import AuditEntry, BackgroundFleet, NodeSpec
from tests.contract.sim_sides import Side, new_space
from tests.real_clusters import RealCluster, missing_binaries

_PLURALS = {"Deployment": "deployments", "StatefulSet": "statefulsets", "ConfigMap": "configmaps",
            "ResourceQuota": "resourcequotas", "CustomResourceDefinition": "customresourcedefinitions"}  # fmt: skip


class SimCluster(RealCluster):
    """The cluster `m1` of a fleet that runs in a thread."""

    def __init__(self, fleet: BackgroundFleet) -> None:
        self.name = "m1"
        self.kubeconfig = fleet.kubeconfig
        self._fleet = fleet
        self._side = Side("sim", fleet.kubeconfig)

    def kubectl(self, *args: str, stdin: str | None = None) -> str:
        """Return the output of kubectl; without a kubectl the test is skipped, in CI it fails."""
        folder = Path(os.environ.get("KUBEBUILDER_ASSETS", ""))
        if "kubectl" in missing_binaries(folder):
            (pytest.fail if os.environ.get("CI") else pytest.skip)("there is no kubectl in KUBEBUILDER_ASSETS")
        done = subprocess.run(
            [str(folder / "kubectl"), "--kubeconfig", str(self.kubeconfig), *args],
            input=stdin, capture_output=True, text=True, timeout=180, check=False,
            env={**os.environ, "HOME": "/nonexistent", "KUBECACHEDIR": "/nonexistent"},
        )  # fmt: skip
        assert done.returncode == 0, f"kubectl {' '.join(args)}: {done.stderr.strip()}"
        return done.stdout

    def apply(self, *bodies: Mapping[str, Any], manager: str = "somebody-else") -> None:
        """Server-side apply objects as another manager would."""
        for body in bodies:
            metadata = body["metadata"]
            version = body["apiVersion"]
            root = f"/apis/{version}" if "/" in version else f"/api/{version}"
            space = f"/namespaces/{metadata['namespace']}" if "namespace" in metadata else ""
            reply = self._side.apply(f"{root}{space}/{_PLURALS[body['kind']]}/{metadata['name']}", body, manager)
            assert reply.status in (200, 201), reply.body

    def new_namespace(self, prefix: str = "t") -> str:
        """A fresh namespace, so that tests that share a cluster do not meet."""
        return new_space(self._side)

    def mark(self) -> int:
        """A position in the audit trail."""
        return self._fleet.call(lambda box: len(box["m1"].audit))

    def writes(self, since: int | None = None, user_agent: str | None = None) -> list[dict[str, Any]]:
        """Writes since a mark in the form of an audit log."""
        found = self._fleet.call(lambda box: list(box["m1"].audit[since or 0 :]))
        return [_event(entry) for entry in found if (user_agent or "") in entry.user_agent]

    def add_node(
        self,
        name: str,
        cpu: str = "8",
        memory: str = "16Gi",
        pods: str = "110",
        labels: Mapping[str, str] | None = None,
        taints: Sequence[Mapping[str, str]] = (),
    ) -> None:
        """Add a node of that capacity; it is Ready at once."""
        spec = NodeSpec(
            name=name,
            cpu=cpu,
            memory=memory,
            pods=pods,
            labels=tuple((labels or {}).items()),
            taints=tuple((taint["key"], taint.get("value", ""), taint["effect"]) for taint in taints),
        )
        self._fleet.call(lambda box: box["m1"].add_node(spec))

    def remove_node(self, name: str) -> None:
        """Take a node away with the pods on it."""
        self._fleet.call(lambda box: box["m1"].remove_node(name))

    def stop(self) -> None:
        """Stop the API server; its data stay."""
        self._fleet.wait(lambda box: box.servers["m1"].stop())

    def start(self) -> None:
        """Bring it back at the same address."""
        self._fleet.wait(lambda box: box.servers["m1"].start())


def _event(entry: AuditEntry) -> dict[str, Any]:
    reference = {"apiGroup": entry.group, "resource": entry.plural, "namespace": entry.namespace, "name": entry.name,
                 "subresource": entry.subresource}  # fmt: skip
    return {"verb": entry.verb, "userAgent": entry.user_agent, "responseStatus": {"code": entry.code},
            "objectRef": {name: value for name, value in reference.items() if value}}  # fmt: skip
