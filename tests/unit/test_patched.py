"""Mappings made from those of the round before.

Dependents of a key, both ways, whatever was put before.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reconciler.incremental import Dependents, differing


def test_what_many_keys_share_is_compared_once() -> None:
    class Dear:
        compared = 0

        def __eq__(self, other: object) -> bool:
            Dear.compared += 1
            return True

        __hash__ = None  # type: ignore[assignment]

    old, new = Dear(), Dear()
    keys = [f"k{number:04}" for number in range(1000)]
    assert differing(dict.fromkeys(keys, old), dict.fromkeys(keys, new)) == {}
    assert Dear.compared == 1


names = st.sampled_from("abcd")
numbers = st.integers(0, 4)


@given(st.lists(st.tuples(names, st.lists(numbers, max_size=3)), max_size=12), st.sets(names), st.sets(numbers))
def test_both_ways_say_what_was_put_last(puts: list[tuple[str, list[int]]], some: set[str], changed: set[int]) -> None:
    dependents, last = Dependents[str, int](), dict[str, list[int]]()
    for key, on in puts:
        dependents.put(key, on)
        last[key] = on
    assert dependents.of(changed) == {key for key, on in last.items() if changed & set(on)}
    assert dependents.on(some) == {looked for key in some for looked in last.get(key, ())}
    assert set(dependents.looked_at) == {looked for on in last.values() for looked in on}


def test_a_key_that_looks_at_nothing_is_forgotten() -> None:
    dependents = Dependents[str, int]()
    dependents.put("a", [1, 1])
    dependents.put("a", [])
    assert dependents.of([1]) == set()
    assert not dependents.looked_at
