"""`status`: what the last round left, read while a daemon may run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.api.binding import Constraint, Tick
from reconciler.api.ledger import Event, SuspensionRecord
from reconciler.api.refs import GVK, Identity
from reconciler.journal import Journal
from tests.fakes.store_trees import commit_all
from tests.unit.cli.command_line import run, write_store
from tests.unit.cli.journals import LATER, NOW, ORPHAN, down, empty, journal_at, record_round, shop
from tests.yaml_text import load_yaml

FAR = "2999-01-01T00:00:00Z"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return journal_at(tmp_path)


def status_of(path: Path, *args: str) -> Any:
    done = run("status", "--journal", str(path), "-o", "json", *args)
    assert done.code == 0, done.err
    return json.loads(done.out)


def some(counts: dict[str, int]) -> dict[str, int]:
    """Return the counts that are not zero."""
    return {word: count for word, count in counts.items() if count}


def test_counts_objects_by_what_keeps_them(path: Path) -> None:
    document = status_of(path)
    assert (document["version"], document["round"], document["time"], document["complete"]) == (1, 1, NOW, True)
    assert [(cluster["name"], cluster["up"], some(cluster["objects"])) for cluster in document["clusters"]] == [
        ("m1", True, {"synced": 2}),
        ("m2", True, {}),
    ]


def test_is_read_while_a_daemon_holds_the_journal(path: Path) -> None:
    with Journal.open(path):
        assert str(status_of(path)["writer"]).startswith("process ")
    assert status_of(path)["writer"] is None


def test_a_journal_without_a_round_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    Journal.open(path).close()
    done = run("status", "--journal", str(path))
    assert done.code == 1
    assert done.err == f"error: {path}: no round has been recorded yet; 'reconciler apply' or 'run' makes the first\n"


def test_nothing_is_known_of_the_objects_of_a_cluster_that_is_down(path: Path) -> None:
    with Journal.open(path) as journal:
        record_round(journal, members={"m1": down("m1"), "m2": empty("m2")}, now=LATER)
    first, second = status_of(path)["clusters"]
    assert (first["up"], first["why"], first["lastSuccess"]) == (False, "connection refused", NOW)
    assert (some(first["objects"]), some(first["health"])) == ({"unknown": 2}, {"Unknown": 2})
    assert (second["up"], second["lastSuccess"]) == (True, LATER)
    assert "connection refused" in run("status", "--journal", str(path)).out


def test_a_round_of_later_than_now_is_remarked_upon(path: Path) -> None:
    """The clock was set back: `seen` would say that it is fresh."""
    assert run("status", "--journal", str(path)).err == ""
    with Journal.open(path) as journal:
        record_round(journal, now=FAR)
    assert "ahead of the clock here: that was set back, or is slow" in run("status", "--journal", str(path)).err


def test_a_first_round_without_a_cluster_is_not_complete(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    with Journal.open(path) as journal:
        assert record_round(journal, members={"m1": down("m1"), "m2": empty("m2")}) == 0
        assert journal.complete_rounds() == 0
        assert record_round(journal, now=LATER) == 1
    with Journal.open(tmp_path / "other.db") as journal:
        # A round that was told to leave a cluster out proves nothing about it.
        assert record_round(journal, members={"m1": empty("m1")}) == 0


def test_names_what_failed_and_why(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    with Journal.open(path) as journal:
        record_round(journal, errors={"ConfigMap": "a webhook says no"})
    document = status_of(path)
    assert some(document["clusters"][0]["objects"]) == {"synced": 1, "failed": 1}
    assert [(entry["resource"]["name"], entry["error"]) for entry in document["failed"]] == [
        ("app", "a webhook says no")
    ]
    assert "create ConfigMap demo/app @ m1: a webhook says no" in run("status", "--journal", str(path)).out


def test_an_error_that_quotes_a_secret_is_masked(tmp_path: Path) -> None:
    secret = """\
apiVersion: v1
kind: Secret
metadata: {name: keys, namespace: demo}
stringData: {password: hunter2-canary}
---
apiVersion: policy.one.alibabacloud.com/v1alpha1
kind: PropagationPolicy
metadata: {name: keys, namespace: demo}
spec:
  resourceSelectors: [{apiVersion: v1, kind: Secret, name: keys}]
  placement: {clusterAffinity: {clusterNames: [m1]}}
