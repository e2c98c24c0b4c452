"""A file at a limit is read in the running service, and its other work goes on within a second of its own time.

Time is what the service used of a processor between question and answer, so that a busy machine judges nothing.
"""

from __future__ import annotations

import os
import re
import urllib.request
from pathlib import Path

from reconciler.sim import ClusterSpec, background_fleet
from tests.e2e.daemon_process import Daemon, GitRepository
from tests.real_clusters import wait_until
from tests.security.bombs import HARMLESS

BOMBS = ("URLs", "half tokens", "anchors", "values of a selector", "objects", "groups of clusters", "selectors")
HELD_S = 1.0
POLICY = {
    "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
    "metadata": {"name": "p", "namespace": "demo"},
    "spec": {
        "resourceSelectors": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "good"}],
        "placement": {"clusterAffinity": {"clusterNames": ["m1"]}},
    },
}  # fmt: skip


def used_s(pid: int) -> float:
    """The processor time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_other_work_goes_on_while_files_at_their_limits_are_read(tmp_path: Path) -> None:
    with background_fleet([ClusterSpec(name="m1")], tmp_path) as fleet:
        store = GitRepository(tmp_path / "store", "shop", ("m1",))

        def commit(value: str) -> None:
            good = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "good", "namespace": "demo"}}
            store.write("good.yaml", POLICY, {**good, "data": {"a": value}})
            store.commit(value)

        def value() -> object:
            found = fleet.call(lambda box: box["m1"].state.get("ConfigMap", "demo", "good"))
            return found and found["data"]["a"]

        commit("first")
        kubeconfig = fleet.call(lambda box: box.kubeconfig)
        daemon = Daemon(store.folder, kubeconfig, tmp_path / "journal.db", "--poll", "1", "--listen", "127.0.0.1:0")
        with daemon.start():
            wait_until(lambda: value() == "first", "the first write")
            found = re.search(r"Listening.*?(127\.0\.0\.1:\d+)|(127\.0\.0\.1:\d+).*?Listening", daemon.text())
            assert found is not None
            worst: dict[tuple[str, str], float] = {}
            for name in BOMBS:
                store.write_text("bad.yaml", HARMLESS[name]())
                commit(name)
                while value() != name:
                    for path in ("livez", "api/v1/fleet", "metrics"):
                        before_s = used_s(daemon.pid)
                        with urllib.request.urlopen(f"http://{found[1] or found[2]}/{path}", timeout=120) as answer:
                            assert answer.status == 200, path
                        worst[name, path] = max(worst.get((name, path), 0.0), used_s(daemon.pid) - before_s)
            assert max(worst.values()) < HELD_S, worst
