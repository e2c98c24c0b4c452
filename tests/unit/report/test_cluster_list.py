"""Sets of clusters are short and exact."""

from __future__ import annotations

import re
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.report.terminal import cluster_list


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["m1"], "m1"),
        (["m2", "m1"], "m1, m2"),
        (["hz-prod-a", "hz-prod-b"], "hz-prod-{a,b}"),
        (["hz-prod-b", "idc-1", "hz-prod-a"], "hz-prod-{a,b}, idc-1"),
        ([f"edge-{n:03}" for n in range(30)], "edge-{000..029}"),
        (["edge-1", "edge-2", "edge-3", "edge-5", "edge-x"], "edge-{1..3,5,x}"),
        (["edge-9", "edge-10"], "edge-{10,9}"),
        (["a-1", "a-2"], "a-1, a-2"),
        ([], ""),
    ],
)
def test_names_are_written_as_people_write_them(names: list[str], text: str) -> None:
    assert cluster_list(names) == text


names = st.from_regex(r"[a-z]{1,5}(-[a-z0-9]{1,3}){0,2}", fullmatch=True) | st.integers(0, 30).map("edge-{:02}".format)


@given(st.sets(names))
def test_nothing_is_lost_and_nothing_invented(chosen: set[str]) -> None:
    parts = re.findall(r"[^,{ ]+\{[^}]*\}|[^, ]+", cluster_list(sorted(chosen)))
    assert set(chain.from_iterable(map(expanded, parts))) == chosen


def expanded(part: str) -> list[str]:
    prefix, brace, rest = part.partition("{")
    return [prefix + name for ending in rest.rstrip("}").split(",") for name in run(ending)] if brace else [part]


def run(ending: str) -> list[str]:
    first, dots, last = ending.partition("..")
    return [str(number).zfill(len(first)) for number in range(int(first), int(last) + 1)] if dots else [ending]
