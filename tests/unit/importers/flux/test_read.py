"""An artifact of a registry as the source of a Kustomization."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.importers import Checkouts, read_flux
from tests.unit.importers.told import HeldFiles, check_case, documents_of
from tests.unit.policy_cases import cases


@pytest.mark.parametrize("case", cases("importing/flux.yaml"))
def test_a_store_is_made_of_what_the_tool_was_told(case: dict[str, Any]) -> None:
    check_case({**case, "tool": "flux"})


INPUT = """
apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
metadata: {name: apps, namespace: flux-system}
spec:
  url: oci://registry.example.com/manifests/apps
  ref: {tag: prod}
  verify: {provider: cosign, secretRef: {name: cosign}}
status: {artifact: {revision: 'prod@sha256:0123'}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: apps, namespace: flux-system}
spec: {sourceRef: {kind: OCIRepository, name: apps}, path: ./}
"""


def test_the_files_are_those_that_a_person_unpacked_and_what_runs_is_named() -> None:
    files = HeldFiles({"a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: demo}\n"})
    checkouts = Checkouts({"oci://registry.example.com/manifests/apps": files})
    found = read_flux({"prod": documents_of(INPUT)}, checkouts, fleet="shop", kube_version="1.36", names={})
    assert [render for render in found.files if render.startswith("renders/")] == ["renders/apps.yaml"]
    told = {left.subject: left.why for left in found.left_out}
    assert "oras pull" in told["spec.ref"]
    assert "oci://" in told["spec.ref"]
    assert told["spec.ref"].endswith(": prod@sha256:0123 runs")
    assert "RECONCILER_OCI_VERIFY_KEY" in told["spec.verify"]
