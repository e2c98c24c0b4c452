"""Laws of the views: they count what status counts, and no page of the matrix loses or repeats a row."""

from __future__ import annotations

import re
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from reconciler.report.status import state_document
from reconciler.report.views import (
    JournalRows,
    MatrixQuery,
    ProcessState,
    SourcePart,
    cluster_view,
    fleet_view,
    matrix_view,
)
from reconciler.report.views.matrix import EVERY_KIND
from reconciler.server.pages import fleet_page
from reconciler.server.pages.styles import HEALTHS, STATES
from tests.fakes.worlds import NOW
from tests.properties.test_state import TROUBLES, scene_with, some
from tests.unit.report.views.sights import sight_of

SIGNS = ProcessState(
    fleet="test",
    is_ready=True,
    is_progressing=True,
    phase="idle",
    source=SourcePart(description="store"),
    last_round_at=NOW,
)


@given(st.lists(TROUBLES, max_size=6))
def test_the_views_count_what_status_counts(troubles: list[tuple[str, tuple[str, str]]]) -> None:
    sight = sight_of(scene_with(troubles).facts())
    document = state_document(sight.picture)
    fleet = fleet_view(SIGNS, sight, JournalRows())
    assert some(fleet.objects) == some(document["objects"])
    assert some(fleet.health) == some(document["health"])
    assert fleet.clusters.away + fleet.clusters.left == sum(not found["up"] for found in document["clusters"])
    assert fleet.clusters.in_sync == sum(
        found["up"] and set(some(found["objects"])) <= {"synced"} for found in document["clusters"]
    )
    matrix = matrix_view(sight, MatrixQuery(kind=EVERY_KIND))
    html = fleet_page(fleet, matrix, MatrixQuery(kind=EVERY_KIND), NOW)
    assert f"{fleet.clusters.in_sync} of {fleet.clusters.total} clusters in sync" in html
    drawn = Counter(
        {words.split(",")[0]: int(count) for count, words in re.findall(r"<b>(\d+)</b> ([^<]+)</li>", html)}
    )
    assert drawn == Counter(
        {STATES[name].words.split(",")[0]: count for name, count in some(fleet.objects).items()}
    ) + (Counter({HEALTHS[name].words: count for name, count in some(fleet.health).items()}))
    names = [head.name for head in matrix.clusters]
    assert names == [found["name"] for found in document["clusters"]]
    for number, found in enumerate(document["clusters"]):
        cells = [cell for row in matrix.rows for cell in row.cells if cell.cluster == number]
        assert Counter(cell.state for cell in cells) == Counter(some(found["objects"]))
        assert Counter(cell.health for cell in cells) == Counter(some(found["health"]))
        view = cluster_view(sight, found["name"])
        assert view is not None
        assert (some(view.counts), some(view.health)) == (some(found["objects"]), some(found["health"]))
        assert Counter(placed.copy.state for placed in view.objects) == Counter(some(found["objects"]))
        assert view.total == len(view.objects)


@given(st.lists(TROUBLES, max_size=4), st.integers(1, 4), st.booleans())
def test_pages_together_are_the_whole(
    troubles: list[tuple[str, tuple[str, str]]], limit: int, only_troubles: bool
) -> None:
    sight = sight_of(scene_with(troubles).facts())
    whole = matrix_view(sight, MatrixQuery(kind=EVERY_KIND, troubles=only_troubles))
    parts = [
        matrix_view(sight, MatrixQuery(kind=EVERY_KIND, troubles=only_troubles, offset=offset, limit=limit))
        for offset in range(0, whole.total, limit)
    ]
    assert [row for part in parts for row in part.rows] == list(whole.rows)
    assert {part.total for part in parts} <= {whole.total}
    if only_troubles:
        assert all(any((cell.state, cell.health) != ("synced", "Healthy") for cell in row.cells) for row in whole.rows)
