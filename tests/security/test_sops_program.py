"""No program is started for an encrypted file but the sops that was named, and only where a cluster is met.

A key of sops is read in time that grows with the square of its length: it is bounded where the file is read.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyrage
import pytest
import yaml
from pyrage import x25519

from reconciler.api.fleet import StoreFile
from reconciler.fleet import parse_file
from reconciler.sim import BackgroundFleet, ClusterSpec, background_fleet
from reconciler.sops.decrypt import DecryptRefused, decrypted_file
from tests.fakes.sealed_documents import block, sealed, text_of
from tests.fakes.sops_programs import Fake
from tests.fakes.store_trees import commit_all, write_files
from tests.fakes.worlds import policy
from tests.security.command_line import Ran, reconciler
from tests.security.test_hostile_stores import GOOD, assert_bounded
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


CIPHERTEXT = f"ENC[AES256_GCM,data:AAAA,iv:{'A' * 43}=,tag:{'A' * 22}==,type:str]"


def key_for(recipients: int) -> str:
    """A data key as sops has age write it, for so many others."""
    others = [x25519.Identity.generate().to_public() for _ in range(recipients)]
    return bytes(pyrage.encrypt(b"k" * 32, others, armored=True)).decode()


def secret(block: dict[str, Any]) -> str:
    sealed = {"lastmodified": "2026-01-01T00:00:00Z", "mac": CIPHERTEXT, "version": "3.13.0", **block}
    head = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "bad", "namespace": "demo"}}
    return yaml.safe_dump({**head, "data": {"a": CIPHERTEXT}, "sops": {"encrypted_regex": "^data$", **sealed}})


@pytest.mark.parametrize("command", ["validate", "render"])
def test_a_key_for_very_many_is_refused_where_it_is_read(command: str, tmp_path: Path) -> None:
    me = x25519.Identity.generate()
    (tmp_path / "age.key").write_text(f"{me}\n")
    (tmp_path / "age.key").chmod(0o600)
    bomb = secret({"age": [{"recipient": str(me.to_public()), "enc": key_for(700)}]})
    store = write_files(tmp_path / "store", {"good.yaml": GOOD, "bad.yaml": bomb})
    ran = reconciler(command, store, "-o", "json", home=tmp_path)
    assert_bounded(ran)
    assert ran.code == 1
    problems = json.loads(ran.out)["problems"]
    assert [(one["code"], one["path"]) for one in problems if one["severity"] == "error"] == [
        ("sops-unknown-form", "sops.age[0].enc")
    ]


def at_limits(me: x25519.Identity) -> str:
    """A Secret with as many keys as a file can have, of the length that is tried."""
    longest = next(key for count in range(40, 1, -1) if len(key := key_for(count)) <= 1_024)
    entries = [{"recipient": str(me.to_public()), "enc": longest}] * 100
    return secret({"key_groups": [{"age": entries}] * 20, "shamir_threshold": 20})


def test_a_review_of_as_many_keys_as_a_file_can_have_costs_little(tmp_path: Path) -> None:
    store = tmp_path / "store"
    write_files(store, {"good.yaml": GOOD.replace("kind: ConfigMap}]", "kind: Secret}]")})
    commit_all(store, "first", new=True)
    write_files(store, {"bad.yaml": at_limits(x25519.Identity.generate())})
    commit_all(store, "second")
    ran = reconciler("diff", store, "--base", "HEAD~1", "-o", "json", home=tmp_path)
    assert_bounded(ran)
    changed = [change["resource"]["name"] for change in json.loads(ran.out)["changes"]]
    assert changed == ["demo", "bad"]


def test_as_many_keys_as_a_file_can_have_cost_little() -> None:
    me = x25519.Identity.generate()
    text = at_limits(me)
    parsed = parse_file(StoreFile(path="bad.yaml", blob="b", data=text.encode()))
    sealed = parsed.templates[0].sealed
    assert sealed is not None, parsed.problems
    started_s = time.process_time()
    assert isinstance(decrypted_file(sealed, [me]), DecryptRefused)
    # 2,000 keys that are each tried take 2 s; one of a group is.
    assert time.process_time() - started_s < 1
