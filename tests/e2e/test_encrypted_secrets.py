"""The service keeps encrypted Secrets in real clusters: made, edited, without a key as they are, and with it again."""

from __future__ import annotations

import base64
import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ThreeClusters
from tests.e2e.daemon_process import Daemon
from tests.e2e.test_daemon_follows import Scene
from tests.fakes.sops import SECRET_RULE, Sops
from tests.real_clusters import wait_until
from tests.unit.cli.command_line import run

pytestmark = pytest.mark.apiserver

POLICY = "policy.one.alibabacloud.com/v1alpha1"


class Encrypted(Scene):
    """A Secret and a ConfigMap of the store that sops encrypted, in m1 and m2."""

    def __init__(self, folder: Path, clusters: ThreeClusters, sops: Sops, *options: str) -> None:
        super().__init__(folder, clusters)
        self.sops = sops
        log = self.daemon.journal
        self.daemon = Daemon(self.store.folder, clusters.kubeconfig, log, *options)
        selectors = [{"apiVersion": "v1", "kind": kind, "name": "sealed"} for kind in ("Secret", "ConfigMap")]
        placement = {"clusterAffinity": {"clusterNames": ["m1", "m2"]}}
        self.store.write(
            "policy.yaml",
            {"apiVersion": POLICY, "kind": "PropagationPolicy", "metadata": {"name": "p", "namespace": self.namespace},
             "spec": {"resourceSelectors": selectors, "placement": placement}},
        )  # fmt: skip

    def encrypted(self, value: str) -> bytes:
        """Both objects in one file."""
        metadata = {"name": "sealed", "namespace": self.namespace}
        return self.sops.encrypt_documents(
            {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"a": value, "b": "same"}},
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": value}},
            options=SECRET_RULE,
        )

    def put_file(self, data: bytes) -> None:
        self.store.write_text("sealed.yaml", data.decode())
        self.store.commit()

    def found(self, cluster: str, kind: str) -> dict[str, Any] | None:
        """The object as the cluster has it."""
        arguments = ("get", kind, "sealed", "-n", self.namespace, "-o", "json", "--ignore-not-found")
        text = self.clusters[cluster].kubectl(*arguments)
        return json.loads(text) if text.strip() else None

    def holds(self, value: str) -> bool:
        """Return whether both objects have the value in both clusters."""
        found = [self.found(cluster, kind) for cluster in ("m1", "m2") for kind in ("secret", "configmap")]
        encoded = base64.b64encode(value.encode()).decode()
        values = [body["data"]["a"] for body in found if body is not None]
        return values == [encoded, value, encoded, value]

    def status(self) -> str:
        """Return the output of `status`."""
        return run("status", "--journal", str(self.journal), "-o", "json").out

    def versions(self) -> list[str]:
        found = [self.found(cluster, kind) for cluster in ("m1", "m2") for kind in ("secret", "configmap")]
        return [body["metadata"]["resourceVersion"] for body in found if body is not None]


def test_a_service_opens_what_it_has_a_key_for_and_leaves_the_rest(
    tmp_path: Path, three_clusters: ThreeClusters, sops: Sops
) -> None:
    key = tmp_path / "age.key"
    key.write_bytes(sops.key_file.read_bytes())
    key.chmod(0o600)
    scene = Encrypted(tmp_path, three_clusters, sops, "--sops-age-key-file", str(key))
    with scene.daemon:
        scene.put_file(scene.encrypted("hunter2-first"))
        scene.daemon.start()
        wait_until(lambda: scene.holds("hunter2-first"), "the values in both clusters", seen=scene.daemon.text)
        body = scene.found("m1", "secret")
        assert body is not None
        assert "sops" not in body
        assert body["data"]["b"] == base64.b64encode(b"same").decode()

        scene.put_file(scene.encrypted("hunter2-second"))
        wait_until(lambda: scene.holds("hunter2-second"), "the edited values", seen=scene.daemon.text)

        # Somebody else's key is there now: what was applied stays, whatever is committed meanwhile.
        key.write_bytes(sops.new_identity("other.key").read_bytes())
        versions = scene.versions()
        scene.put_file(scene.encrypted("hunter2-third"))
        wait_until(lambda: "sops-no-key" in scene.status(), "the missing key to be told", seen=scene.status)
        assert sops.recipient() in scene.status()
        assert scene.holds("hunter2-second")
        assert scene.versions() == versions

        # The key is back, beside the other one, and the service is told so.
        key.write_bytes(key.read_bytes() + sops.key_file.read_bytes())
        os.kill(scene.daemon.pid, signal.SIGHUP)
        wait_until(lambda: scene.holds("hunter2-third"), "the values that waited for the key", seen=scene.daemon.text)

        # Recipients that are others, of the same values, are no reason to write.
        second = sops.recipient(sops.new_identity("second.key"))
        versions = scene.versions()
        text = (scene.store.folder / "sealed.yaml").read_bytes()
        scene.store.write_text("sealed.yaml", sops.for_recipients(text, f"{sops.recipient()},{second}").decode())
        revision = scene.store.commit("other recipients")
        wait_until(lambda: revision in scene.daemon.text(), "the revision to be in force", seen=scene.daemon.text)
        scene.daemon.stop()
        assert scene.versions() == versions
    assert "hunter2" not in scene.daemon.text()
    assert all(b"hunter2" not in file.read_bytes() for file in scene.daemon.journal.parent.iterdir() if file.is_file())
