"""A table of which some keys were updated is the table of all values, and says what differs."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from reconciler.incremental import Table, among, patched, union

Rows = Mapping[str, tuple[int, ...]]

keys = st.text("abc", max_size=2)
values = st.integers(0, 2).map(lambda number: (number,))
stores = st.dictionaries(keys, values, max_size=8)


def changed_between(before: Rows, after: Rows) -> set[str]:
    return {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}


@given(st.lists(st.tuples(stores, st.sets(keys)), max_size=6))
def test_dirty_keys_suffice(series: list[tuple[Rows, set[str]]]) -> None:
    table, before = Table[str, tuple[int, ...]](), dict[str, tuple[int, ...]]()
    for store, also_dirty in series:
        changed = changed_between(before, store)
        table.update(sorted(changed | also_dirty, reverse=True), store.get)
        assert list(table.rows.items()) == sorted(store.items())
        assert table.changed == changed
        before = dict(store)


@given(stores, stores)
def test_rows_that_were_handed_out_stay_as_they_were(first: Rows, second: Rows) -> None:
    table = Table[str, tuple[int, ...]]()
    table.update(first, first.get)
    handed_out = table.rows
    table.update({*first, *second}, second.get)
    assert handed_out == first


@given(stores, stores)
def test_equal_values_stay_the_same_objects(first: Rows, second: Rows) -> None:
    table = Table[str, tuple[int, ...]]()
    table.update(first, first.get)
    table.update({*first, *second}, second.get)
    assert all(table.rows[key] is first[key] for key in first.keys() & second.keys() if first[key] == second[key])


def test_an_update_that_changes_nothing_copies_nothing() -> None:
    table = Table[str, int]()
    table.put({"a": 1, "b": 2})
    before = table.rows
    table.update(("a", "b", "absent"), {"a": 1, "b": 2}.get)
    assert table.rows is before
    assert not table.changed


def test_an_update_of_no_key_forgets_what_the_last_one_changed() -> None:
    table = Table[str, int]()
    table.put({"a": 1})
    assert table.changed == {"a"}
    table.update((), lambda key: 1)
    assert not table.changed


@given(stores, stores)
def test_an_input_that_is_replaced_says_what_differs(first: Rows, second: Rows) -> None:
    table = Table[str, tuple[int, ...]]()
    table.replace(first)
    table.replace(second)
    assert table.rows is second
    assert table.changed == changed_between(first, second)


def test_many_new_keys_come_in_order() -> None:
    before = {f"{number:03d}": number for number in range(0, 200, 2)}
    after = patched(before, {f"{number:03d}": number for number in range(199, 0, -2)})
    assert list(after.items()) == [(f"{number:03d}", number) for number in range(200)]


def test_a_union_keeps_what_is_sorted_in_its_order() -> None:
    assert list(union(["b", "d"], ["b", "a"])) == ["b", "d", "a"]


def test_a_union_of_what_the_first_has_is_the_first() -> None:
    everything = {"a": 1, "b": 2}.keys()
    assert union(everything, {"b"}, frozenset()) is everything
    assert list(union(everything, {"c"})) == ["a", "b", "c"]


@given(st.lists(st.tuples(*[st.just({}) | stores] * 3), max_size=6))
def test_a_table_of_layers_says_what_the_first_of_them_says(series: list[tuple[Rows, ...]]) -> None:
    table, before = Table[str, tuple[int, ...]](), dict[str, tuple[int, ...]]()
    layers = [Table[str, tuple[int, ...]]() for _ in range(3)]
    handed_out: list[tuple[Rows, Rows]] = []
    for rows in series:
        for layer, found in zip(layers, rows, strict=True):
            layer.update({*layer.rows, *found}, found.get)
        wanted = {**rows[2], **rows[1], **rows[0]}
        assert table.overlay(*layers) is table
        assert list(table.rows.items()) == sorted(wanted.items())
        assert table.changed == changed_between(before, wanted)
        handed_out.append((table.rows, before := wanted))
    assert all(one == other for one, other in handed_out)


@given(st.lists(st.tuples(stores, stores), max_size=6))
def test_a_derived_table_is_the_one_from_nothing(series: list[tuple[Rows, Rows]]) -> None:
    ones, others, sums = (Table[str, tuple[int, ...]]() for _ in range(3))
    for one, other in series:
        ones.replace(one)
        others.replace(other)

        def both(key: str) -> tuple[int, ...] | None:
            return (*ones.rows.get(key, ()), *others.rows.get(key, ())) or None

        before = sums.rows
        sums.derive(both, ones, others, within=[ones.rows, others.rows])
        anew = Table[str, tuple[int, ...]]().derive(both, Table.of(one), Table.of(other))
        assert list(sums.rows.items()) == list(anew.rows.items())
        assert sums.changed == changed_between(before, sums.rows)


@given(st.sets(keys), stores, stores)
def test_keys_that_no_mapping_has_need_not_be_looked_at(dirty: set[str], one: Rows, other: Rows) -> None:
    found = set(among(dirty, one, other))
    assert dirty & (one.keys() | other.keys()) <= found <= dirty
