"""From the ClusterProfiles of a real management cluster to objects in a real member."""

from __future__ import annotations

import json
import os
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pygit2
import pytest

from tests.e2e.daemon_process import ACK, GitRepository
from tests.fakes.profiles import DEFINITION, profile
from tests.program import run_text
from tests.real_clusters import RealCluster, RealClusters

pytestmark = pytest.mark.apiserver

PLUGIN = """\
#!/bin/sh
echo run >> "{folder}/runs"
printf '{{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {{"token": "%s"}}}}' \
"$(cat "{folder}/token")"
"""


class Hub:
    """A management cluster with one profile, of another cluster, and the files of an operator."""

    def __init__(self, folder: Path, hub: RealCluster, member: RealCluster) -> None:
        self.folder, self.hub, self.member = folder, hub, member
        self.fleet = f"i{uuid.uuid4().hex[:8]}"
        self.namespace = hub.new_namespace("inventory")
        self.name = f"member-{self.fleet}"
        hub.apply(DEFINITION)
        hub.kubectl("wait", "crd/clusterprofiles.multicluster.x-k8s.io", "--for=condition=Established", "--timeout=60s")
        self._account()
        (folder / "token-of-member").write_text(PLUGIN.format(folder=folder))
        (folder / "token-of-member").chmod(0o700)
        config = {"apiVersion": "client.authentication.k8s.io/v1", "command": "./token-of-member"}
        self.providers = folder / "providers.json"
        self.providers.write_text(json.dumps({"providers": [{"name": "script", "execConfig": config}]}))
        self.publish()
        self.store = GitRepository(folder / "store", self.fleet, clusters=())
        self.store.repository.config["user.name"] = "Ada"
        self.store.repository.config["user.email"] = "ada@example.com"

    def _account(self) -> None:
        """An account in the member, and its token where the plugin finds it."""
        self.member.kubectl("create", "serviceaccount", self.fleet, "-n", "default")
        binding = ("clusterrolebinding", self.fleet, "--clusterrole=cluster-admin")
        self.member.kubectl("create", *binding, f"--serviceaccount=default:{self.fleet}")
        (self.folder / "token").write_text(self.member.kubectl("create", "token", self.fleet, "-n", "default").strip())

    def publish(self) -> None:
        """The profile as a cluster manager writes it."""
        found = json.loads(self.member.kubeconfig.read_text())["clusters"][0]["cluster"]
        told = {"server": found["server"], "certificate-authority-data": found["certificate-authority-data"]}
        status = {"accessProviders": [{"name": "other", "cluster": {"server": "https://127.0.0.1:1"}},
                                      {"name": "script", "cluster": told}]}  # fmt: skip
        self.hub.apply(profile(self.name, self.namespace, labels={"env": "prod"}, status=status))

    def drop(self) -> None:
        self.hub.kubectl("delete", "clusterprofile", self.name, "-n", self.namespace)

    @property
    def place(self) -> str:
        return f"{self.hub.name}/{self.namespace}"

    @property
    def access(self) -> list[str]:
        return ["--access-from", self.place, "--clusterprofile-provider-file", str(self.providers)]

    def run(self, *args: str) -> subprocess.CompletedProcess[str]:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("RECONCILER_")}
        environment |= {"RECONCILER_KUBECONFIG": str(self.hub.kubeconfig), "NO_COLOR": "1", "COLUMNS": "500",
                        "RECONCILER_JOURNAL": str(self.folder / "journal.db")}  # fmt: skip
        return run_text(*args, environment=environment, folder=self.store.folder, code=None)

    def done(self, *args: str) -> str:
        process = self.run(*args)
        assert process.returncode == 0, process.stdout + process.stderr
        return process.stdout

    def merge(self) -> None:
        """As a forge does it."""
        repository = self.store.repository
        found = repository.lookup_branch("inventory")
        assert found is not None
        repository.reset(found.peel(pygit2.Commit).id, pygit2.enums.ResetMode.HARD)

    def place_app(self, value: str) -> None:
        """A ConfigMap on every cluster with a label that only the profile has."""
        name = {"name": self.fleet, "namespace": "default"}
        select = [{"apiVersion": "v1", "kind": "ConfigMap", "name": self.fleet}]
        affinity = {"clusterAffinity": {"labelSelector": {"matchLabels": {"env": "prod"}}}}
        spec = {"resourceSelectors": select, "placement": affinity}
        app = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": name, "data": {"value": value}}
        policy = {"apiVersion": ACK, "kind": "PropagationPolicy", "metadata": name, "spec": spec}
        self.store.write("app.yaml", app, policy)
        self.store.commit()

    def value(self) -> str:
        found = self.member.get("configmap", "-n", "default", "--field-selector", f"metadata.name={self.fleet}")[
            "items"
        ]
        return str(found[0]["data"]["value"]) if found else ""


@pytest.fixture
def hub(tmp_path: Path, real_clusters: RealClusters) -> Iterator[Hub]:
    made = Hub(tmp_path, real_clusters.create("m1"), real_clusters.create("m2"))
    yield made
    made.hub.kubectl("delete", "namespace", made.namespace, "--wait=false")
    made.member.kubectl("delete", "clusterrolebinding", made.fleet)


def test_from_an_inventory_to_objects_and_back(hub: Hub) -> None:
    hub.place_app("one")
    assert f"added {hub.name}: clusters/{hub.name}.yaml" in hub.done("inventory", "sync", ".", "--from", hub.place)
    hub.merge()
    hub.done("validate", ".")
    assert hub.run("inventory", "sync", ".", "--from", hub.place, "--check").returncode == 0
    told = hub.run("doctor", ".", *hub.access)
    assert told.returncode == 0 and "exec plugin ./token-of-member" in told.stderr
    # Without the profiles nothing leads there: the kubeconfig has the management cluster alone.
    assert hub.run("doctor", ".").returncode == 1
    hub.done("apply", ".", "--yes", *hub.access)
    assert hub.value() == "one"
    assert (hub.folder / "runs").exists()

    hub.drop()
    # Another profile stays, since an empty inventory retires nothing.
    refused = hub.run("inventory", "sync", ".", "--from", hub.place)
    assert refused.returncode == 1 and "nothing is retired because of an empty list" in refused.stderr
    hub.hub.apply(profile("other", hub.namespace))
    assert f"retired {hub.name}" in hub.done("inventory", "sync", ".", "--from", hub.place)
    hub.merge()
    hub.run("apply", ".", "--yes", *hub.access)
    assert hub.value() == "one", "a cluster that leaves keeps what it has"
