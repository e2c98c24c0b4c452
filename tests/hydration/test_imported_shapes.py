"""Repositories of shapes that people have: what import makes of them changes nothing that runs."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from reconciler.sim import BackgroundFleet, ClusterSpec, Request, background_fleet
from tests.hydration.test_hydrate import run
from tests.unit.cli.command_line import run as run_alone
from tests.yaml_text import load_documents

pytestmark = pytest.mark.usefixtures("tools_on_path")
SHAPES = Path(__file__).parent / "shapes"
MARKS = (
    "metadata.annotations['argocd.argoproj.io/tracking-id']", "metadata.annotations['fleet.reconciler/",
    "metadata.annotations['meta.helm.sh/", "metadata.labels['fleet.reconciler/",
    "metadata.labels['helm.toolkit.fluxcd.io/", "metadata.labels['kustomize.toolkit.fluxcd.io/",
)  # fmt: skip
"""Marks of the tools before, which go, and ours, which come."""
PLURALS = {
    "Namespace": "namespaces", "ConfigMap": "configmaps", "Service": "services", "Deployment": "deployments",
    "PersistentVolumeClaim": "persistentvolumeclaims",
}  # fmt: skip


@contextmanager
def clusters_of(shape: str, manager: str, folder: Path) -> Iterator[BackgroundFleet]:
    """Clusters with the objects of a shape, as its tool applied them."""
    folder.mkdir()
    held = {path.stem.partition("-")[2]: load_documents(path.read_text()) for path in (SHAPES / shape).glob("live-*")}
    with background_fleet([ClusterSpec(name=name) for name in sorted(held)], folder) as fleet:
        for name, bodies in held.items():
            for body in bodies:
                apply(fleet, name, body, manager)
        yield fleet


def apply(fleet: BackgroundFleet, cluster: str, body: dict[str, Any], manager: str) -> None:
    metadata, group = body["metadata"], body["apiVersion"]
    root = f"/apis/{group}" if "/" in group else f"/api/{group}"
    place = f"/namespaces/{metadata['namespace']}" if "namespace" in metadata else ""
    request = Request(
        method="PATCH", path=f"{root}{place}/{PLURALS[body['kind']]}/{metadata['name']}", body=body,
        query={"fieldManager": manager, "force": "true"}, content_type="application/apply-patch+yaml",
    )  # fmt: skip
    answer = fleet.call(lambda box: box[cluster].request(request))
    assert answer.status in (200, 201), answer.body


def imported(shape: str, folder: Path, *options: str) -> Path:
    """The store of a shape, rendered and valid."""
    checkout, store = folder / "checkout", folder / "store"
    shutil.copytree(SHAPES / shape / "repository", checkout)
    done = run("import", *(option.replace("CHECKOUT", str(checkout)) for option in options), "-o", store)
    assert done.exit_code == 0, done.output
    for command in ("hydrate", "validate"):
        ran = run(command, store)
        assert ran.exit_code == 0, ran.output
        assert "error" not in ran.output, ran.output
    return store


def changes_of(store: Path, fleet: BackgroundFleet, folder: Path) -> list[dict[str, Any]]:
    kubeconfig = str(fleet.call(lambda box: box.kubeconfig))
    environ = {"RECONCILER_KUBECONFIG": kubeconfig, "RECONCILER_JOURNAL": str(folder / "journal.db")}
    ran = run_alone("diff", str(store), "--dir", "-o", "json", PATH=os.environ["PATH"], **environ)
    assert ran.code == 0, ran.err
    found: list[dict[str, Any]] = json.loads(ran.out)["changes"]
    return found


@pytest.mark.parametrize(
    ("shape", "manager", "options", "objects"),
    [
        (
            "home-ops",
            "kustomize-controller",
            (
                "--from-flux",
                f"main={SHAPES}/home-ops/export.yaml",
                "--source",
                "ssh://git@github.com/someone/home-ops=CHECKOUT",
            ),
            {"main": 6},
        ),
        (
            "gitops-bridge",
            "argocd-controller",
            (
                "--from-argocd",
                f"{SHAPES}/gitops-bridge/export.yaml",
                "--source",
                "https://github.com/someone/bridge.git=CHECKOUT",
            ),
            {"eu": 3, "us": 3},
        ),
    ],
)
def test_what_runs_is_adopted_and_no_field_of_it_changes(
    shape: str, manager: str, options: tuple[str, ...], objects: dict[str, int], tmp_path: Path
) -> None:
    store = imported(shape, tmp_path, *options)
    with clusters_of(shape, manager, tmp_path / "fleet") as fleet:
        changes = changes_of(store, fleet, tmp_path)
    assert {change["action"] for change in changes} == {"adopt"}
    assert Counter(change["cluster"] for change in changes) == objects
    assert [field for change in changes for field in change["fields"] if not is_mark(field)] == []


def is_mark(field: dict[str, Any]) -> bool:
    only_ours = field["path"] == "metadata.labels" and field["before"] is None
    return field["path"].startswith(MARKS) or (only_ours and set(field["after"]) == {"fleet.reconciler/fleet"})
