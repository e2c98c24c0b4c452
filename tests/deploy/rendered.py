"""The output of kustomize for `deploy/kubernetes`, and the environment of its pods.

Nothing runs containers here. `environment` and `Mounts` do what a kubelet does before it starts one: they resolve
variables, and lay out volumes as folders, with the links by which a kubelet replaces all files of one at once.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.yaml_text import load_documents

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy/kubernetes"

Object = Mapping[str, Any]


def kustomized(binaries: Path, folder: Path) -> list[dict[str, Any]]:
    """The objects that `kubectl kustomize FOLDER` prints."""
    command = [str(binaries / "kubectl"), "kustomize", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return load_documents(done.stdout)


def own(
    folder: Path, *components: str, namespace: str = "fleet-reconciler", overlay: str = "single", **literals: str
) -> Path:
    """A kustomization of somebody's own beside a copy of ours, as the page shows one."""
    shutil.copytree(DEPLOY, folder / "deploy/kubernetes")
    mine = folder / "mine"
    mine.mkdir()
    body = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "namespace": namespace,
        "resources": [f"../deploy/kubernetes/overlays/{overlay}"],
        "components": [f"../deploy/kubernetes/components/{name}" for name in components],
        "configMapGenerator": [
            {
                "name": "fleet-reconciler",
                "namespace": "fleet-reconciler",
                "behavior": "merge",
                "literals": [f"{name}={value}" for name, value in literals.items()],
            }
        ],
    }
    (mine / "kustomization.yaml").write_text(yaml.safe_dump(body))
    return mine


def one(objects: list[dict[str, Any]], kind: str, name: str = "") -> dict[str, Any]:
    (found,) = [item for item in objects if item["kind"] == kind and name in ("", item["metadata"]["name"])]
    return found


def pod_template(workload: Object) -> dict[str, Any]:
    """The template of a StatefulSet's or CronJob's pods."""
    spec = workload["spec"]
    template: dict[str, Any] = (spec["jobTemplate"]["spec"] if workload["kind"] == "CronJob" else spec)["template"]
    return template


def image() -> tuple[dict[str, str], str]:
    """The environment and the program of the image that the Dockerfile makes."""
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    final = text[text.rindex("\nFROM ") :]
    (assignments,) = re.findall(r"^ENV (.+)$", final, re.MULTILINE)
    (program,) = re.findall(r'^ENTRYPOINT \["(.+)"\]$', final, re.MULTILINE)
    return dict(assignment.split("=", 1) for assignment in assignments.split()), program


def environment(objects: list[dict[str, Any]], container: Object, namespace: str) -> dict[str, str]:
    """The variables of a container: those of ConfigMaps, then its own, with `$(NAME)` resolved."""
    found: dict[str, str] = {}
    for source in container.get("envFrom", ()):
        found.update(one(objects, "ConfigMap", source["configMapRef"]["name"]).get("data", {}))
    for entry in container.get("env", ()):
        if "valueFrom" in entry:
            assert entry["valueFrom"] == {"fieldRef": {"fieldPath": "metadata.namespace"}}
            found[entry["name"]] = namespace
        else:
            found[entry["name"]] = re.sub(r"\$\((\w+)\)", lambda name: found[name[1]], entry["value"])
    return found


class Mounts:
    """The volumes of a pod as folders below one folder, which stands for the root of its file system."""

    def __init__(self, root: Path, files: Mapping[str, Mapping[str, bytes]]) -> None:
        """`files`: what is in each Secret and ConfigMap; `token` of an account is in `serviceAccountToken`."""
        self.root = root
        self.files = {name: dict(content) for name, content in files.items()}
        self._swaps = 0

    def path(self, mount: str) -> Path:
        """Return the real path of a container's path."""
        return self.root / mount.removeprefix("/")

    def lay_out(self, pod: Object, claims: Path) -> None:
        """Make the folders of all volumes of a pod. Those of claims are kept in a folder for the next pod."""
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        for mount in pod["containers"][0]["volumeMounts"]:
            volume, folder = volumes.get(mount["name"], {}), self.path(mount["mountPath"])
            if folder.exists() or folder.is_symlink():
                continue
            folder.parent.mkdir(parents=True, exist_ok=True)
            if "projected" in volume:
                folder.mkdir()
                self.project(volume["projected"], folder)
            elif "emptyDir" in volume:
                folder.mkdir()
            else:
                (claims / "state").mkdir(parents=True, exist_ok=True)
                folder.symlink_to(claims / "state")

    def project(self, volume: Object, folder: Path) -> None:
        """Put the files of a projected volume there, all at once.

        Source: Kubernetes, pkg/volume/util/atomic_writer.go.
        """
        self._swaps += 1
        content = folder / f"..{self._swaps}"
        content.mkdir()
        for source in volume["sources"]:
            for name, data in self._of(source).items():
                (content / name).write_bytes(data)
                (content / name).chmod(volume["defaultMode"])
        (folder / "..next").symlink_to(content.name)
        (folder / "..next").rename(folder / "..data")
        for file in content.iterdir():
            if not (folder / file.name).is_symlink():
                (folder / file.name).symlink_to(f"..data/{file.name}")

    def _of(self, source: Object) -> dict[str, bytes]:
        ((kind, wanted),) = source.items()
        if kind == "serviceAccountToken":
            return {wanted["path"]: self.files[kind]["token"]}
        content = self.files[wanted["name"]]
        items = wanted.get("items") or [{"key": key, "path": key} for key in content]
        return {item["path"]: content[item["key"]] for item in items}
