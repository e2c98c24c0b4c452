"""A commit that lifts what closes the fleet, or a policy, does not use it: that counts until the next, or confirmed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from reconciler.journal import Journal
from reconciler.sim import BackgroundFleet, ClusterSpec, background_fleet
from tests.e2e.daemon_process import Daemon, GitRepository
from tests.real_clusters import wait_until
from tests.soak.rollouts import confirm

POLICY: dict[str, Any] = {
    "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
    "metadata": {"name": "p", "namespace": "demo"},
    "spec": {
        "resourceSelectors": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "c"}],
        "placement": {"clusterAffinity": {"clusterNames": ["m1"]}},
    },
}  # fmt: skip
FREEZE = {"kind": "deny", "cron": "0 0 * * *", "duration": "48h"}
OPEN: dict[str, Any] = {}
SUSPENDED = {"suspension": {"dispatching": True}}
"""Of the policy; all else is of the Fleet document."""
CLOSINGS: dict[str, tuple[dict[str, Any], str]] = {
    "a freeze": ({"windows": [FREEZE]}, "a window of the fleet is closed"),
    "a fleet that is only observed": ({"mode": "observe"}, "spec.mode of the Fleet document is observe"),
    "a policy that is suspended": (SUSPENDED, "dispatching is suspended by PropagationPolicy demo/p"),
}


def put(
    store: GitRepository, value: str, closing: dict[str, Any], *, is_confirmed: bool = False, review: str = ""
) -> str:
    path = store.folder / "fleet.yaml"
    body: dict[str, Any] = yaml.safe_load(path.read_text())
    of_policy = {name: value for name, value in closing.items() if name in SUSPENDED}
    of_fleet = {name: value for name, value in closing.items() if name not in SUSPENDED}
    body["spec"] = of_fleet | ({"review": {"confirm": review}} if review else {})
    path.write_text(yaml.safe_dump(body))
    object_ = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "demo"}}
    store.write("c.yaml", POLICY | {"spec": POLICY["spec"] | of_policy}, {**object_, "data": {"a": value}})
    if is_confirmed:
        confirm(store)
    return store.commit(value)


class Service(NamedTuple):
    """A service on one embedded cluster, with its store."""

    fleet: BackgroundFleet
    store: GitRepository
    daemon: Daemon

    def value(self) -> object:
        found = self.fleet.call(lambda box: box["m1"].state.get("ConfigMap", "demo", "c"))
        return found and found["data"]["a"]

    def state(self) -> str:
        """Return what the journal says of the fleet."""
        with Journal.open(self.daemon.journal, read_only=True) as journal:
            return json.dumps(journal.state() or {})

    def until(self, text: str, what: str) -> None:
        """Return once the journal says it."""
        wait_until(lambda: text in self.state(), what)

    def until_written(self, value: str, what: str) -> None:
        """Return once the cluster has it."""
        wait_until(lambda: self.value() == value, what)


@contextmanager
def frozen(folder: Path, closing: dict[str, Any], why: str) -> Iterator[Service]:
    with background_fleet([ClusterSpec(name="m1")], folder) as fleet:
        store = GitRepository(folder / "store", "shop", ("m1",))
        put(store, "first", OPEN)
        with Daemon(store.folder, fleet.kubeconfig, folder / "journal.db", "--poll", "1").start() as daemon:
            service = Service(fleet, store, daemon)
            service.until_written("first", "the first write")
            put(store, "frozen", closing)
            service.until(why, "the freeze")
            yield service


FORMER_COUNTS = "it was loosened: the former one counts"


@pytest.mark.parametrize("name", CLOSINGS)
def test_what_closes_the_fleet_holds_what_the_commit_brings_that_lifts_it(name: str, tmp_path: Path) -> None:
    closing, why = CLOSINGS[name]
    with frozen(tmp_path, closing, why) as service:
        store, daemon = service.store, service.daemon
        head = put(store, "lifted", OPEN)
        service.until(head, "the commit to be followed")
        service.until(FORMER_COUNTS, "what is said of it")
        daemon.stop()
        daemon.start().follows()
        service.until(FORMER_COUNTS, "the same after a restart")
        assert service.value() == "first"
        put(store, "lifted, and one more commit", OPEN)
        service.until_written("lifted, and one more commit", "the next commit")

        head = put(store, "frozen again", closing)
        service.until(head, "the freeze to be followed")
        service.until(why, "the freeze")
        put(store, "guessed", OPEN, review="0123456789abcdef")
        service.until("confirms nothing of this revision", "the error")
        assert service.value() == "lifted, and one more commit"
        head = put(store, "frozen once more", closing)
        service.until(head, "the commit to be followed")
        put(store, "confirmed", OPEN, is_confirmed=True)
        service.until_written("confirmed", "what a person confirmed")
        assert daemon.stop() == 0


UNHEALED = {"drift": {"selfHeal": False}}


@pytest.mark.parametrize("is_confirmed", [True, False])
def test_two_merges_while_the_service_is_stopped_are_two_confirmations(is_confirmed: bool, tmp_path: Path) -> None:
    """If nobody confirmed the first, the confirmation of the second does not cover it, and is no error."""
    with frozen(tmp_path, *CLOSINGS["a freeze"]) as service:
        store, daemon = service.store, service.daemon
        assert daemon.stop() == 0
        put(store, "second", {**UNHEALED, **CLOSINGS["a freeze"][0]}, is_confirmed=is_confirmed)
        head = put(store, "third", UNHEALED, is_confirmed=True)
        daemon.start()
        service.until(head, "both to be followed")
        if is_confirmed:
            service.until_written("third", "what both confirm")
        else:
            service.until(FORMER_COUNTS, "what is said of it")
            assert service.value() == "first"
            put(store, "fourth", UNHEALED)
            service.until_written("fourth", "the next commit")
        assert "confirmation-fits-nothing" not in service.state()
        assert daemon.stop() == 0
