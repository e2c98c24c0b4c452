"""A file at a limit is read in the running service, and its other work goes on within a second of its own time.

Time is what the service used of a processor between question and answer, so that a busy machine judges nothing.
"""

from __future__ import annotations

import gzip
import os
import re
import urllib.request
from collections.abc import Callable
from functools import partial
from pathlib import Path

from pyrage import x25519

from reconciler.helm.files import MAX_FILES
from reconciler.sim import ClusterSpec, background_fleet
from reconciler.store.git.repository import MAX_OBJECT_BYTES
from tests.e2e.daemon_process import Daemon, GitRepository
from tests.fakes.packs import BLOB, BY_OFFSET, Entry, cut_to, object_name, write_pack
from tests.real_clusters import wait_until
from tests.security.bombs import HARMLESS
from tests.security.test_decompress import entries
from tests.security.test_sops_program import at_limits

FILES = ("URLs", "half tokens", "anchors", "values of a selector", "objects", "groups of clusters", "selectors")
HELD_S = 1.0
POLICY = {
    "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
    "metadata": {"name": "p", "namespace": "demo"},
    "spec": {
        "resourceSelectors": [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "good"}, {"apiVersion": "v1", "kind": "Secret"},
        ],
        "placement": {"clusterAffinity": {"clusterNames": ["m1"]}},
    },
}  # fmt: skip


ME = x25519.Identity.generate()
RENDER = """\
apiVersion: fleet.reconciler/v1alpha1
kind: Render
metadata: {name: chart}
spec:
  helm: {chart: charts/bad.tgz, releaseName: r, namespace: demo, kubeVersion: "1.36"}
  output: rendered
"""


def large_base(store: GitRepository) -> None:
    """A file that is packed as a difference to the largest object that is unpacked for one."""
    small = b"# nothing\n"
    large = small.ljust(MAX_OBJECT_BYTES, b" ")
    delta = Entry(BY_OFFSET, cut_to(len(large), len(small)), 0, object_name("blob", small))
    write_pack(store.folder / ".git", [Entry(BLOB, large), delta])
    store.write_text("bad.yaml", small.decode())


def chart(store: GitRepository) -> None:
    """A chart whose archive is as large as one can be, and nothing that was made of it."""
    store.write_text("render.yaml", RENDER)
    (store.folder / "charts").mkdir()
    (store.folder / "charts/bad.tgz").write_bytes(gzip.compress(entries(MAX_FILES), 1))


BOMBS: dict[str, Callable[[GitRepository], None]] = {
    **{name: partial(lambda name, store: store.write_text("bad.yaml", HARMLESS[name]()), name) for name in FILES},
    "keys of sops": lambda store: store.write_text("bad.yaml", at_limits(ME)),
    "a large base in Git": large_base,
    "a chart": chart,
}


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
        keys = tmp_path / "age.key"
        keys.write_text(f"{ME}\n")
        keys.chmod(0o600)
        kubeconfig = fleet.call(lambda box: box.kubeconfig)
        daemon = Daemon(store.folder, kubeconfig, tmp_path / "journal.db", "--poll", "1", "--listen", "127.0.0.1:0",
                        "--sops-age-key-file", str(keys))  # fmt: skip
        with daemon.start():
            wait_until(lambda: value() == "first", "the first write")
            daemon.says('"pages are served"')
            (address,) = re.findall(r'"event": ?"Listening".*?"obj": ?"([^"]+)"', daemon.text())
            worst: dict[tuple[str, str], float] = {}
            for name, make in BOMBS.items():
                make(store)
                commit(name)
                while value() != name:
                    for path in ("livez", "api/v1/fleet", "metrics"):
                        before_s = used_s(daemon.pid)
                        with urllib.request.urlopen(f"http://{address}/{path}", timeout=120) as answer:
                            assert answer.status == 200, path
                        worst[name, path] = max(worst.get((name, path), 0.0), used_s(daemon.pid) - before_s)
            assert max(worst.values()) < HELD_S, worst
