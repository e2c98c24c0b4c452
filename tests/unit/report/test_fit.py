"""Tables fit the terminal: narrow ones lose columns and the end of a last one, and none breaks within a cell."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.api.ledger import Event
from reconciler.api.refs import CommitWords
from reconciler.report import Fit, Style, table, text_width
from reconciler.report.status import history_document, history_text, status_text
from tests.golden.test_operator_screens import STATUS

HEADER = ["name", "alias", "state", "reason"]
ROWS = [["m1", "the first one", "away", "connection refused by everything on the way"], ["m22", "", "up", "-"]]


def shown(width: int | None, *drop: int, cuts_last: bool = True) -> list[str]:
    return table(HEADER, ROWS, fit=Fit(width=width, drop=drop, cuts_last=cuts_last)).splitlines()


def test_a_wide_terminal_shows_everything() -> None:
    assert shown(120, 1, 2) == shown(None)


def test_the_last_column_is_cut_before_others_go() -> None:
    assert shown(60, 1, 2)[1] == "m1     the first one   away    connection refused by everyt…"


def test_then_columns_go_in_their_order() -> None:
    assert shown(40, 1, 2)[:2] == ["NAME   STATE   REASON", "m1     away    connection refused by ev…"]
    assert shown(32, 1, 2)[:2] == ["NAME   REASON", "m1     connection refused by ev…"]


def test_what_may_not_be_cut_is_whole_or_gone() -> None:
    assert shown(60, 3, 1, cuts_last=False)[:2] == ["NAME   ALIAS           STATE", "m1     the first one   away"]


@pytest.mark.parametrize("width", [80, 100, 140])
def test_what_operators_see_fits(width: int) -> None:
    events = [
        Event(time="2026-11-21T10:00:00Z", round=7, kind="applied", subject="Deployment shop/web @ hz-prod-a",
              data={"revision": "0" * 40, "why": "a long reason " * 9, "fields": ["spec.replicas"]}),
    ]  # fmt: skip
    text = history_text(history_document(events, lambda _: CommitWords("Somebody With A Name", "s", "")), width=width)
    assert max(map(text_width, text.splitlines())) <= width
    lines = status_text(STATUS, Style(width=width)).splitlines()
    tables = [line for line in lines if line.startswith(("CLUSTER", "hz-", "idc-", "POLICY", "Propag", "ClusterProp"))]
    assert len(tables) == 7
    assert max(map(text_width, tables)) <= width


CELLS = st.text("aé漢 ", max_size=30)


@given(rows=st.lists(st.tuples(CELLS, CELLS, CELLS, CELLS), min_size=1, max_size=4), width=st.integers(60, 140))
def test_no_line_is_wider_than_the_terminal(rows: list[tuple[str, ...]], width: int) -> None:
    lines = table(HEADER, rows, fit=Fit(width=width, drop=(1, 2), cuts_last=True)).splitlines()
    assert max(map(text_width, lines)) <= max(width, 0)
