"""No secret value leaves the process except to the cluster that it is for: every command, every format, every file."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler.journal import Journal
from reconciler.sim import BackgroundFleet, ClusterSpec, FleetInABox, Request, background_fleet
from tests.fakes.journals import exported
from tests.fakes.store_trees import commit_all
from tests.real_clusters import wait_until
from tests.security.canaries import Canaries
from tests.security.command_line import Ran, reconciler
from tests.security.places import CREDENTIALS
from tests.security.secret_fleet import (
    LAST_APPLIED,
    NAMESPACE,
    Echo,
    edited_by_others,
    store,
    write_kubeconfig,
    write_store,
)

CLUSTERS = ("m1", "m2")
IN_NO_SECRET = (
    "a Secret in a ConfigMap",
    "a private key",
    "a URL in env",
    "a URL in a refused ConfigMap",
    *CREDENTIALS,
)
"""Masked in every output, and kept as they are where manifests are kept: only a Secret says that it is one."""
_READING = (
    "validate STORE", "validate STORE -o json", "validate STORE -o github",
    "render STORE", "render STORE -o json", "render STORE -o name",
    "diff STORE", "diff STORE -o markdown", "diff STORE -o json", "diff STORE -o jsonpatch",
    "get secrets -n demo --store STORE", "get secrets -n demo --store STORE -o wide",
    "get secrets -n demo --store STORE -o name", "get secrets -n demo --store STORE -o yaml",
    "get secrets -n demo --store STORE -o json", "get secret plain -n demo --store STORE -o json",
    "get configmaps,deployments -A --store STORE -o json", "get configmaps -A --store STORE -o yaml",
    "get deploy -n demo --store STORE -o json",
    "explain Secret/plain -n demo STORE", "explain Secret/plain -n demo STORE -o json",
    "clusters STORE", "clusters STORE -o json", "doctor STORE", "observe STORE",
    "import Secret -n demo --cluster m1 --store STORE", "import ConfigMap -n demo --cluster m1 --store STORE",
)  # fmt: skip
_REMEMBERED = (
    "status", "status -o json", "status -o yaml", "status --released", "history", "history Secret/plain",
    "history -o json", "journal verify", "journal export", "journal export -o yaml",
)  # fmt: skip


class Scenario:
    """The commands of the fleet's life, one after another, and what each of them left behind."""

    def __init__(self, folder: Path, canaries: Canaries, fleet: BackgroundFleet, echo: Echo) -> None:
        self.canaries = canaries
        self.fleet = fleet
        self.echo = echo
        self.home = folder / "home"
        self.home.mkdir()
        self.store = folder / "store"
        self.logs = folder / "logs"
        self.logs.mkdir()
        self.journal = folder / "state" / "journal.db"
        self.kubeconfig = folder / "kubeconfig"
        self.outputs: dict[str, bytes] = {}
        self.crashed: list[str] = []
        write_kubeconfig(self.kubeconfig, fleet, echo, canaries)

    def run(self, when: str, line: str) -> Ran:
        """A command line; STORE stands for the store."""
        words = [str(self.store) if word == "STORE" else word for word in line.split()]
        environ = {"RECONCILER_KUBECONFIG": str(self.kubeconfig), "RECONCILER_JOURNAL": str(self.journal)}
        ran = reconciler(*words, home=self.home, environ=environ)
        self.outputs[f"{when}: {line}"] = ran.out + b"\n" + ran.err
        if not ran.is_orderly or b"Usage:" in ran.err:
            self.crashed.append(f"{when}: {line}: {ran.err.decode()[-2000:]}")
        return ran

    def commit(self, when: str) -> str:
        """A revision of the store with new values everywhere."""
        write_store(self.store, store(self.canaries, when))
        return commit_all(self.store, when, new=not (self.store / ".git").exists())

    def edit(self, cluster: str, when: str) -> None:
        """Somebody else applies a Secret by force."""
        path = f"/api/v1/namespaces/{NAMESPACE}/secrets/plain"
        body = edited_by_others(self.canaries, when)
        request = Request(
            method="PATCH", path=path, body=body, content_type="application/apply-patch+yaml",
            query={"fieldManager": "kubectl", "force": "true"}, user_agent="kubectl/1",
        )  # fmt: skip
        answer = self.fleet.call(lambda box: box[cluster].request(request))
        assert answer.status in (200, 201), answer.body

    def daemon(self, when: str, log_format: str, seconds: float) -> None:
        """A daemon that runs for some seconds after it has come up, its log and its pages."""
        log = self.logs / f"{when}-{log_format}"
        arguments = ["run", str(self.store), "--dir", "--kubeconfig", str(self.kubeconfig), "--journal",
                     str(self.journal), "--log-format", log_format, "--listen", "127.0.0.1:0",
                     "--round-log", str(self.journal.with_name("rounds"))]  # fmt: skip
        with log.open("wb") as output, subprocess.Popen(
            [sys.executable, "-m", "reconciler", *arguments],
            env={"PATH": os.environ["PATH"], "HOME": str(self.home), "LC_ALL": "C.UTF-8"},
            cwd=self.home, stdout=output, stderr=subprocess.STDOUT,
        ) as process:  # fmt: skip
            wait_until(lambda: _address(log) is not None, "the daemon to come up", seen=log.read_text)
            time.sleep(seconds)  # rounds and their log lines are the case, as many as come
            for page in ("/", "/status.json", "/metrics", "/readyz", "/livez"):
                found = _page(f"{_address(log)}{page}")
                if found is not None:
                    self.outputs[f"{when}: page {page}"] = found
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=180)
        said = self.outputs[f"{when}: log {log_format}"] = log.read_bytes()
        if b"Traceback" in said or b"this command: a fault of the program" in said or process.returncode:
            self.crashed.append(f"{when}: run: {said.decode()[-3000:]}")

    def files(self) -> dict[str, bytes]:
        """Everything that was left on the disk beside the store and the kubeconfig."""
        places = (self.journal.parent, self.home)
        return {str(file): file.read_bytes() for place in places for file in place.rglob("*") if file.is_file()}


