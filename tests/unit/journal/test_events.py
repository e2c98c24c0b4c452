"""Events of the journal: which are found, how many are kept, and what keeping them costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from reconciler.api.fleet import HistoryLimits
from reconciler.api.ledger import Event, EventKind, EvictionRecord, SuspensionRecord
from reconciler.api.refs import Identity
from reconciler.controller.vitals.journal_documents import HistoryPage, events_of
from reconciler.journal import EventFilter, Journal, SharedOrdersTable
from reconciler.journal import events as journal_events
from reconciler.journal.sqlite_file import JournalFile
from reconciler.report.views import HistoryQuery
from tests.fakes.journals import exported

ROOT = Path(__file__).parents[3]
NOW = "2026-11-21T12:00:00Z"
WEB = Identity("apps", "Deployment", "demo", "web")


class Noon:
    def now(self) -> str:
        return NOW

    def monotonic_s(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        raise AssertionError("nobody waits")


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal.open(tmp_path / "journal.db") as opened:
        yield opened


def event(kind: str, subject: str, time: str = "2026-11-21T10:00:00Z", **data: object) -> Event:
    return Event(round=1, time=time, kind=kind, subject=subject, data=data)


SEVERAL = (
    event("placed", "Deployment demo/web", after=[{"cluster": "m1", "replicas": 2}]),
    event("created", "Deployment demo/web @ m1"),
    event("created", "Namespace demo @ m1", "2026-11-21T10:01:00Z"),
    event("created", "Deployment other/web @ m10", "2026-11-21T10:02:00Z", why='a "cluster":"m1" of somebody'),
    event("created", "ClusterRole demo @ m2", "2026-11-21T10:03:00Z"),
    event("cluster-away", "cluster m1", "2026-11-21T10:04:00Z"),
    event("suspended", "fleet", "2026-11-21T10:05:00Z"),
)


@pytest.mark.parametrize(
    ("wanted", "numbers"),
    [
        (EventFilter(), [7, 6, 5, 4, 3, 2, 1]),
        (EventFilter(cluster="m1"), [6, 3, 2, 1]),
        (EventFilter(cluster="m10"), [4]),
        (EventFilter(cluster="%"), []),
        (EventFilter(namespace="demo"), [3, 2, 1]),
        (EventFilter(namespace="dem_"), []),
        (EventFilter(since="2026-11-21T10:03:00Z"), [7, 6, 5]),
        (EventFilter(kinds=("created", "placed"), cluster="m1", namespace="demo"), [3, 2, 1]),
        (EventFilter(about="Deployment demo/web", since="2026-11-21T10:01:00Z"), []),
        (EventFilter(cluster="m1", since="2026-11-21T10:01:00Z"), [6, 3]),
    ],
    ids=repr,
)
def test_filters_combine(journal: Journal, wanted: EventFilter, numbers: list[int]) -> None:
    journal.record_events(SEVERAL)
    assert [found.number for found in journal.newest_events(wanted, 100)] == numbers
    assert [found.number for found in journal.newest_events(wanted, 2)] == numbers[:2]
    assert [found.number for found in journal.events_after(0, wanted)] == numbers[::-1]
    assert [found.number for found in journal.events_after(3, wanted)] == [n for n in numbers[::-1] if n > 3]


def test_what_is_recorded_beside_the_writer_follows_what_it_wrote(journal: Journal) -> None:
    journal.record_events(SEVERAL)
    with SharedOrdersTable(journal.path) as book:
        book.ask("li@host")
    journal.record_events([event("created", "Deployment demo/api @ m1")])
    found = journal.events_after(len(SEVERAL), EventFilter())
    assert [(one.number, one.event.kind) for one in found] == [(8, "asked"), (9, "created")]
    assert journal.last_event == 9


def test_each_order_is_an_event_with_its_user_and_reason(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reconciler.journal.locks.OrdersTable._clock", Noon())
    eviction = EvictionRecord(identity=WEB, cluster="m1", since="s", until="u", who="li@host", reason="a broken node")
    with SharedOrdersTable(journal.path) as book:
        book.suspend(SuspensionRecord(scope="cluster m1", reason="network works", who="li@host", until="u"))
        assert book.resume("cluster m1", "wu@host", "done")
        assert not book.resume("cluster m1", "wu@host"), "what did not happen is no event"
        book.evict(eviction)
        assert book.readmit(WEB, "m1", "wu@host")
        assert not book.readmit(WEB, "m1", "wu@host")
        book.ask("li@host")
    found = [(one.event.kind, one.event.subject, one.event.data) for one in journal.events_after(0, EventFilter())]
    web = "Deployment demo/web @ m1"
    assert found == [
        ("suspended", "cluster m1", {"who": "li@host", "why": "network works", "until": "u"}),
        ("resumed", "cluster m1", {"who": "wu@host", "why": "done"}),
        ("evicted", web, {"who": "li@host", "why": "a broken node", "until": "u"}),
        ("readmitted", web, {"who": "wu@host"}),
        ("asked", "fleet", {"who": "li@host"}),
    ]
    assert {one.time for one in journal.events()} == {"2026-11-21T12:00:00Z"}


def test_what_persons_did_outlasts_the_rest_and_is_bounded_too(tmp_path: Path) -> None:
    file = JournalFile(tmp_path / "journal.db", read_only=False, tables=())
    for number in range(40):
        kind = EventKind.EVICTED if number % 4 == 0 else EventKind.CREATED
        journal_events.record(file, [event(kind, f"x{number}")])
        journal_events.prune(file, HistoryLimits(events_max=10), NOW, apart_max=3)
    kept = [row[0] for row in file.execute("SELECT subject FROM event ORDER BY id")]
    file.close()
    assert kept == ["x20", "x24", "x28", *(f"x{number}" for number in range(30, 40))]


LASTS = (
    event("degraded", "Deployment demo/web @ m1", "2026-09-01T10:00:00Z"),
    event("cluster-away", "cluster m1", "2026-09-01T10:00:00Z"),
    event("cluster-back", "cluster m1", "2026-09-01T11:00:00Z"),
    event("suspended", "cluster m2", "2026-09-01T11:00:00Z"),
    event("degraded", "Deployment demo/api @ m1", "2026-09-01T11:00:00Z"),
    event("held", "cluster m3", "2026-09-01T11:00:00Z", count=1),
    event("held", "cluster m3", "2026-09-01T12:00:00Z", count=2),
    event("recovered", "Deployment demo/api @ m1", "2026-09-01T12:00:00Z"),
    event("evicted", "Deployment demo/api @ m1", "2026-09-01T12:00:00Z"),
    event("updated", "Deployment demo/api @ m1", "2026-11-21T11:30:00Z"),
    event("updated", "Deployment demo/web @ m1", "2026-11-21T11:40:00Z"),
)
OPEN = ["Deployment demo/web @ m1", "cluster m2", "cluster m3"]


@pytest.mark.parametrize(
    ("limits", "kept"),
    [
        (HistoryLimits(age_s=3600), [1, 4, 7, 10, 11]),
        (HistoryLimits(age_s=60), [1, 4, 7, 11]),
        (HistoryLimits(events_max=1), [1, 4, 7, 9, 11]),
        (HistoryLimits(events_max=1, age_s=3600), [1, 4, 7, 11]),
        (HistoryLimits(), list(range(1, 12))),
    ],
    ids=repr,
)
def test_what_is_older_goes_and_what_still_lasts_stays(
    journal: Journal, limits: HistoryLimits, kept: list[int]
) -> None:
    journal.record_events(LASTS)
    journal.keep_history(limits, NOW)
    assert [found.number for found in journal.events_after(0, EventFilter())] == kept
    kinds = (EventKind.DEGRADED, EventKind.CLUSTER_AWAY, EventKind.SUSPENDED, EventKind.HELD)
    assert [each.subject for each in journal.lasting(kinds)] == OPEN
    assert journal.lasting(kinds)[-1].data == {"count": 2}
    journal.record_events([event("updated", "x", NOW)])
    assert journal.last_event == 12, "no number is given twice"


def test_limits_hold_after_a_restart_and_for_what_others_record_beside(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    with Journal.open(path) as journal:
        journal.keep_history(HistoryLimits(events_max=1000, age_s=3600), NOW)
    with Journal.open(path) as journal:
        journal.record_events([event("updated", f"x{number}", "2026-11-21T09:00:00Z") for number in range(500)])
        with SharedOrdersTable(path) as book:
            book.ask("li@host")
        assert journal.last_event == 501
        journal.record_events([event("updated", f"y{number}", NOW) for number in range(1000)])
        assert [found.event.subject for found in journal.events_after(0, EventFilter(), 1)] == ["fleet"]


def test_an_age_is_kept_to_where_nothing_happens(tmp_path: Path) -> None:
    with Journal.open(tmp_path / "journal.db") as journal:
        journal.keep_history(HistoryLimits(age_s=3600), NOW)
        journal.record_events([event("updated", f"x{number}", NOW) for number in range(3)])
        for _ in range(500):
            journal.record_round("r", "2026-11-21T14:00:00Z", {})
        assert [found.number for found in journal.events_after(0, EventFilter())] == [3]


def test_a_subject_is_listed_once_whatever_clusters_it_is_in(journal: Journal) -> None:
    names = ("Deployment demo/web @ m1", "Deployment demo/web @ m2", "Deployment demo/web", "Deployment demo/web-2",
             "cluster m1", "Deployment demo/web.x @ m1", "fleet", "Deployment demo/we @ m9")  # fmt: skip
    journal.record_events([event("updated", name) for name in names * 3])
    assert journal.subjects() == (
        *("Deployment demo/we", "Deployment demo/web", "Deployment demo/web-2", "Deployment demo/web.x"),
        *("cluster m1", "fleet"),
    )


def test_a_question_for_later_events_reads_no_more_than_it_shows(journal: Journal) -> None:
    journal.record_events([event("updated", f"x{number}") for number in range(300)])
    pages: list[HistoryPage] = []
    asked = HistoryQuery(after=0, limit=50)
    found = statements_of(journal, lambda: pages.append(events_of(journal, EventFilter(), asked)))
    assert found[-1].endswith("LIMIT 51")
    assert (len(pages[0].events), pages[0].last) == (50, 50)


def test_a_release_is_the_last_until_the_object_is_written_again(journal: Journal) -> None:
    made = (
        ("released", "a"),
        ("released", "b"),
        ("adopted", "a"),
        ("held", "b"),
        ("released", "c"),
        ("failed", "c"),
    )
    journal.record_events([event(kind, f"ConfigMap demo/{name} @ m1") for kind, name in made])
    assert [each.subject for each in journal.last_releases()] == ["ConfigMap demo/c @ m1", "ConfigMap demo/b @ m1"]


def test_a_compact_journal_has_the_same_rows_in_less_space(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    with Journal.open(path) as journal:
        journal.record_events([event("updated", f"x{number}", NOW, why="y" * 200) for number in range(5000)])
        journal.keep_history(HistoryLimits(events_max=1000), NOW)
        before = exported(journal)
        journal.compact(NOW)
        assert exported(journal) == before
        assert journal.verify() == ()
    small = path.stat().st_size
    with Journal.open(path) as journal:
        journal.record_events([event("updated", "x", NOW)])
    assert small < 500_000 < 5000 * 200


def statements_of(journal: Journal, work: Callable[[], None]) -> list[str]:
    """The statements that are run meanwhile."""
    found: list[str] = []
    connection = journal._file._connection
    connection.set_trace_callback(found.append)
    work()
    connection.set_trace_callback(None)
    return found


def test_a_full_history_costs_no_more_statements_than_an_empty_one(tmp_path: Path) -> None:
    with Journal.open(tmp_path / "journal.db") as journal:
        journal.keep_history(HistoryLimits(events_max=1000), NOW)
        one = [event("created", "x")]
        empty = statements_of(journal, lambda: journal.record_events(one))
        journal.record_events([event("created", f"x{number}") for number in range(2000)])
        begin = journal.last_event
        costs = [len(statements_of(journal, lambda: journal.record_events(one))) for _ in range(100)]
        assert journal.last_event == begin + 100
        kept = journal.newest_events(EventFilter(), 10_000)
    assert sum(costs) <= 100 * len(empty) + 10 * 3, "a tenth of the commits drops what is too old, by three statements"
    assert 1000 <= len(kept) <= 1010


def test_a_group_of_events_is_one_commit_and_one_question(journal: Journal) -> None:
    subjects = [event("created", f"Deployment demo/web-{number} @ m1") for number in range(5000)]
    found = statements_of(journal, lambda: journal.record_events(subjects))
    others = [statement.split()[0] for statement in found if not statement.startswith(("INSERT", "PRAGMA"))]
    assert others == ["BEGIN", "SELECT", "COMMIT"]


def test_the_limits_are_those_that_the_pages_tell() -> None:
    limits = f"The newest {HistoryLimits().events_max:,} events are kept, and", f"{journal_events.APART_MAX:,}"
    for page in ("concepts/history.md", "reference/cli.md"):
        text = (ROOT / "docs" / page).read_text(encoding="utf-8")
        assert all(limit in text for limit in limits), page
