from __future__ import annotations

from reconciler.daemon.pace.fights import HEALS_MAX, WINDOW_S, Fights
from reconciler.model.refs import Identity

APP = Identity("", "ConfigMap", "demo", "app")


def fought(fights: Fights, at_s: float) -> bool:
    """As many heals as make a fight, all at one time; whether the last one made it so."""
    return [fights.healed("m1", APP, at_s) for _ in range(HEALS_MAX)][-1]


def test_a_few_heals_are_no_fight() -> None:
    fights = Fights()
    assert not any(fights.healed("m1", APP, 0) for _ in range(HEALS_MAX - 1))
    assert fights.pause_left_s("m1", APP, 0) == 0


def test_heals_far_apart_are_no_fight() -> None:
    fights = Fights()
    assert not any(fights.healed("m1", APP, number * WINDOW_S) for number in range(HEALS_MAX * 2))


def test_a_fight_pauses_the_copy_and_no_other() -> None:
    fights = Fights()
    assert fought(fights, 0)
    assert fights.pause_left_s("m1", APP, 0) == 60
    assert fights.pause_left_s("m1", APP, 45) == 15
    assert fights.pause_left_s("m1", APP, 61) == 0
    assert fights.pause_left_s("m2", APP, 0) == 0


def test_each_fight_in_a_row_pauses_twice_as_long_up_to_an_hour() -> None:
    fights, at_s, pauses = Fights(), 0.0, []
    for _ in range(8):
        fought(fights, at_s)
        pauses.append(fights.pause_left_s("m1", APP, at_s))
        at_s += pauses[-1]
    assert pauses == [60, 120, 240, 480, 960, 1920, 3600, 3600]


def test_peace_makes_the_next_fight_a_first_one() -> None:
    fights = Fights()
    fought(fights, 0)
    assert fought(fights, 60 + 2 * WINDOW_S)
    assert fights.pause_left_s("m1", APP, 60 + 2 * WINDOW_S) == 60