def _address(log: Path) -> str | None:
    """Return where a daemon says that it serves its pages; None before it does."""
    found = re.search(r"Listening.*?(127\.0\.0\.1:\d+)", log.read_text())
    return found and found[1]


def _page(address: str) -> bytes | None:
    try:
        with urllib.request.urlopen(f"http://{address}", timeout=180) as found:
            return bytes(found.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.read()
    except OSError:
        return None


pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scenario]:
    folder = tmp_path_factory.mktemp("secrets")
    canaries = Canaries()
    with background_fleet([ClusterSpec(name=name) for name in CLUSTERS], folder) as fleet:
        target = fleet.call(lambda box: box.servers["m2"].url)
        with Echo(target=target, token=canaries.plant("a token of the kubeconfig")).serving() as echo:
            scenario = Scenario(folder, canaries, fleet, echo)
            _live(scenario)
            yield scenario


def _live(scenario: Scenario) -> None:
    base = scenario.commit("first")
    scenario.run("at first", "diff STORE -o json")
    scenario.run("at first", "apply STORE --yes")
    for line in (*_READING, *_REMEMBERED):
        scenario.run("after apply", line)
    scenario.edit("m1", "by hand")
    scenario.edit("m2", "by hand too")
    for line in ("diff STORE", "diff STORE -o markdown", "diff STORE -o json", "diff STORE -o jsonpatch"):
        scenario.run("after an edit by others", line)
    head = scenario.commit("second")
    for form in ("text", "markdown", "json", "jsonpatch"):
        scenario.run("between revisions", f"diff STORE --base {base} --head {head} -o {form}")
    scenario.run("between revisions", f"diff STORE --base {base} --head {head} --live -o text")
    scenario.echo.status = 422
    scenario.run("second", "apply STORE --yes -o json")
    scenario.edit("m1", "by hand again")
    for status, log_format in ((500, "json"), (403, "text")):
        scenario.echo.status = status
        scenario.commit(f"with {status}")
        scenario.daemon(f"daemon with {status}", log_format, 5)
    for line in _REMEMBERED:
        scenario.run("after the daemon", line)
    (scenario.store / "secrets.yaml").write_text("apiVersion: v1\nkind: Secret\nmetadata: {name: plain}\nx: [\n")
    scenario.run("broken", "validate STORE")
    scenario.run("broken", "diff STORE -o json")
    scenario.run("rebuilt", "journal rebuild STORE")
    scenario.run("rebuilt", "journal export")
    text = scenario.kubeconfig.read_text().replace("token: ", "token: wrong")
    scenario.kubeconfig.write_text(text)
    for line in (
        "doctor STORE",
        "diff STORE",
        "apply STORE --yes",
        "get secrets -A --store STORE",
        "status",
        "clusters STORE",
    ):
        scenario.run("with a wrong token", line)
    scenario.kubeconfig.write_text(text + "  - [broken\n")
    scenario.run("with a broken kubeconfig", "doctor STORE")
    url = scenario.canaries.plant("a password in a Git URL", "https://ann:{}@127.0.0.1:1/fleet.git")
    scenario.run("from a Git URL", f"validate {url}")
    scenario.run("from a Git URL", f"apply {url} --yes")


