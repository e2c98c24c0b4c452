"""`evict`: a person's order that a resource leaves a cluster, also while a daemon holds the journal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.api.binding import TargetCluster
from reconciler.api.ledger import AppliedRow, EvictionRecord
from reconciler.api.refs import GVK, Identity
from reconciler.clock import SystemClock, epoch_s
from reconciler.journal import Journal, SharedOrdersTable
from tests.unit.cli.command_line import APP, Ran, run
from tests.unit.cli.journals import NOW, empty, journal_at, record_round, shop
from tests.yaml_text import load_yaml

APP_MAP = Identity("", "ConfigMap", "demo", "app")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A journal of the app in m1."""
    return journal_at(tmp_path)


def evict(path: Path, *args: str) -> Ran:
    return run("evict", *args, "--journal", str(path))


def evictions(path: Path) -> list[dict[str, Any]]:
    done = evict(path, "-o", "json")
    assert done.code == 0, done.err
    document = json.loads(done.out)
    assert document.keys() == {"version", "evictions"}
    found: list[dict[str, Any]] = document["evictions"]
    return found


@pytest.mark.parametrize("resource", ["cm/app", "ConfigMap/app", "configmaps/app"])
def test_records_who_evicts_what_from_where_and_why(path: Path, resource: str) -> None:
    done = evict(path, resource, "--cluster", "m1", "--reason", "disk 7", "--for", "1h")
    assert (done.code, done.out) == (0, "")
    (found,) = evictions(path)
    assert done.err == (
        f"ConfigMap demo/app leaves m1 as soon as others have it, and stays away until {found['until']}\n"
    )
    assert (found["resource"], found["cluster"], found["reason"]) == ("ConfigMap demo/app", "m1", "disk 7")
    assert "@" in found["who"]
    assert epoch_s(found["until"]) - epoch_s(found["since"]) == 3600
    assert abs(epoch_s(found["since"]) - epoch_s(SystemClock().now())) < 60


def test_it_is_for_ten_minutes_unless_said_otherwise(path: Path) -> None:
    assert evict(path, "cm/app", "--cluster", "m1").code == 0
    (found,) = evictions(path)
    assert epoch_s(found["until"]) - epoch_s(found["since"]) == 600


def test_a_later_order_replaces_an_earlier_one(path: Path) -> None:
    for reason in ("first", "second"):
        assert evict(path, "cm/app", "--cluster", "m1", "--reason", reason).code == 0
    assert [found["reason"] for found in evictions(path)] == ["second"]


def test_lists_what_is_evicted(path: Path) -> None:
    done = evict(path)
    assert (done.code, done.out, done.err) == (0, "", "nothing is evicted\n")
    assert evictions(path) == []
    evict(path, "cm/app", "--cluster", "m1", "--reason", "disk 7")
    (found,) = evictions(path)
    head, row = evict(path).out.splitlines()
    assert head.split() == ["RESOURCE", "CLUSTER", "BY", "UNTIL", "REASON"]
    assert row.split() == ["ConfigMap", "demo/app", "m1", found["who"], found["until"], "disk", "7"]
    assert load_yaml(evict(path, "-o", "yaml").out)["evictions"] == [found]


def test_what_has_ended_is_not_listed(path: Path) -> None:
    record = EvictionRecord(identity=APP_MAP, cluster="m1", since=NOW, until="2020-01-01T00:00:00Z")
    with SharedOrdersTable(path) as book:
        book.evict(record)
        assert evictions(path) == []
        book.evict(replace(record, until=""))
    (found,) = evictions(path)
    assert found["until"] is None


def test_undo_lets_it_come_back(path: Path) -> None:
    evict(path, "cm/app", "--cluster", "m1")
    assert "nothing called cm/app is evicted from m2" in evict(path, "cm/app", "--cluster", "m2", "--undo").err
    assert len(evictions(path)) == 1
    done = evict(path, "cm/app", "--cluster", "m1", "--undo")
    assert (done.code, done.out, done.err) == (0, "", "ConfigMap demo/app may come back to m1\n")
    assert evictions(path) == []
    again = evict(path, "cm/app", "--cluster", "m1", "--undo")
    assert again.code == 1
    assert "nothing called cm/app is evicted from m1" in again.err


def test_undo_finds_what_is_placed_nowhere_any_more(path: Path) -> None:
    evict(path, "cm/app", "--cluster", "m1")
    with Journal.open(path) as journal:
        journal.record_bindings("r2", {})
    assert evict(path, "cm/app", "--cluster", "m1", "--undo").code == 0
    assert evictions(path) == []


