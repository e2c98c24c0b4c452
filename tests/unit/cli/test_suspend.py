"""`suspend` and `resume`: a person's order, also while a daemon holds the journal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reconciler.clock import SystemClock, epoch_s
from reconciler.journal import Journal, SharedOrdersTable
from tests.unit.cli.command_line import Ran, run
from tests.unit.cli.journals import journal_at


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return journal_at(tmp_path)


def suspended(path: Path) -> list[dict[str, Any]]:
    done = run("suspend", "--journal", str(path), "-o", "json")
    assert done.code == 0, done.err
    found: list[dict[str, Any]] = json.loads(done.out)["suspensions"]
    return found


def suspend(path: Path, *args: str) -> Ran:
    return run("suspend", *args, "--reason", "incident 7", "--journal", str(path))


@pytest.mark.parametrize(
    ("scope", "written"),
    [
        (("fleet",), "fleet"),
        (("cluster", "m1"), "cluster m1"),
        (("cm/app",), "ConfigMap demo/app"),
        (("ConfigMap/app", "-n", "demo"), "ConfigMap demo/app"),
        (("configmaps", "app"), "ConfigMap demo/app"),
        (("ns/demo",), "Namespace demo"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_scope_is_written_as_plans_look_it_up(path: Path, scope: tuple[str, ...], written: str) -> None:
    done = suspend(path, *scope)
    assert (done.code, done.out) == (0, "")
    assert done.err == f"suspended {written}; 'reconciler resume' ends it\n"
    found = suspended(path)
    assert [(entry["scope"], entry["reason"], entry["until"]) for entry in found] == [(written, "incident 7", None)]
    assert "@" in found[0]["who"]
    assert run("resume", *scope, "--journal", str(path)).err == f"resumed {written}\n"
    assert suspended(path) == []


@pytest.mark.parametrize(
    ("scope", "message"),
    [
        (("m1",), "m1 is no scope; write fleet, cluster NAME, or KIND/NAME -n NAMESPACE"),
        (("cluster", "m9"), "the journal knows no cluster m9; it knows m1, m2"),
        (("cluster",), "cluster is no scope"),
        (("cm/none",), "the journal knows nothing called cm/none"),
        (("cm/app", "-n", "other"), "the journal knows nothing called cm/app in namespace other"),
    ],
    ids=lambda value: "" if isinstance(value, str) else " ".join(value),
)
def test_a_scope_that_means_nothing_is_refused(path: Path, scope: tuple[str, ...], message: str) -> None:
    done = suspend(path, *scope)
    assert done.code == 1
    assert message in done.err
    assert suspended(path) == []


def test_works_while_a_daemon_holds_the_journal(path: Path) -> None:
    with Journal.open(path) as daemon:
        version = daemon.data_version
        assert suspend(path, "fleet").code == 0
        assert [record.scope for record in daemon.suspensions()] == ["fleet"]
        assert daemon.data_version != version
        daemon.record_round("next", "2026-11-21T12:00:00Z", {})
        assert run("resume", "fleet", "--journal", str(path)).code == 0
        assert daemon.suspensions() == ()


def test_an_end_is_a_span_or_a_time(path: Path) -> None:
    before = epoch_s(SystemClock().now())
    assert "until" in suspend(path, "fleet", "--for", "1h30m").err
    assert 5400 <= epoch_s(suspended(path)[0]["until"]) - before <= 5460
    suspend(path, "fleet", "--until", "2999-01-01T02:00:00+02:00")
    assert [entry["until"] for entry in suspended(path)] == ["2999-01-01T00:00:00Z"]


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (("--for", "soon"), 1, "'soon' is no span of time"),
        (("--for", "2"), 1, "'2' is no span of time"),
        (("--until", "tomorrow"), 1, "'tomorrow' is no time"),
        (("--until", "2999-01-01T00:00:00"), 1, "is no time"),
        (("--until", "2020-01-01T00:00:00Z"), 1, "2020-01-01T00:00:00Z has passed"),
        (("--for", "2h", "--until", "2999-01-01T00:00:00Z"), 2, "give --for or --until, not both"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_an_end_that_means_nothing_is_refused(path: Path, args: tuple[str, ...], code: int, message: str) -> None:
    done = suspend(path, "fleet", *args)
    assert done.code == code
    assert message in done.err
    assert suspended(path) == []


def test_an_expired_suspension_is_not_listed(path: Path) -> None:
    suspend(path, "fleet", "--until", "2999-01-01T00:00:00Z")
    with Journal.open(path) as journal:
        record = journal.suspensions()[0]
        journal.suspend(type(record)(scope=record.scope, until="2020-01-01T00:00:00Z"))
    assert suspended(path) == []
    assert run("suspend", "--journal", str(path)).err == "nothing is suspended\n"


def test_a_reason_is_wanted(path: Path) -> None:
    done = run("suspend", "fleet", "--journal", str(path))
    assert done.code == 2
    assert "--reason" in done.err


def test_the_list_is_a_table(path: Path) -> None:
    suspend(path, "fleet")
    header, row = run("suspend", "--journal", str(path)).out.splitlines()
    assert header.split() == ["SCOPE", "BY", "UNTIL", "REASON"]
    assert row.split()[0] == "fleet"
    assert row.endswith("resumed   incident 7")


def test_resume_ends_all_when_told_so(path: Path) -> None:
    suspend(path, "fleet")
    suspend(path, "cluster", "m1")
    assert run("resume", "--all", "--journal", str(path)).err == "resumed cluster m1\nresumed fleet\n"
    assert suspended(path) == []
    assert run("resume", "--all", "--journal", str(path)) == (0, "", "nothing is suspended\n")


def test_resume_of_what_is_not_suspended_names_what_is(path: Path) -> None:
    suspend(path, "cluster", "m1")
    done = run("resume", "fleet", "--journal", str(path))
    assert (done.code, done.err) == (1, "error: fleet is not suspended; suspended: cluster m1\n")


@pytest.mark.parametrize("args", [(), ("fleet", "--all")], ids=["nothing", "both"])
def test_resume_wants_a_scope_or_all(path: Path, args: tuple[str, ...]) -> None:
    assert run("resume", *args, "--journal", str(path)).code == 2


def test_only_orders_can_be_written_beside_a_daemon(path: Path) -> None:
    with SharedOrdersTable(path) as book:
        orders = {"ask", "last_order", "suspend", "resume", "suspensions", "evict", "readmit", "evictions", "led_by"}
        assert {name for name in dir(book) if not name.startswith("_")} == orders
