"""Values that sops encrypted are in no output, cache, journal and log, of whatever kind the object is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler.journal import Journal
from reconciler.sim import BackgroundFleet, ClusterSpec, FleetInABox, background_fleet
from tests.fakes.journals import exported
from tests.fakes.sops import Sops
from tests.fakes.store_trees import commit_all
from tests.security.canaries import Canaries
from tests.security.command_line import Ran, reconciler
from tests.security.secret_fleet import KARMADA, NAMESPACE, Echo, secret, write_kubeconfig, write_store

pytestmark = pytest.mark.timeout(600)

CLUSTERS = ("m1", "m2")
KINDS = ("Secret", "ConfigMap", "Deployment")
READING = (
    "validate STORE", "validate STORE -o json", "render STORE", "render STORE -o json", "render STORE --show-secrets",
    "diff STORE", "diff STORE -o markdown", "diff STORE -o json", "diff STORE -o jsonpatch",
    "get secrets,configmaps,deployments -n demo --store STORE -o yaml",
    "get secrets,configmaps,deployments -n demo --store STORE -o json", "get configmaps -A --store STORE -o wide",
    "explain ConfigMap/sealed -n demo STORE -o json", "observe STORE", "status -o json", "history -o json",
    "journal export", "import ConfigMap -n demo --cluster m1 --store STORE",
)  # fmt: skip


def documents(canaries: Canaries, when: str) -> dict[str, dict[str, Any]]:
    """Return what is encrypted, by file, with values at every place that a store can encrypt."""

    def plant(place: str) -> str:
        return canaries.plant(f"{when} {place}")

    metadata = {"name": "sealed", "namespace": NAMESPACE}
    env = [{"name": "PASSWORD", "value": plant("env")}, {"name": "CLEAR", "value": ""}]
    container = {"name": "web", "image": "nginx:1", "env": env, "args": ["--token", plant("args")]}
    labels = {"app": "sealed"}
    return {
        "secret.yaml": secret(
            "sealed", stringData={"a": plant("stringData")}, data={"b": canaries.encoded(f"{when} data")}
        ),
        "refused.yaml": secret("refused", stringData={"a": plant("a Secret that the cluster refuses")}),
        "config.yaml": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata,
                        "data": {"a": plant("a ConfigMap")}},
        "refused-config.yaml": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {**metadata, "name": "refused"},
                                "data": {"a": plant("a ConfigMap that the cluster refuses")}},
        "web.yaml": {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata,
                     "spec": {"replicas": 1, "selector": {"matchLabels": labels},
                              "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}}}},
    }  # fmt: skip


class Scenario:
    """A fleet whose secrets are encrypted, and all that is said of it."""

    def __init__(self, folder: Path, sops: Sops, fleet: BackgroundFleet, echo: Echo, canaries: Canaries) -> None:
        self.folder, self.sops, self.fleet, self.canaries = folder, sops, fleet, canaries
        self.store, self.home = folder / "store", folder / "home"
        self.home.mkdir()
        self.kubeconfig, self.journal = folder / "kubeconfig", folder / "state/journal.db"
        write_kubeconfig(self.kubeconfig, fleet, echo, canaries)
        self.outputs: dict[str, bytes] = {}
        self.crashed: list[str] = []

    def commit(self, when: str) -> str:
        """A revision with new values everywhere."""
        policy = {
            "apiVersion": KARMADA, "kind": "PropagationPolicy", "metadata": {"name": "p", "namespace": NAMESPACE},
            "spec": {"resourceSelectors": [{"apiVersion": "v1", "kind": "Secret"},
                                           {"apiVersion": "v1", "kind": "ConfigMap"},
                                           {"apiVersion": "apps/v1", "kind": "Deployment"}], "placement": {}},
        }  # fmt: skip
        fleet = {"apiVersion": "fleet.reconciler/v1alpha1", "kind": "Fleet", "metadata": {"name": "fleet"}}
        clusters = [{"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": name}}
                    for name in CLUSTERS]  # fmt: skip
        write_store(self.store, {"fleet.yaml": [fleet, *clusters], "policy.yaml": [policy]})
        for name, document in documents(self.canaries, when).items():
            rule = "^(value|args)$" if name == "web.yaml" else "^(data|stringData)$"
            data = self.sops.encrypt_documents(document, options=("--encrypted-regex", rule))
            (self.store / name).write_bytes(data)
        return commit_all(self.store, when, new=not (self.store / ".git").exists())

    def run(self, when: str, line: str, *, has_key: bool = True) -> Ran:
        words = [str(self.store) if word == "STORE" else word for word in line.split()]
        environ = {"RECONCILER_KUBECONFIG": str(self.kubeconfig), "RECONCILER_JOURNAL": str(self.journal)}
        if has_key:
            environ["RECONCILER_SOPS_AGE_KEY_FILE"] = str(self.sops.key_file)
        ran = reconciler(*words, home=self.home, environ=environ)
        self.outputs[f"{when}: {line}"] = ran.out + b"\n" + ran.err
        if not ran.is_orderly or b"Usage:" in ran.err:
            self.crashed.append(f"{when}: {line}: {ran.err.decode()[-2000:]}")
        return ran

    def kept(self) -> bytes:
        """Return what the journal holds; its rows are compressed."""
        with Journal.open(self.journal, read_only=True) as journal:
            return json.dumps(exported(journal), ensure_ascii=False).encode()

    def live(self, cluster: str) -> bytes:
        def objects(box: FleetInABox) -> bytes:
            return json.dumps([box[cluster].get(kind, NAMESPACE, "sealed") for kind in KINDS]).encode()

        return self.fleet.call(objects)


@pytest.fixture(scope="module")
def scenario(tmp_path_factory: pytest.TempPathFactory, sops_binaries: Path) -> Iterator[Scenario]:
    folder = tmp_path_factory.mktemp("encrypted")
    (folder / "sops").mkdir()
    canaries, sops = Canaries(), Sops(sops_binaries, folder / "sops")
    with background_fleet([ClusterSpec(name=name) for name in CLUSTERS], folder) as fleet:
        target = fleet.call(lambda box: box.servers["m2"].url)
        with Echo(target=target, token=canaries.plant("a token of the kubeconfig")).serving() as echo:
            scenario = Scenario(folder, sops, fleet, echo, canaries)
            base = scenario.commit("first")
            scenario.run("before", "diff STORE -o json")
            scenario.run("at first", "apply STORE --yes")
            for line in READING:
                scenario.run("after apply", line)
            head = scenario.commit("second")
            for form in ("text", "markdown", "json", "jsonpatch"):
                line = f"diff STORE --base {base} --head {head} -o {form}"
                scenario.run("between revisions", line, has_key=False)
            scenario.run("between revisions", f"diff STORE --base {base} --head {head} --live -o text")
            scenario.run("changed", "diff STORE -o json")
            scenario.run("changed", "diff STORE")
            scenario.run("without a key", "diff STORE", has_key=False)
            scenario.run("second", "apply STORE --yes -o json")
            # What equals the store already is recorded without being written.
            data = sops.rotate((scenario.store / "config.yaml").read_bytes())
            (scenario.store / "config.yaml").write_bytes(data)
            commit_all(scenario.store, "encrypted again", new=False)
            scenario.run("encrypted again", "apply STORE --yes")
            scenario.outputs["the journal after it was encrypted again"] = scenario.kept()
            scenario.run("rebuilt", "journal rebuild STORE")
            scenario.run("rebuilt", "apply STORE --yes")
            scenario.outputs["the journal after it was rebuilt"] = scenario.kept()
            (scenario.store / "config.yaml").write_text(
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: sealed, namespace: demo}\ndata: {b: clear}\n"
            )
            commit_all(scenario.store, "in plain text again", new=False)
            scenario.run("in plain text again", "diff STORE -o json")
            scenario.run("in plain text again", "diff STORE")
            for line in READING:
                scenario.run("at the end", line)
            yield scenario


def test_no_command_crashed(scenario: Scenario) -> None:
    assert scenario.crashed == []


def test_every_value_reached_its_clusters(scenario: Scenario) -> None:
    wanted = {f"second {place}" for place in ("stringData", "data", "a ConfigMap", "env", "args")}
    for cluster in CLUSTERS:
        assert set(scenario.canaries.leaks(scenario.live(cluster))) == wanted


def test_what_is_sent_has_no_block_of_sops(scenario: Scenario) -> None:
    for cluster in CLUSTERS:
        assert b"sops" not in scenario.live(cluster)
        assert b"ENC[" not in scenario.live(cluster)


def test_no_output_holds_a_value(scenario: Scenario) -> None:
    leaks = {name: found for name, output in scenario.outputs.items() if (found := scenario.canaries.leaks(output))}
    assert leaks == {}


def test_nothing_that_is_kept_holds_a_value(scenario: Scenario) -> None:
    files = [file for place in (scenario.journal.parent, scenario.home) for file in place.rglob("*") if file.is_file()]
    assert {str(file): found for file in files if (found := scenario.canaries.leaks(file.read_bytes()))} == {}
    kept = scenario.kept()
    assert kept.count(b"hmac:") >= 4
    assert scenario.canaries.leaks(kept) == []


def test_a_comparison_without_a_key_tells_which_value_is_another(scenario: Scenario) -> None:
    """A value that sops did not encrypt again has its ciphertext still, so that each value is judged by itself."""
    found = next(
        out for name, out in scenario.outputs.items() if name.startswith("between") and name.endswith("-o text")
    )
    assert b"data.a" in found
    assert b"encrypted value changed" in found


def test_without_a_key_nothing_is_touched_and_the_recipient_is_named(scenario: Scenario) -> None:
    said = scenario.outputs["without a key: diff STORE"].decode()
    assert "sops-no-key" in said
    assert scenario.sops.recipient() in said
    assert "Secret demo/sealed stays as it is in all clusters" in said
