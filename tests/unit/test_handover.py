"""The object that one leader leaves for the next."""

from __future__ import annotations

import base64
import json
import random
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.api.binding import PreviousPlacement, TargetCluster
from reconciler.api.refs import Identity
from reconciler.lease import (
    Handover,
    HandoverTooLarge,
    handover_body,
    packed_placements,
    read_handover,
    read_placements,
)

LEFT = Handover(journal="j1", term=4, number=7, leaders=("j1", "j0"), unread=("m7",), tables={"timer": [["a", "t"]]})


def test_what_is_written_is_read() -> None:
    assert read_handover(handover_body("shop", "fleet-system", LEFT)) == LEFT


def test_what_does_not_fit_is_not_written() -> None:
    noise = random.Random(1).randbytes(2_000_000).hex()
    with pytest.raises(HandoverTooLarge, match="fit"):
        handover_body("shop", "fleet-system", Handover(journal="j", term=1, tables={"timer": [[noise, ""]]}))


@pytest.mark.parametrize(
    "state",
    ["", "no base64 !", base64.b64encode(b"not packed").decode(), base64.b64encode(zlib.compress(b"[1]")).decode(),
     base64.b64encode(zlib.compress(b"0" * (40 * 2**20))).decode(), 7],
)  # fmt: skip
def test_state_that_cannot_be_unpacked_counts_as_none(state: Any) -> None:
    data = {"journal": "j", "term": "x", "leaders": "", "state": state}
    assert read_handover({"data": data}) == Handover(journal="j", term=0)


@pytest.mark.parametrize("body", [{}, {"data": None}, {"data": {"journal": 5}}, {"data": {"journal": ""}}])
def test_who_names_no_journal_left_nothing(body: dict[str, Any]) -> None:
    assert read_handover(body) is None


def placed(name: str, *targets: tuple[str, int | None], group: str = "") -> PreviousPlacement:
    identity = Identity("apps", "Deployment", "demo", name)
    return PreviousPlacement(
        identity=identity, targets=tuple(TargetCluster(*target) for target in targets), affinity_name=group
    )


def of(*placements: PreviousPlacement) -> dict[Identity, PreviousPlacement]:
    return {each.identity: each for each in placements}


@given(
    st.dictionaries(
        st.text("abc", min_size=1, max_size=5),
        st.tuples(
            st.lists(st.tuples(st.sampled_from(("m1", "m2", "m3")), st.none() | st.integers(0, 9)), min_size=1),
            st.sampled_from(("", "near")),
        ),
    )
)
def test_placements_that_fit_are_read_as_they_were(found: dict[str, tuple[list[tuple[str, int | None]], str]]) -> None:
    left = of(*(placed(name, *targets, group=group) for name, (targets, group) in found.items()))
    assert read_placements(packed_placements(left, 100_000)) == left


def test_where_not_all_fit_those_on_one_cluster_are_left() -> None:
    rng = random.Random(1)
    noise = [placed(f"n{rng.random()}", ("m1", rng.randrange(10**9)), ("m2", rng.randrange(10**9))) for _ in range(500)]
    single = [placed("only", ("m1", 1))]
    assert read_placements(packed_placements(of(*noise, *single), 2_000)) == of(*single)
    assert packed_placements(of(*noise, *single), 10) == ""


@pytest.mark.parametrize(
    "document",
    [[], {}, {"alike": 1, "placed": 2}, {"alike": [[["m1", 1]]], "placed": [1, [], ["a"], ["g", "k", "n", "x", "", 7]]},
     {"alike": [[["m1", -1]], [[3, 1]], [], 5], "placed": [["g", "k", "n", "x", "", index] for index in range(4)]}],
)  # fmt: skip
def test_what_has_no_form_of_placements_is_left_out(document: Any) -> None:
    assert read_placements(base64.b64encode(zlib.compress(json.dumps(document).encode())).decode()) == {}


def test_a_term_above_what_a_lease_can_have_counts_as_nothing() -> None:
    assert read_handover({"data": {"journal": "j", "term": "999999999999999"}}) == Handover(journal="j", term=0)
