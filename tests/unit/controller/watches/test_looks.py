"""Unhealthy copies are looked at again: soon while something moves, else ever more rarely."""

from __future__ import annotations

import itertools

from reconciler.api.refs import Copy, Identity
from reconciler.controller import timing
from reconciler.controller.watches.polls import PollSchedule
from tests.fakes.clocks import TestClock

WEB: Copy = ("m1", Identity("apps", "Deployment", "demo", "web"))
API: Copy = ("m2", Identity("apps", "Deployment", "demo", "api"))
PAUSES = timing.QUESTION_BACK_OFF


class Scene:
    """Copies on a clock that stands still until told."""

    def __init__(self) -> None:
        self.clock = TestClock()
        self.looks = PollSchedule(self.clock)

    def due(self, copies: list[Copy], second: int) -> list[Copy]:
        self.clock.advance(second - self.clock.monotonic_s())
        return self.looks.due(copies)


def looked(scene: Scene, seconds: range, *, moves: bool) -> list[int]:
    """The seconds at which it was looked. `moves`: each look shows another version."""
    found = []
    for second in seconds:
        for copy in scene.due([WEB], second):
            found.append(second)
            scene.looks.saw(copy, str(second) if moves else "1")
    return found


def test_what_moves_is_looked_at_every_two_seconds() -> None:
    assert looked(Scene(), range(60), moves=True) == list(range(2, 60, 2))


def test_what_stays_as_it_is_is_looked_at_ever_more_rarely_and_never_forgotten() -> None:
    found = looked(Scene(), range(600), moves=False)
    pauses = [after - before for before, after in itertools.pairwise(found)]
    assert pauses[0] == PAUSES.least_s
    assert pauses == sorted(pauses)
    assert pauses[-1] == PAUSES.most_s
    assert len(found) < 20


def test_what_moves_again_is_looked_at_soon_again() -> None:
    scene = Scene()
    last = looked(scene, range(600), moves=False)[-1]
    again = looked(scene, range(600, 720), moves=True)
    assert again[0] <= last + PAUSES.most_s
    assert again[1] - again[0] == PAUSES.least_s


def test_a_cluster_that_tells_nothing_is_asked_ever_more_rarely() -> None:
    scene = Scene()
    assert sum(len(scene.due([WEB], second)) for second in range(600)) < 20


def test_what_is_well_again_is_forgotten_and_begins_anew() -> None:
    scene = Scene()
    looked(scene, range(600), moves=False)
    assert scene.due([API], 600) == []
    assert looked(scene, range(601, 605), moves=False) == [603]
