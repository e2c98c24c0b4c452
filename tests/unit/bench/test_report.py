from __future__ import annotations

from bench.measure import percentile
from bench.report import BY_HAND, by_hand, document, markdown_table, rows, unkind_rows


def test_a_percentile_is_a_value_that_was_measured() -> None:
    values = [5.0, 1.0, 3.0, 2.0, 4.0]
    assert [percentile(values, share) for share in (0.2, 0.5, 0.99, 1.0)] == [1.0, 3.0, 5.0, 5.0]
    assert percentile([7.0], 0.5) == 7.0


def test_a_time_is_judged_as_on_the_machine_of_the_goals() -> None:
    table = rows({"cold": 6.0}, 2.0)
    assert table == [("full plan, cold, one core", "5 / 4 s", "6 s", "goal met (0.75)")]
    assert rows({"cold": 4.5}, 1.0)[0][3] == "must met (1.12)"
    assert rows({"cold": 6.0}, 1.0)[0][3] == "OVER (1.50)"


def test_memory_is_judged_as_it_is() -> None:
    assert rows({"rss_mib": 300}, 2.0)[0][3] == "must met (1.20)"


def test_the_page_says_what_was_not_measured() -> None:
    found = {"yaml_mb_per_s": 4.6, "bytes": 1e6, "parse": 0.1, "pairs": 10.0}
    page = document({"processor": "p"}, found, [], 1.0)
    assert "- processor: p" in page
    assert "Not measured in this run" in page
    assert "| no-op | 1 x | 2 x | 3 s |" in document({}, found, [("no-op", "1 x", "2 x", "3 s")], 1.0)


def test_a_table_has_a_line_for_each_row() -> None:
    assert markdown_table(("a", "b"), [("1", "2")]) == "| a | b |\n|---|---|\n| 1 | 2 |"


def test_the_twin_stands_beside_the_fleet() -> None:
    found = {"beside_cold": 2.0, "unkind_cold": 3.0, "warm_parsed": 0, "warm_unkind_parsed": 500}
    assert unkind_rows(found) == [
        ("full plan, cold", "2 s", "3 s", "1.50"),
        ("files that a second start parses", "0", "500", ""),
    ]


def test_what_was_measured_by_hand_stays_on_the_page() -> None:
    page = document({}, {"yaml_mb_per_s": 4.6, "bytes": 1e6, "parse": 0.1, "pairs": 10.0}, [], 1.0)
    assert by_hand(page) == ""
    part = f"\n{BY_HAND}\nmeasured once\n"
    assert by_hand(page + part) == part
