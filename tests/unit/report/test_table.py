"""Tables as kubectl prints them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reconciler.report import table, text_width


def test_columns_are_aligned_and_lines_end_with_their_text() -> None:
    rows = [("m1", "web", 2), ("hz-prod-a", None, 10)]
    assert table(("cluster", "name", "ready"), rows) == (
        "CLUSTER     NAME     READY\nm1          web      2\nhz-prod-a   <none>   10\n"
    )


def test_numbers_may_stand_to_the_right() -> None:
    assert table(("n", "m"), [(1, "a"), (100, "b")], right=frozenset({0})) == "  N   M\n  1   a\n100   b\n"


def test_a_table_without_rows_is_its_header() -> None:
    assert table(("name",), []) == "NAME\n"


def test_wide_characters_take_two_columns_and_marks_none() -> None:
    assert text_width("日本") == 4
    assert text_width("e\u0301") == 1
    assert text_width("abc") == 3


@given(st.lists(st.tuples(st.text(), st.text()), max_size=5))
def test_a_row_is_a_line_whatever_it_holds(rows: list[tuple[str, str]]) -> None:
    assert table(("a", "b"), rows).count("\n") == len(rows) + 1
