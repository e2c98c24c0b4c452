"""When copies that are not well are looked at again: soon while something moves, else ever more rarely."""

from __future__ import annotations

import itertools

from reconciler.daemon.watches.looks import PAUSE_MAX_S, PAUSE_MIN_S, Copy, Looks
from reconciler.model.refs import Identity

WEB: Copy = ("m1", Identity("apps", "Deployment", "demo", "web"))
API: Copy = ("m2", Identity("apps", "Deployment", "demo", "api"))


def looked(looks: Looks, seconds: range, *, moves: bool) -> list[int]:
    """The seconds at which it was looked. `moves`: each look shows another version."""
    found = []
    for second in seconds:
        for copy in looks.due([WEB], second):
            found.append(second)
            looks.saw(copy, str(second) if moves else "1", second)
    return found


def test_what_moves_is_looked_at_every_two_seconds() -> None:
    assert looked(Looks(), range(60), moves=True) == list(range(2, 60, 2))


def test_what_stays_as_it_is_is_looked_at_ever_more_rarely_and_never_forgotten() -> None:
    found = looked(Looks(), range(600), moves=False)
    pauses = [after - before for before, after in itertools.pairwise(found)]
    assert pauses[0] == PAUSE_MIN_S
    assert pauses == sorted(pauses)
    assert pauses[-1] == PAUSE_MAX_S
    assert len(found) < 20


def test_what_moves_again_is_looked_at_soon_again() -> None:
    looks = Looks()
    last = looked(looks, range(600), moves=False)[-1]
    again = looked(looks, range(600, 720), moves=True)
    assert again[0] <= last + PAUSE_MAX_S
    assert again[1] - again[0] == PAUSE_MIN_S


def test_a_cluster_that_tells_nothing_is_asked_ever_more_rarely() -> None:
    looks = Looks()
    assert sum(len(looks.due([WEB], second)) for second in range(600)) < 20


def test_what_is_well_again_is_forgotten_and_begins_anew() -> None:
    looks = Looks()
    looked(looks, range(600), moves=False)
    assert looks.due([API], 600) == []
    assert looked(looks, range(601, 605), moves=False) == [603]
