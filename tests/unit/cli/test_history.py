"""`history`: the audit trail, newest first."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from reconciler.api.ledger import DriftOutcome, Event, EventKind
from reconciler.cli import history
from reconciler.journal import Journal
from reconciler.store.git import parse_git_url
from reconciler.store.url_source import clone_of
from tests.fakes.store_trees import commit_all
from tests.unit.cli.command_line import run, write_store
from tests.unit.cli.journals import NOW, journal_at, record_round, shop


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return journal_at(tmp_path)


def event(kind: str, subject: str, data: dict[str, object] | None = None) -> Event:
    return Event(round=2, time=NOW, kind=kind, subject=subject, data=data or {})


def events_of(path: Path, *args: str) -> list[dict[str, object]]:
    done = run("history", *args, "--journal", str(path), "-o", "json")
    assert done.code == 0, done.err
    document = json.loads(done.out)
    assert document["version"] == 1
    events: list[dict[str, object]] = document["events"]
    return events


def test_tells_decisions_and_writes_with_their_revision(path: Path) -> None:
    events = events_of(path)
    assert [(event["event"], event["subject"], event["cluster"]) for event in events] == [
        ("created", "ConfigMap demo/app", "m1"),
        ("created", "Namespace demo", "m1"),
        ("placed", "Namespace demo", None),
        ("placed", "ConfigMap demo/app", None),
    ]
    assert {event["revision"] for event in events} == {"test"}
    assert {event["time"] for event in events} == {NOW}
    assert events[3]["after"] == [{"cluster": "m1", "replicas": None}]
    assert (events[0]["cause"], events[0]["source"]) == ("declared", "app.yaml:1")


def test_one_resource_by_short_name_in_every_cluster(path: Path) -> None:
    assert [event["event"] for event in events_of(path, "cm/app")] == ["created", "placed"]
    assert [event["event"] for event in events_of(path, "ConfigMap/app", "-n", "demo")] == ["created", "placed"]


def test_a_name_that_is_the_beginning_of_another_stays_apart(path: Path) -> None:
    with Journal.open(path) as journal:
        journal.record_events([event("created", "ConfigMap demo/app-2 @ m1")])
    assert [event["subject"] for event in events_of(path, "cm/app")] == ["ConfigMap demo/app"] * 2


def test_a_resource_that_is_gone_still_has_its_history(path: Path) -> None:
    with Journal.open(path) as journal:
        journal.record_events([event("deleted", "ConfigMap demo/gone @ m1", {"cause": "removed"})])
    assert [event["event"] for event in events_of(path, "cm/gone")] == ["deleted"]


def test_what_the_journal_never_saw_is_an_error(path: Path) -> None:
    done = run("history", "cm/none", "--journal", str(path))
    assert (done.code, done.out) == (1, "")
    assert done.err == "error: the journal knows nothing called cm/none\n"


def test_a_name_in_two_namespaces_wants_a_namespace(path: Path) -> None:
    with Journal.open(path) as journal:
        journal.record_events([event("created", "ConfigMap other/app @ m1")])
    assert "ConfigMap/app -n demo, ConfigMap/app -n other" in run("history", "cm/app", "--journal", str(path)).err
    assert [event["event"] for event in events_of(path, "cm/app", "-n", "other")] == ["created"]


def test_the_newest_come_first_and_no_more_than_asked_for(path: Path) -> None:
    assert [event["event"] for event in events_of(path, "--limit", "1")] == ["created"]
    assert run("history", "--limit", "0", "--journal", str(path)).code == 2


def test_authors_come_from_the_repository(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    folder.mkdir()
    store = write_store(folder)
    commit = commit_all(folder, "Bring the app", new=True)
    path = tmp_path / "journal.db"
    with Journal.open(path) as journal:
        record_round(journal, replace(shop(), revision=commit))
    assert {event["author"] for event in events_of(path)} == {None}
    assert {event["author"] for event in events_of(path, "--store", store)} == {"Ann"}
    assert {event["commit"] for event in events_of(path, "--store", store)} == {"Bring the app"}
    assert "Bring the app" in run("history", "--store", store, "--journal", str(path), "-o", "wide").out


def test_authors_of_a_url_come_from_the_clone_that_the_service_keeps_beside_the_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    url = parse_git_url("https://git.example.com/fleet.git")
    clone = clone_of(url, tmp_path / "state/git")
    clone.mkdir(parents=True)
    commit = commit_all(clone, "Bring the app", new=True)
    path = tmp_path / "state/journal.db"
    with Journal.open(path) as journal:
        record_round(journal, replace(shop(), revision=commit), source=str(url))
    assert {event["author"] for event in events_of(path)} == {"Ann"}


def test_a_store_that_is_gone_only_costs_the_authors(path: Path) -> None:
    assert {event["author"] for event in events_of(path, "--store", "/nowhere")} == {None}


def test_the_table_says_what_moved_and_what_failed(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    with Journal.open(path) as journal:
        record_round(journal, errors={"ConfigMap": "a webhook\nsays no"})
        moved = {"before": [{"cluster": "m1", "replicas": 3}], "after": [{"cluster": "m2", "replicas": 3}]}
        journal.record_events([Event(round=2, time=NOW, kind="placed", subject="Deployment demo/web", data=moved)])
    lines = run("history", "--journal", str(path)).out.splitlines()
    assert lines[0].split() == ["TIME", "REVISION", "WHO", "EVENT", "SUBJECT", "CLUSTER", "DETAIL"]
    assert lines[1].endswith("m1=3 to m2=3")
    assert any(line.endswith(r"create: a webhook\nsays no") for line in lines)


def test_tells_when_constraints_came_and_went(path: Path) -> None:
    cap = {"tick": "descheduling", "replicasMax": 1, "why": "2 pods find no node"}
    with Journal.open(path) as journal:
        journal.record_events([event(kind, "Deployment demo/web @ m1", cap) for kind in ("constrained", "freed")])
    found = events_of(path, "deploy/web")
    assert [(one["event"], one["cluster"], one["time"]) for one in found] == [
        ("freed", "m1", NOW),
        ("constrained", "m1", NOW),
    ]
    assert "2 pods find no node" in run("history", "deploy/web", "--journal", str(path)).out


def test_an_empty_history_says_so_on_stderr(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    Journal.open(path).close()
    assert run("history", "--journal", str(path)) == (0, "", "nothing has happened yet\n")
    assert events_of(path) == []


def at(minute: int, kind: str, subject: str, **data: object) -> Event:
    return Event(round=0, time=f"2026-11-21T12:{minute:02}:00Z", kind=kind, subject=subject, data=data)


LATER = (
    at(1, "cluster-away", "cluster m1", why="connection refused"),
    at(2, "updated", "Deployment other/web @ m1", revision="r", cause="declared"),
    at(3, "evicted", "ConfigMap demo/app @ m1", who="li@host", why="a broken node"),
    at(
        4,
        "placed",
        "ConfigMap demo/app",
        revision="r",
        who="li@host",
        before=[],
        after=[{"cluster": "m2", "replicas": None}],
    ),
    at(5, "drift", "ConfigMap demo/app @ m2", revision="r", cause="drift", who="kubectl", outcome="healed"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("options", "kinds"),
    [
        ((), ["drift", "placed", "evicted", "updated", "cluster-away", "created", "created", "placed", "placed"]),
        (("--since", "2026-11-21T12:00:00Z"), ["drift", "placed", "evicted", "updated", "cluster-away"]),
        (("--since", "2026-11-21T13:00:00+01:00", "-n", "demo"), ["drift", "placed", "evicted"]),
        (("--cluster", "m1", "--since", "2026-11-21T12:00:00Z"), ["evicted", "updated", "cluster-away"]),
        (("--cluster", "m2"), ["drift", "placed"]),
        (("-n", "demo", "--cluster", "m1", "--since", "2026-11-21T12:00:00Z"), ["evicted"]),
        (("cm/app", "--cluster", "m2", "--since", "2026-11-21T12:05:00Z"), ["drift"]),
        (("--since", "1m"), []),
        (("--since", "2h30m"), ["drift", "placed", "evicted", "updated", "cluster-away"]),
        (("--limit", "2"), ["drift", "placed"]),
    ],
    ids=" ".join,
)
def test_filters_combine(
    path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], kinds: list[str]
) -> None:
    monkeypatch.setattr(history, "_now", lambda: "2026-11-21T14:00:00Z")
    with Journal.open(path) as journal:
        journal.record_events(LATER)
    assert [event["event"] for event in events_of(path, *options)] == kinds


def test_what_is_filtered_away_is_not_said_to_have_never_happened(path: Path) -> None:
    done = run("history", "--cluster", "m9", "--journal", str(path))
    assert done == (0, "", "nothing of that has happened\n")


@pytest.mark.parametrize("text", ["yesterday", "3", "2026-11-21", "2026-13-21T12:00:00Z"])
def test_a_time_that_is_none_is_refused(path: Path, text: str) -> None:
    done = run("history", "--since", text, "--journal", str(path))
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(f"error: {text!r} is no ")


def test_who_is_the_person_the_manager_or_the_tick_and_only_else_the_author(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    folder.mkdir()
    store = write_store(folder)
    commit = commit_all(folder, "Bring the app", new=True)
    path = tmp_path / "journal.db"
    with Journal.open(path) as journal:
        record_round(journal, replace(shop(), revision=commit))
        journal.record_events(
            [
                at(1, "advanced", "store", revision=commit),
                at(2, "drift", "ConfigMap demo/app @ m1", revision=commit, cause="drift", outcome="healed"),
                at(3, "drift", "ConfigMap demo/app @ m1", revision=commit, cause="drift", who="kubectl-edit"),
                at(4, "deleted", "ConfigMap demo/app @ m1", revision=commit, cause="placement", who="li@host"),
                at(5, "constrained", "ConfigMap demo/app @ m1", tick="failover", why="unhealthy"),
                at(6, "apply", "fleet", revision=commit, who="li@host", changes=2),
            ]
        )
    found = [(one["event"], one["who"], one["author"]) for one in events_of(path, "--store", store, "--limit", "6")]
    assert found == [
        ("apply", "li@host", "Ann"),
        ("constrained", "failover", None),
        ("deleted", "li@host", None),
        ("drift", "kubectl-edit", None),
        ("drift", None, None),
        ("advanced", "Ann", "Ann"),
    ]
    lines = run("history", "--store", store, "--journal", str(path)).out.splitlines()
    assert ["Ann" in line for line in lines[1:7]] == [False] * 5 + [True]
    assert lines[6].endswith("Bring the app")


def test_who_follows_sees_what_was_and_what_comes_oldest_first(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    coming = list(LATER)

    def one_more() -> None:
        if not coming:
            raise KeyboardInterrupt
        with Journal.open(path) as journal:
            journal.record_events([coming.pop(0)])

    monkeypatch.setattr(history, "_pause", one_more)
    done = run("history", "-w", "-n", "demo", "--limit", "1", "--journal", str(path), "-o", "json")
    lines = [json.loads(line) for line in done.out.splitlines()]
    assert [(line["event"], line["cluster"]) for line in lines] == [
        *(("created", "m1"), ("evicted", "m1"), ("placed", None), ("drift", "m2"))
    ]


def test_who_follows_reads_lines_that_keep_their_columns(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Journal.open(path) as journal:
        journal.record_events(LATER)

    def interrupt() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(history, "_pause", interrupt)
    lines = run("history", "-w", "--limit", "3", "--journal", str(path)).out.splitlines()
    assert [line.split()[1] for line in lines] == ["evicted", "placed", "drift"]
    assert lines[0].endswith("li@host: a broken node")
    assert len({line.index(line.split()[1]) for line in lines}) == 1


def test_who_follows_cannot_ask_for_one_document(path: Path) -> None:
    done = run("history", "-w", "-o", "yaml", "--journal", str(path))
    assert done.code == 2
    assert "a line for each event" in done.err


def test_a_journal_of_before_is_read_as_it_is(path: Path) -> None:
    with Journal.open(path) as journal:
        journal.record_events([event("updated", "ConfigMap demo/app @ m1", {"cause": "drift", "fields": ["data.a"]})])
    (found,) = events_of(path, "--limit", "1")
    assert (found["fields"], found["who"], found["author"]) == (["data.a"], None, None)
    assert run("history", "--limit", "1", "--journal", str(path)).out.splitlines()[1].endswith("drift; data.a")


def test_an_export_has_every_event(path: Path) -> None:
    with Journal.open(path) as journal:
        journal.record_events(LATER)
    exported = json.loads(run("journal", "export", "--journal", str(path)).out)["event"]
    assert len(exported) == len(events_of(path)) == 9


def test_every_kind_of_event_and_every_key_is_documented(path: Path) -> None:
    with Journal.open(path) as journal:
        journal.record_events(LATER)
    page = (Path(__file__).parents[3] / "docs/reference/machine-formats.md").read_text(encoding="utf-8")
    (section,) = re.findall(r"^## history$(.*?)^## ", page, re.MULTILINE | re.DOTALL)
    kinds = set(re.findall(r"^- `([a-z-]+)`:", section, re.MULTILINE))
    assert kinds == set(map(str, EventKind))
    told = set(re.findall(r"`([A-Za-z]+)`", section))
    assert {key for event in events_of(path) for key in event} <= told
    assert set(map(str, DriftOutcome)) <= told
