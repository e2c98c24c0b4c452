"""A day of history by the hour, from the journal to its cells."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.api.ledger import Event
from reconciler.journal import Journal
from reconciler.report.views import DayView, day_view
from reconciler.server.pages.alerts_page import day_rows
from tests.unit.report.views.sights import sight_of
from tests.unit.server.test_api import asking, journal_of, scene

NOW = "2026-11-23T10:33:20Z"
COUNTS = (
    ("2026-11-23T10", "Deployment shop/web @ m1", "updated", 3),
    ("2026-11-23T10", "Deployment shop/web @ m2", "failed", 1),
    ("2026-11-23T09", "cluster m1", "cluster-away", 1),
    ("2026-11-22T11", "store", "advanced", 2),
    ("2026-11-22T10", "Deployment shop/web @ m1", "created", 9),
)


def cells(found: DayView) -> dict[str, list[tuple[int, dict[str, int]]]]:
    return {row.name: [(cell.hour, cell.events) for cell in row.cells] for row in found.rows}


def test_a_day_has_24_hours_and_a_row_for_each_cluster_or_object() -> None:
    found = day_view(COUNTS, "cluster", NOW)
    assert (len(found.hours), found.hours[0], found.hours[-1]) == (24, "2026-11-22T11:00:00Z", "2026-11-23T10:00:00Z")
    assert cells(found) == {
        "m1": [(22, {"cluster-away": 1}), (23, {"updated": 3})],
        "fleet": [(0, {"advanced": 2})],
        "m2": [(23, {"failed": 1})],
    }
    by_object = cells(day_view(COUNTS, "object", NOW))
    assert by_object["Deployment shop/web"] == [(23, {"updated": 3, "failed": 1})]
    assert by_object["fleet"] == [(0, {"advanced": 2}), (22, {"cluster-away": 1})]


def test_an_hour_tells_the_worst_and_leads_to_its_events() -> None:
    (web,) = [row for row in day_rows(day_view(COUNTS, "object", NOW)) if row["name"] == "Deployment shop/web"]
    hour = web["cells"][23]
    assert hour is not None
    assert (hour["events"], hour["tone"]) == (4, "bad")
    assert hour["words"] == "Deployment shop/web at 10:00: 1 apply failed, 3 updated"
    assert hour["link"] == "/history?resource=Deployment%2Fweb&namespace=shop&since=2026-11-23T10%3A00%3A00Z"
    assert web["cells"][:23] == [None] * 23


async def test_the_history_page_shows_the_day_and_its_hours_can_be_asked_for(tmp_path: Path) -> None:
    sight = sight_of(scene().facts())
    path = journal_of(tmp_path, sight)
    async with asking(sight, path) as asker:
        _, day, _ = await asker.get("/api/v1/day")
        now = day["hours"][-1]
        with Journal.open(path) as journal:
            journal.record_events([Event(round=1, time=now, kind="failed", subject="ConfigMap demo/app @ m1")])
        _, day, _ = await asker.get("/api/v1/day?by=object")
        assert [(row["name"], row["cells"][-1]) for row in day["rows"]] == [
            ("ConfigMap demo/app", {"hour": 23, "events": {"failed": 1}})
        ]
        _, found, _ = await asker.get(f"/api/v1/history?since={now}&until={now}")
        assert found["events"] == []
        _, found, _ = await asker.get(f"/api/v1/history?since={now}")
        assert [event["event"] for event in found["events"]] == ["failed"]
        status, body, _ = await asker.get("/history?by=object")
        assert (status, "1 apply failed" in body) == (200, True)


@pytest.mark.parametrize("path", ["day?by=region", "day?since=2h", "history?until=tomorrow"])
async def test_a_day_by_something_else_is_refused(path: str) -> None:
    async with asking(sight_of(scene().facts())) as asker:
        assert (await asker.get(f"/api/v1/{path}"))[0] == 400
