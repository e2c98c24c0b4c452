"""`apply`: its exit code says whether the clusters are as the store says now, and stderr why they are not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from reconciler.journal import Journal
from reconciler.sim import BackgroundFleet, ClusterSpec, background_fleet
from tests.unit.cli.command_line import Ran, run, write_store

NAMES = ("m1", "m2")
MANY = "---\n".join(
    f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: many-{index}, namespace: demo}}\n" for index in range(5)
)
POLICY = """\
apiVersion: policy.one.alibabacloud.com/v1alpha1
kind: PropagationPolicy
metadata: {name: many, namespace: demo}
spec:
  preserveResourcesOnDeletion: false
  resourceSelectors: [{apiVersion: v1, kind: ConfigMap}]
  placement: {clusterAffinity: {clusterNames: [m1]}}
"""


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[BackgroundFleet]:
    folder = tmp_path / "fleet"
    folder.mkdir()
    with background_fleet([ClusterSpec(name=name) for name in NAMES], folder) as found:
        yield found


class Desk:
    """A store, a kubeconfig and a journal."""

    def __init__(self, folder: Path, fleet: BackgroundFleet) -> None:
        self.journal = str(folder / "journal.db")
        self.store = folder / "store"
        self.store.mkdir()
        write_store(self.store)
        self.kubeconfig = folder / "kubeconfig"
        self.urls = fleet.call(lambda box: {name: server.url for name, server in box.servers.items()})
        self.reach(*NAMES)

    def reach(self, *names: str, **urls: str) -> None:
        """A kubeconfig for these clusters, at other addresses where `urls` says so."""
        found = {name: urls.get(name, self.urls[name]) for name in names}
        text = {
            "clusters": [{"name": name, "cluster": {"server": url}} for name, url in found.items()],
            "users": [{"name": name, "user": {"token": "t"}} for name in found],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}} for name in found],
        }
        self.kubeconfig.write_text(yaml.safe_dump(text))
        self.kubeconfig.chmod(0o600)

    def apply(self, *args: str) -> Ran:
        access = {"RECONCILER_KUBECONFIG": str(self.kubeconfig), "RECONCILER_JOURNAL": self.journal}
        return run("apply", str(self.store), "--dir", "--yes", *args, **access)


@pytest.fixture
def desk(tmp_path: Path, fleet: BackgroundFleet) -> Desk:
    return Desk(tmp_path, fleet)


def test_in_step_exits_with_0(desk: Desk) -> None:
    assert desk.apply().code == 0
    done = desk.apply()
    assert (done.code, done.err.splitlines()[1:]) == (0, [])
    assert "no changes" in done.out


@pytest.mark.parametrize("output", ["text", "json"])
def test_no_cluster_could_be_read(desk: Desk, output: str) -> None:
    desk.reach()
    done = desk.apply("-o", output)
    assert done.code == 4
    assert done.err.splitlines()[-1] == (
        "INCOMPLETE: m1, m2 could not be read, and nothing was changed there (exit code 4)"
    )
    assert "no changes" not in done.out


def test_a_cluster_refuses_the_connection_while_the_other_is_in_step(desk: Desk) -> None:
    assert desk.apply().code == 0
    desk.reach(*NAMES, m2="http://127.0.0.1:9")
    done = desk.apply()
    assert done.code == 4
    assert done.err.splitlines()[-1] == "INCOMPLETE: m2 could not be read, and nothing was changed there (exit code 4)"
    assert done.out.startswith("incomplete: not all that changes is known\n")


def test_a_cluster_that_was_not_asked_for_does_not_count(desk: Desk) -> None:
    desk.reach(*NAMES, m2="http://127.0.0.1:9")
    assert desk.apply("--cluster", "m1").code == 0


def test_what_a_guard_holds_exits_with_3(desk: Desk) -> None:
    write_store(desk.store, many=MANY, policy=POLICY)
    assert desk.apply().code == 0
    write_store(desk.store, many="", policy=POLICY)
    done = desk.apply()
    assert done.code == 3
    assert done.err.splitlines()[-1] == "HELD: 5 changes wait for a person and are not made (exit code 3)"
    with Journal.open(Path(desk.journal), read_only=True) as journal:
        state = dict(journal.state() or {})
    confirm = f"spec.guards.confirm: {state['heldDigest']} "
    assert [confirm in trouble["todo"] for trouble in state["troubles"]] == [True] * 5


def test_what_is_suspended_exits_with_3(desk: Desk) -> None:
    assert desk.apply().code == 0
    assert run("suspend", "fleet", "--reason", "freeze", RECONCILER_JOURNAL=desk.journal).code == 0
    write_store(desk.store, many=MANY, policy=POLICY)
    done = desk.apply()
    assert done.code == 3
    assert "wait for a person" in done.err


def test_an_error_beats_what_could_not_be_read(desk: Desk) -> None:
    desk.reach()
    write_store(desk.store, bad="apiVersion: v1\nkind: ConfigMap\nmetadata: {name: BAD, namespace: demo}\n")
    assert desk.apply().code == 1
