"""The service frees its garbage between rounds, and sets aside what is alive. Source: design#promise-8."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from reconciler.controller.retries.caches import Garbage


class Knot:
    def __init__(self) -> None:
        self.own = self


@pytest.fixture(autouse=True)
def _by_hand() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.unfreeze()
    gc.enable()


def test_what_died_in_a_round_is_freed_when_nobody_waits() -> None:
    garbage, knot = Garbage(), weakref.ref(Knot())
    garbage.idle(0)
    assert knot() is not None
    garbage.is_due = True
    garbage.idle(1)
    assert knot() is None


def test_what_was_set_aside_and_died_later_is_freed_by_the_thorough_collection() -> None:
    garbage, alive = Garbage(), Knot()
    garbage.is_due = True
    garbage.idle(0)
    knot = weakref.ref(alive)
    del alive
    garbage.is_due = True
    garbage.idle(60)
    assert knot() is not None
    garbage.is_due = True
    garbage.idle(3600)
    assert knot() is None
