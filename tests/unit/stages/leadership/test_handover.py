"""What one leader leaves for the next, as an object."""

from __future__ import annotations

import base64
import random
import zlib
from typing import Any

import pytest

from reconciler.stages.leadership import Handover, HandoverTooLarge, handover_body, read_handover

LEFT = Handover(journal="j1", term=4, leaders=("j1", "j0"), unread=("m7",), tables={"timer": [["a", "t"]]})


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
