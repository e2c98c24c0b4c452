"""A commit that lifts a freeze or `mode: observe` does not use it: the former counts until the next, or confirmed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.journal.sqlite_journal import Journal
from reconciler.sim import ClusterSpec, background_fleet
from tests.e2e.daemon_process import Daemon, GitRepository
from tests.real_clusters import wait_until
from tests.soak.rollouts import confirm

POLICY = {
    "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
    "metadata": {"name": "p", "namespace": "demo"},
    "spec": {
        "resourceSelectors": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "c"}],
        "placement": {"clusterAffinity": {"clusterNames": ["m1"]}},
    },
}  # fmt: skip
FREEZE = {"kind": "deny", "cron": "0 0 * * *", "duration": "48h"}
OPEN: dict[str, Any] = {}
CLOSINGS: dict[str, tuple[dict[str, Any], str]] = {
    "a freeze": ({"windows": [FREEZE]}, "a window of the fleet is closed"),
    "a fleet that is only observed": ({"mode": "observe"}, "spec.mode of the Fleet document is observe"),
}


def put(
    store: GitRepository, value: str, closing: dict[str, Any], *, is_confirmed: bool = False, review: str = ""
) -> str:
    path = store.folder / "fleet.yaml"
    body: dict[str, Any] = yaml.safe_load(path.read_text())
    body["spec"] = closing | ({"review": {"confirm": review}} if review else {})
    path.write_text(yaml.safe_dump(body))
    object_ = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "demo"}}
    store.write("c.yaml", POLICY, {**object_, "data": {"a": value}})
    if is_confirmed:
        confirm(store)
    return store.commit(value)


@pytest.mark.parametrize("name", CLOSINGS)
def test_what_closes_the_fleet_holds_what_the_commit_brings_that_lifts_it(name: str, tmp_path: Path) -> None:
    closing, why = CLOSINGS[name]
    with background_fleet([ClusterSpec(name="m1")], tmp_path) as fleet:
        store = GitRepository(tmp_path / "store", "shop", ("m1",))

        def value() -> object:
            found = fleet.call(lambda box: box["m1"].state.get("ConfigMap", "demo", "c"))
            return found and found["data"]["a"]

        def says(text: str) -> Callable[[], bool]:
            def is_so() -> bool:
                with Journal.open(daemon.journal, read_only=True) as journal:
                    return text in json.dumps(journal.state() or {})

            return is_so

        put(store, "first", OPEN)
        kubeconfig = fleet.call(lambda box: box.kubeconfig)
        daemon = Daemon(store.folder, kubeconfig, tmp_path / "journal.db", "--poll", "1")
        with daemon.start():
            wait_until(lambda: value() == "first", "the first write")
            put(store, "frozen", closing)
            wait_until(says(why), "the freeze")
            head = put(store, "lifted", OPEN)
            wait_until(says(head), "the commit to be followed")
            wait_until(says("it was loosened: the former one counts"), "what is said of it")
            daemon.stop()
            daemon.start()
            wait_until(says("it was loosened: the former one counts"), "the same after a restart")
            assert value() == "first"
            put(store, "lifted, and one more commit", OPEN)
            wait_until(lambda: value() == "lifted, and one more commit", "the next commit")

            put(store, "frozen again", closing)
            wait_until(says(why), "the freeze")
            put(store, "guessed", OPEN, review="0123456789abcdef")
            wait_until(says("confirms nothing of this revision"), "the error")
            assert value() == "lifted, and one more commit"
            head = put(store, "frozen once more", closing)
            wait_until(says(head), "the commit to be followed")
            put(store, "confirmed", OPEN, is_confirmed=True)
            wait_until(lambda: value() == "confirmed", "what a person confirmed")
            assert daemon.stop() == 0
