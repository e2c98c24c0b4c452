"""The work of operators with the command line, on real clusters: look, stop, resume, rebuild, take over, adopt."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.journal import Journal
from tests.conftest import ThreeClusters
from tests.e2e.command_line import CommandLine
from tests.e2e.fleet_on_clusters import FleetOnClusters, writes_to
from tests.yaml_text import load_documents

pytestmark = pytest.mark.apiserver


@pytest.fixture
def fleet(tmp_path: Path, three_clusters: ThreeClusters) -> Iterator[FleetOnClusters]:
    fleet = FleetOnClusters(tmp_path, three_clusters)
    yield fleet
    for cluster in fleet.clusters.values():
        cluster.kubectl("delete", "namespace", fleet.namespace, "--ignore-not-found", "--wait=false")


@pytest.fixture
def line(fleet: FleetOnClusters) -> CommandLine:
    return CommandLine(fleet)


def put_app(fleet: FleetOnClusters, *clusters: str, keep: bool = False) -> None:
    policy = fleet.policy("app", "ConfigMap", clusters=list(clusters), keep=keep)
    fleet.write("app", fleet.config_map("app", v="1"), policy)


def marks(fleet: FleetOnClusters) -> dict[str, int]:
    return {name: cluster.mark() for name, cluster in fleet.clusters.items()}


def writes(fleet: FleetOnClusters, since: dict[str, int]) -> dict[str, list[str]]:
    """Our writes by cluster; clusters without any are left out."""
    found = {name: writes_to(cluster, since[name]) for name, cluster in fleet.clusters.items()}
    return {name: entries for name, entries in found.items() if entries}


def test_a_reader_that_goes_away_does_not_stop_what_was_agreed_to(fleet: FleetOnClusters, line: CommandLine) -> None:
    put_app(fleet, "m1", "m2")
    for version in ("1", "2"):
        fleet.write("app", fleet.config_map("app", v=version), fleet.policy("app", "ConfigMap", clusters=["m1", "m2"]))
        reader, writer = os.pipe()
        os.close(reader)
        args = [sys.executable, "-m", "reconciler", "apply", line.store, "--yes"]
        done = subprocess.run(args, env=line.environment, stdin=subprocess.DEVNULL, stdout=writer, stderr=writer,
                              check=False)  # fmt: skip
        os.close(writer)
        assert done.returncode == 0
        assert line.json("diff", line.store)["changes"] == []


def test_nothing_is_deleted_after_a_lost_journal_before_one_complete_round(
    fleet: FleetOnClusters, line: CommandLine
) -> None:
    put_app(fleet, "m1", "m2")
    fleet.write("other", fleet.config_map("other"), fleet.policy("other", "ConfigMap", clusters=["m1"], keep=False))
    line.apply()
    with Journal.open(line.journal, read_only=True) as journal:
        first, ledger, placements = journal.uuid, journal.ledger(), journal.previous_placements()
    for part in line.journal.parent.glob("journal.db*"):
        part.unlink()
    fleet.write("other")

    message = line.refused("apply", line.store, "--yes", "-o", "json")
    assert first in message
    assert "--takeover" in message
    assert message.count("\n") == 1

    rebuilt = line.run("journal", "rebuild", line.store)
    assert rebuilt.returncode == 1
    assert f"held by journal {first}" in rebuilt.stderr
    before = marks(fleet)
    line.done("journal", "rebuild", line.store, "--takeover")
    written = {entry.split(" ", 1)[1] for found in writes(fleet, before).values() for entry in found}
    assert written <= {f"configmaps fleet-{fleet.fleet}", "namespaces fleet-system"}
    with Journal.open(line.journal, read_only=True) as journal:
        again = journal.ledger()
        assert {name: rows.keys() for name, rows in again.items()} == {
            name: rows.keys() for name, rows in ledger.items()
        }
        for name, rows in ledger.items():
            for identity, row in rows.items():
                found = again[name][identity]
                assert (found.uid, found.policy, found.keep, found.flavor) == (
                    row.uid,
                    row.policy,
                    row.keep,
                    row.flavor,
                )
        known = {identity: placement.targets for identity, placement in journal.previous_placements().items()}
        assert known == {identity: placement.targets for identity, placement in placements.items()}

    before = marks(fleet)
    line.apply()
    assert writes(fleet, before) == {}
    assert fleet.live("m1", "configmap", "other") is not None
    held = line.json("status")["held"]
    assert [(entry["action"], entry["resource"]["name"]) for entry in held] == [("delete", "other")]
    assert "complete round" in held[0]["why"]
    line.apply()
    assert writes(fleet, before) == {"m1": [f"patch configmaps fleet-{fleet.fleet}", "delete configmaps other"]}


def test_the_journal_that_lost_the_fleet_is_refused(fleet: FleetOnClusters, line: CommandLine, tmp_path: Path) -> None:
    put_app(fleet, "m1")
    line.apply()
    other = CommandLine(fleet, RECONCILER_JOURNAL=str(tmp_path / "other.db"))
    put_app(fleet, "m1", "m2")
    assert "is held by journal" in other.refused("apply", other.store, "--yes", "-o", "json")
    other.done("journal", "rebuild", other.store, "--takeover")
    assert "is held by journal" in line.refused("apply", line.store, "--yes", "-o", "json")
    other.apply()
    assert fleet.live("m2", "configmap", "app") is not None


def test_apply_without_a_terminal_wants_yes(fleet: FleetOnClusters, line: CommandLine) -> None:
    put_app(fleet, "m1")
    before = marks(fleet)
    process = line.run("apply", line.store)
    assert process.returncode == 1
    assert "--yes" in process.stderr
    assert "app" in process.stdout
    assert writes(fleet, before) == {}


def test_secrets_are_imported_only_when_asked_for(fleet: FleetOnClusters, line: CommandLine) -> None:
    m1 = fleet.clusters["m1"]
    m1.kubectl("create", "namespace", fleet.namespace)
    m1.kubectl("create", "secret", "generic", "keys", "--from-literal=key=canary", "-n", fleet.namespace)
    arguments = ("import", "secret", "-n", fleet.namespace, "--cluster", "m1", "--store", line.store)
    message = line.refused(*arguments)
    assert "--include-secrets" in message
    process = line.run(*arguments, "--include-secrets")
    assert "warning" in process.stderr
    documents = load_documents(process.stdout)
    assert documents[0]["data"] == {"key": "Y2FuYXJ5"}
    assert documents[1]["spec"]["conflictResolution"] == "Overwrite"


def test_kubectl_amc_prints_the_table_of_the_pages(
    fleet: FleetOnClusters, line: CommandLine, kubernetes_binaries: Path, tmp_path: Path
) -> None:
    fleet.write("web", fleet.deployment("web-demo"), fleet.policy("web-demo", "Deployment", clusters=["m1", "m2"]))
    line.apply()
    plugin = Path(sys.executable).with_name("kubectl-amc")
    folder = tmp_path / "bin"
    folder.mkdir()
    shutil.copy(kubernetes_binaries / "kubectl", folder / "kubectl")
    environment = {**line.environment, "RECONCILER_STORE": line.store,
                   "PATH": os.pathsep.join([str(folder), str(plugin.parent), os.environ.get("PATH", "")])}  # fmt: skip
    process = subprocess.run(
        ["kubectl", "amc", "get", "deploy", "web-demo", "-n", fleet.namespace, "-M"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    header, *rows = process.stdout.splitlines()
    assert header.split() == ["NAME", "CLUSTER", "READY", "UP-TO-DATE", "AVAILABLE", "AGE", "ADOPTION"]
    assert [row.split()[:2] for row in rows] == [["web-demo", "m1"], ["web-demo", "m2"]]
    assert {row.split()[-1] for row in rows} == {"Y"}
