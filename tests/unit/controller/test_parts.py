from __future__ import annotations

from typing import Any

from reconciler.controller import timing
from reconciler.controller.loop_state import LoopParts
from reconciler.controller.once import Access
from reconciler.controller.vitals.service_vitals import RoundPhase, Vitals
from reconciler.kinds import BUILT_IN_KINDS
from tests.fakes.clocks import QuickClock


def test_a_sign_of_progress_allows_for_the_work_that_follows_it_and_no_longer() -> None:
    nothing: Any = None
    vitals = Vitals()
    access = Access(clock=QuickClock(), interpreters=BUILT_IN_KINDS)
    parts = LoopParts(source=nothing, store=nothing, journal=nothing, holder=nothing, opened=nothing,
                      access=access, agent=nothing, vitals=vitals)  # fmt: skip
    parts.beat(RoundPhase.PARSE, 10_000)
    assert (vitals.phase, vitals.allowance_s) == ("parsing", 10_000 * timing.ITEM_S)
    first_s = vitals.heartbeat_s
    parts.beat(RoundPhase.IDLE)
    assert vitals.allowance_s == 0
    assert vitals.heartbeat_s > first_s
    progress = parts.counted(RoundPhase.READ, 7, 40)
    assert vitals.phase == "reading the clusters"
    progress()
    progress()
    assert vitals.phase == "reading the clusters, 2 of 40"
