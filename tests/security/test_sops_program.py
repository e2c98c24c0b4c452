"""No program is started for an encrypted file but the sops that was named, and only where a cluster is met."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from reconciler.sim import BackgroundFleet, ClusterSpec, background_fleet
from tests.fakes.sealed_documents import block, sealed, text_of
from tests.fakes.sops_programs import Fake
from tests.fakes.store_trees import commit_all
from tests.fakes.worlds import policy
from tests.security.command_line import Ran, reconciler
from tests.unit.sops.test_attempts import ANSWER, ARN

STARTS = ("subprocess.Popen", "os.exec", "os.fork", "os.posix_spawn", "os.system")


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BackgroundFleet]:
    with background_fleet([ClusterSpec(name="m1")], tmp_path_factory.mktemp("fleet")) as found:
        yield found


class Scene:
    """A store with a ConfigMap for a key of AWS, and a sops that opens it."""

    def __init__(self, folder: Path, fleet: BackgroundFleet) -> None:
        self.home, self.store, self.fake = folder, folder / "store", Fake(folder, ANSWER)
        self.store.mkdir()
        self._fleet = fleet
        keys = {"kms": [{"arn": ARN.format("a"), "enc": "x", "created_at": "2026-11-21T10:00:00Z"}]}
        said = {name: value for name, value in block(**keys).items() if name != "age"}
        documents = [
            {"apiVersion": "fleet.reconciler/v1alpha1", "kind": "Fleet", "metadata": {"name": "shop"}},
            {"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": "m1"}},
            policy("ConfigMap", "m1", name="config"),
        ]
        (self.store / "all.yaml").write_text(yaml.safe_dump_all(documents))
        (self.store / "sealed.yaml").write_text(text_of(sealed("ConfigMap", sops=said, a="canary")))
        commit_all(self.store, new=True)
        self.kubeconfig = fleet.call(lambda box: box.kubeconfig)

    def run(self, command: str, **environ: str) -> Ran:
        words = [str(self.store) if word == "STORE" else word for word in command.split()]
        journal = {"RECONCILER_JOURNAL": str(self.home / "journal.db"), "RECONCILER_KUBECONFIG": str(self.kubeconfig)}
        return reconciler(*words, home=self.home, environ={**journal, **environ})

    def live(self) -> object:
        found = self._fleet.call(lambda box: box["m1"].state.get("ConfigMap", "demo", "app"))
        return found and found["data"]


def starts(ran: Ran) -> list[str]:
    return [event for event in ran.events if event.startswith(STARTS)]


def test_only_commands_that_meet_a_cluster_start_it_and_only_when_it_is_named(
    tmp_path: Path, fleet: BackgroundFleet
) -> None:
    scene = Scene(tmp_path, fleet)
    named = {"RECONCILER_SOPS_BINARY": str(scene.fake.path)}
    for command in ("validate STORE", "render STORE", "render STORE -o json", "diff STORE --base HEAD"):
        ran = scene.run(command, **named)
        assert ran.is_orderly, ran.output
        assert not starts(ran), command
    for command in ("diff STORE", "apply STORE --yes"):
        ran = scene.run(command)
        assert "sops-no-key" in ran.output, ran.output
        assert "--sops-binary" in ran.output
        assert not starts(ran), command
    assert scene.fake.runs == []
    assert scene.live() is None

    for command in ("diff STORE", "apply STORE --yes"):
        ran = scene.run(command, **named)
        assert len(starts(ran)) == 1, ran.events
        assert "canary" not in ran.output
        assert "sops-no-key" not in ran.output
    assert scene.live() == {"a": "data canary"}
    assert len(scene.fake.runs) == 2