def test_no_command_crashed(scenario: Scenario) -> None:
    assert scenario.crashed == []


def test_every_planted_value_reached_its_cluster(scenario: Scenario) -> None:
    """Else nothing would be proved: the search finds values where they are meant to be."""

    def live(box: FleetInABox) -> bytes:
        names = ("plain", "encoded", "multi")
        found = [box[cluster].get("Secret", NAMESPACE, name) for cluster in CLUSTERS for name in names]
        return json.dumps([*found, box["m1"].get("ConfigMap", NAMESPACE, "credentials")]).encode()

    found = set(scenario.canaries.leaks(scenario.fleet.call(live)))
    expected = ("stringData", "data", "a value of several lines", "a replaced value", "an added value", *CREDENTIALS)
    assert {f"with 403 {place}" for place in expected} <= found
    assert scenario.echo.refused, "the cluster refused something and quoted it"


def test_no_output_holds_a_planted_value(scenario: Scenario) -> None:
    leaks = {name: found for name, output in scenario.outputs.items() if (found := scenario.canaries.leaks(output))}
    assert leaks == {}


def test_no_file_holds_a_planted_value(scenario: Scenario) -> None:
    """The copy of a directory keeps what stands in no Secret; the cache of parsed files, nothing that is secret."""
    leaks = {
        ("copy" if Path(name).parent.name == "directories" else Path(name).name.partition("-")[0], place)
        for name, content in scenario.files().items()
        for place in scenario.canaries.leaks(content)
    }
    assert {found for found in leaks if found[0] != "copy" or not found[1].endswith(IN_NO_SECRET)} == set()


def test_the_journal_holds_no_value_of_a_secret(scenario: Scenario) -> None:
    """Its rows are compressed, so they are unpacked here. What stands in no Secret is kept as it was applied."""
    with Journal.open(scenario.journal, read_only=True) as journal:
        kept = json.dumps(exported(journal), ensure_ascii=False).encode()
        key = journal.hash_key.hex().encode()
    assert b"hmac:" in kept
    assert key not in kept
    assert [place for place in scenario.canaries.leaks(kept) if not place.endswith(IN_NO_SECRET)] == []


def test_no_object_but_the_own_one_holds_a_planted_value(scenario: Scenario) -> None:
    """The ConfigMap that says who holds the fleet, and the marks on every object."""

    def marks(box: FleetInABox) -> bytes:
        found: list[Any] = [box[cluster].get("ConfigMap", "fleet-system", "fleet-fleet") for cluster in CLUSTERS]
        for body in (body for cluster in CLUSTERS for body in box[cluster].state.sorted("Secret", NAMESPACE)):
            annotations = {k: v for k, v in (body["metadata"].get("annotations") or {}).items() if k != LAST_APPLIED}
            found.append([annotations, body["metadata"].get("labels"), body["metadata"].get("managedFields")])
        return json.dumps(found).encode()

    shown = scenario.fleet.call(marks)
    assert b"fleet.reconciler/owner" in shown
    assert scenario.canaries.leaks(shown) == []


def test_only_the_owner_reads_what_is_kept(scenario: Scenario) -> None:
    assert stat.S_IMODE(scenario.journal.parent.stat().st_mode) == 0o700
    modes = {name: stat.S_IMODE(Path(name).stat().st_mode) for name in scenario.files()}
    assert modes
    assert {name: oct(mode) for name, mode in modes.items() if mode & 0o077} == {}


def test_show_secrets_is_the_only_way_to_see_them(scenario: Scenario) -> None:
    write_store(scenario.store, store(scenario.canaries, "shown"))
    ran = reconciler("render", scenario.store, "--show-secrets", home=scenario.home)
    assert "shown stringData" in scenario.canaries.leaks(ran.out)


def test_no_digest_that_is_kept_lets_a_value_be_guessed(scenario: Scenario) -> None:
    """A digest of the whole manifest would do to try words against, so a Secret's depends on the journal's key."""
    with Journal.open(scenario.journal, read_only=True) as journal:
        rows = [row for cluster in CLUSTERS for row in journal.applied(cluster).values()]
        secrets = {row.manifest_digest for row in rows if row.identity.kind == "Secret"}
    assert secrets
    assert all(digest.startswith("hmac:") for digest in secrets if digest), "a rebuilt journal knows no digest yet"
