"""A commit that lifts a freeze does not use it: the one before counts too, until the next one or a confirmation."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

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


def put(store: GitRepository, value: str, *, is_frozen: bool, is_confirmed: bool = False, review: str = "") -> str:
    path = store.folder / "fleet.yaml"
    body: dict[str, Any] = yaml.safe_load(path.read_text())
    body["spec"] = {"windows": [FREEZE] if is_frozen else []} | ({"review": {"confirm": review}} if review else {})
    path.write_text(yaml.safe_dump(body))
    object_ = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "demo"}}
    store.write("c.yaml", POLICY, {**object_, "data": {"a": value}})
    if is_confirmed:
        confirm(store)
    return store.commit(value)


def test_a_freeze_that_a_commit_lifts_holds_what_it_brings(tmp_path: Path) -> None:
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

        put(store, "first", is_frozen=False)
        kubeconfig = fleet.call(lambda box: box.kubeconfig)
        daemon = Daemon(store.folder, kubeconfig, tmp_path / "journal.db", "--poll", "1")
        with daemon.start():
            wait_until(lambda: value() == "first", "the first write")
            put(store, "frozen", is_frozen=True)
            wait_until(says("a window of the fleet is closed"), "the freeze")
            head = put(store, "lifted", is_frozen=False)
            wait_until(says(head), "the commit to be followed")
            wait_until(says("it was loosened: the former one counts"), "what is said of it")
            daemon.stop()
            daemon.start()
            wait_until(says("it was loosened: the former one counts"), "the same after a restart")
            assert value() == "first"
            put(store, "lifted, and one more commit", is_frozen=False)
            wait_until(lambda: value() == "lifted, and one more commit", "the next commit")

            put(store, "frozen again", is_frozen=True)
            wait_until(says("a window of the fleet is closed"), "the freeze")
            put(store, "guessed", is_frozen=False, review="0123456789abcdef")
            wait_until(says("confirms nothing of this revision"), "the error")
            assert value() == "lifted, and one more commit"
            head = put(store, "frozen once more", is_frozen=True)
            wait_until(says(head), "the commit to be followed")
            put(store, "confirmed", is_frozen=False, is_confirmed=True)
            wait_until(lambda: value() == "confirmed", "what a person confirmed")
            assert daemon.stop() == 0