def test_works_while_a_daemon_holds_the_journal(path: Path) -> None:
    with Journal.open(path) as daemon:
        version = daemon.data_version
        assert evict(path, "cm/app", "--cluster", "m1").code == 0
        assert [record.identity for record in daemon.evictions()] == [APP_MAP]
        assert daemon.data_version != version


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (("cm/app",), 2, "name the cluster that it leaves: --cluster NAME"),
        (("cm/none", "--cluster", "m1"), 1, "nothing called cm/none is placed anywhere"),
        (
            ("cm/app", "--cluster", "m1", "-n", "other"),
            1,
            "nothing called cm/app in namespace other is placed anywhere",
        ),
        (("cm/app", "--cluster", "m2"), 1, "ConfigMap demo/app is not in m2; it is in m1"),
        (("cm/app", "--cluster", "m9"), 1, "ConfigMap demo/app is not in m9; it is in m1"),
        (("cm/app", "--cluster", "m1", "--for", "soon"), 1, "'soon' is no span of time"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_an_order_that_means_nothing_is_refused(path: Path, args: tuple[str, ...], code: int, message: str) -> None:
    done = evict(path, *args)
    assert (done.code, message in done.err) == (code, True), done.err
    assert evictions(path) == []


def test_a_name_in_two_namespaces_must_be_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    fleet = shop(more=APP.replace("demo", "test"))
    with Journal.open(path) as journal:
        record_round(journal, fleet, {name: empty(name) for name in fleet.clusters})
        known = journal.previous_placements()
        placed = {**known, Identity("", "ConfigMap", "test", "app"): replace(known[APP_MAP],
                  identity=Identity("", "ConfigMap", "test", "app"))}  # fmt: skip
        journal.record_bindings("r2", placed)
    done = evict(path, "cm/app", "--cluster", "m1")
    assert done.code == 1
    assert "cm/app may be: ConfigMap demo/app, ConfigMap test/app; name the namespace with -n" in done.err
    assert evict(path, "cm/app", "--cluster", "m1", "-n", "test").code == 0
    assert [found["resource"] for found in evictions(path)] == ["ConfigMap test/app"]


def applied(path: Path, identity: Identity, cluster: str, **fields: Any) -> None:
    """A copy that we wrote, as the journal remembers it."""
    row = AppliedRow(cluster=cluster, gvk=GVK(identity.group, "v1", identity.kind), identity=identity,
                     **{"policy": "PropagationPolicy demo/app", **fields})  # fmt: skip
    with Journal.open(path) as journal:
        journal.record_applied([row])


def test_a_copy_that_no_placement_names_any_more_can_be_evicted(path: Path) -> None:
    applied(path, APP_MAP, "m2")
    assert "it is in m1, m2" in evict(path, "cm/app", "--cluster", "m3").err
    done = evict(path, "cm/app", "--cluster", "m2")
    assert done.code == 0, done.err


def test_an_order_can_be_given_again_though_the_copy_has_gone(path: Path) -> None:
    evict(path, "cm/app", "--cluster", "m1")
    with Journal.open(path) as journal:
        known = journal.previous_placements()[APP_MAP]
        journal.patch_bindings("r2", {APP_MAP: replace(known, targets=(TargetCluster("m2"),))})
    assert evict(path, "cm/app", "--cluster", "m1", "--reason", "still").code == 0
    assert [found["reason"] for found in evictions(path)] == ["still"]


@pytest.mark.parametrize(
    ("identity", "fields"),
    [(APP_MAP, {"dependency": True}), (Identity("", "Namespace", "", "demo"), {"policy": ""})],
    ids=["dependency", "Namespace"],
)
def test_what_follows_others_goes_with_these(path: Path, identity: Identity, fields: dict[str, Any]) -> None:
    applied(path, identity, "m1", **fields)
    done = evict(path, f"{identity.kind}/{identity.name}", "--cluster", "m1")
    assert done.code == 1
    assert f"{identity} goes where what needs it goes; evict that from m1" in done.err
    assert evictions(path) == []


def test_a_namespace_that_is_used_as_it_is_goes_with_what_is_in_it(path: Path) -> None:
    namespace = Identity("", "Namespace", "", "demo")
    with Journal.open(path) as journal:
        assert namespace in journal.previous_placements()
        journal.remove_applied("m1", [namespace])
    done = evict(path, "ns/demo", "--cluster", "m1")
    assert done.code == 1
    assert f"{namespace} goes where what needs it goes; evict that from m1" in done.err


def test_status_shows_it(path: Path) -> None:
    evict(path, "cm/app", "--cluster", "m1", "--reason", "disk 7")
    done = run("status", "--journal", str(path), "-o", "json")
    (found,) = json.loads(done.out)["constraints"]
    assert (found["tick"], found["cluster"], found["excludes"]) == ("eviction", "m1", True)
    assert found["reason"].endswith(": disk 7")