"""
    path = tmp_path / "journal.db"
    member = empty("m1")
    kinds = member.kinds | {("", "Secret")}
    keys = Identity("", "Secret", "demo", "keys")
    member = replace(
        member, kinds=kinds, served={**member.served, GVK("", "v1", "Secret"): True}, absent=member.absent | {keys}
    )
    with Journal.open(path) as journal:
        record_round(
            journal, shop(keys=secret), {"m1": member, "m2": empty("m2")},
            errors={"Secret": "data.password: hunter2-canary (aHVudGVyMi1jYW5hcnk=) is too short"},
        )  # fmt: skip
    shown = run("status", "--journal", str(path), "-o", "json").out + run("status", "--journal", str(path)).out
    shown += run("history", "--journal", str(path), "-o", "json").out
    assert "is too short" in shown
    assert "hunter2-canary" not in shown
    assert "aHVudGVyMi1jYW5hcnk" not in shown


def test_lists_policies_without_anything_and_templates_without_a_policy(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    idle = """\
apiVersion: policy.one.alibabacloud.com/v1alpha1
kind: PropagationPolicy
metadata: {name: idle, namespace: demo}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: none}]
"""
    with Journal.open(path) as journal:
        record_round(journal, shop(orphan=ORPHAN, idle=idle))
    document = status_of(path)
    assert [(entry["policy"], entry["resources"], entry["clusters"]) for entry in document["policies"]] == [
        ("PropagationPolicy demo/app", 1, ["m1"]),
        ("PropagationPolicy demo/idle", 0, []),
    ]
    assert [resource["name"] for resource in document["unclaimed"]] == ["orphan"]
    assert "ConfigMap demo/orphan" in run("status", "--journal", str(path)).out


def test_shows_suspensions_in_force_and_constraints(path: Path) -> None:
    identity = Identity("apps", "Deployment", "demo", "web")
    with Journal.open(path) as journal:
        journal.suspend(SuspensionRecord(scope="fleet", reason="incident", who="li@host"))
        journal.suspend(SuspensionRecord(scope="cluster m1", reason="old", until="2020-01-01T00:00:00Z"))
        journal.record_constraints(
            (
                Constraint(identity=identity, cluster="m1", replicas_max=2, reason="4 pods cannot be scheduled"),
                Constraint(identity=identity, cluster="m2", replicas_max=0, reason="unhealthy", excludes=True,
                           until=FAR, tick=Tick.FAILOVER),
                Constraint(identity=identity, cluster="m3", replicas_max=0, reason="over", until=LATER),
            )
        )  # fmt: skip
    document = status_of(path)
    assert [entry["scope"] for entry in document["suspensions"]] == ["fleet"]
    assert [entry["cluster"] for entry in document["constraints"]] == ["m1", "m2"]
    text = run("status", "--journal", str(path)).out
    assert "fleet by li@host until resumed: incident" in text
    assert "Deployment demo/web @ m1: at most 2 replicas, 4 pods cannot be scheduled" in text
    assert f"Deployment demo/web @ m2: excluded by failover until {FAR}, unhealthy" in text


def test_released_objects_are_listed_until_they_are_ours_again(path: Path) -> None:
    def event(kind: str, subject: str) -> Event:
        return Event(round=2, time=LATER, kind=kind, subject=subject, data={"revision": "abc", "cause": "removed"})

    with Journal.open(path) as journal:
        journal.record_events([event("released", "ConfigMap demo/a @ m1"), event("released", "ConfigMap demo/b @ m1")])
        journal.record_events([event("adopted", "ConfigMap demo/a @ m1")])
        # Nothing of this makes it ours again.
        others = ("object-refused", "way-is-free", "evicted", "readmitted", "failed", "constrained")
        journal.record_events([event(kind, "ConfigMap demo/b @ m1") for kind in others])
    done = run("status", "--released", "--journal", str(path))
    assert done.out.splitlines()[1].split() == ["ConfigMap", "demo/b", "@", "m1", LATER, "abc", "removed"]
    assert len(done.out.splitlines()) == 2
    assert [entry["subject"] for entry in status_of(path)["released"]] == ["ConfigMap demo/b @ m1"]


def test_nothing_released_says_so_on_stderr(path: Path) -> None:
    done = run("status", "--released", "--journal", str(path))
    assert (done.code, done.out, done.err) == (0, "", "nothing has been released\n")


def test_names_the_commit_when_the_store_is_a_repository(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    folder.mkdir()
    store = write_store(folder)
    commit = commit_all(folder, "Bring the app", new=True)
    path = tmp_path / "journal.db"
    with Journal.open(path) as journal:
        record_round(journal, replace(shop(), revision=commit))
    assert status_of(path)["commit"] is None
    assert status_of(path, store)["commit"] == {"author": "Ann", "subject": "Bring the app"}
    assert "Bring the app (Ann)" in run("status", store, "--journal", str(path)).out
    with Journal.open(path) as journal:
        record_round(journal, replace(shop(), revision=commit), source=store)
    assert status_of(path)["commit"] == {"author": "Ann", "subject": "Bring the app"}


@pytest.mark.parametrize("forbidden", [".", ".git"])
def test_a_store_that_cannot_be_read_hides_nothing_that_the_journal_knows(
    tmp_path: Path, as_nobody: Path, forbidden: str
) -> None:
    (store := as_nobody / "store").mkdir()
    write_store(store)
    commit = commit_all(store, new=True)
    path = as_nobody / "journal.db"
    with Journal.open(path) as journal:
        record_round(journal, replace(shop(), revision=commit))
    options = ("status", str(store), "--journal", str(path))
    assert run(*options).err == ""
    (store / forbidden).chmod(0)
    done = run(*options)
    (store / forbidden).chmod(0o700)
    assert done.code == 0 and "revision" in done.out
    assert done.err.startswith(f"the store cannot be read, and this is what the journal knows: {store}")
    commit_all(store, new=True)
    assert run(*options).err == "", "a store without the commit was read"


def test_a_password_in_the_name_of_the_store_is_not_kept(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    with Journal.open(path) as journal:
        record_round(journal, source="https://bot:hunter2@git.example.com/fleet.git")
    assert "hunter2" not in run("status", "--journal", str(path), "-o", "json").out
    assert b"hunter2" not in path.read_bytes()


def test_yaml_is_the_same_document(path: Path) -> None:
    assert load_yaml(run("status", "--journal", str(path), "-o", "yaml").out) == status_of(path)


def test_long_lists_are_cut_unless_wide(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    many = "---\n".join(ORPHAN.replace("orphan", f"orphan-{index:02}") for index in range(25))
    with Journal.open(path) as journal:
        record_round(journal, shop(orphan=many))
    text = run("status", "--journal", str(path)).out
    assert "and 5 more; -o wide shows all" in text
    assert "orphan-24" not in text
    assert "orphan-24" in run("status", "--journal", str(path), "-o", "wide").out
