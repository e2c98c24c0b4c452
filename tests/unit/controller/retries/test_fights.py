from __future__ import annotations

import pytest

from reconciler.api.ledger import Event, EventKind
from reconciler.api.plan import Action, Cause, Change, FieldChange
from reconciler.api.refs import GVK, Identity
from reconciler.controller import timing
from reconciler.controller.retries.conflicts import THE_OBJECT, UNDONE_MAX, WriteConflicts
from reconciler.state import THE_SERVER

APP = Identity("", "ConfigMap", "demo", "app")
COPY = ("m1", APP)
SUBJECT = f"{APP} @ m1"
BY_HAND = {"data.value": ("kubectl",)}
NOW = "2026-11-21T10:00:00Z"


def change(*paths: str, cause: Cause = Cause.DRIFT) -> Change:
    fields = tuple(FieldChange(path=path, before="1", after="2") for path in paths)
    gvk = GVK("", "v1", "ConfigMap")
    return Change(action=Action.UPDATE, cluster="m1", gvk=gvk, identity=APP, cause=cause, fields=fields)


def undone(fights: WriteConflicts, at_s: float, **undone: tuple[str, ...]) -> bool:
    return fights.undone("m1", APP, undone or BY_HAND, at_s)


def fought(fights: WriteConflicts, at_s: float) -> bool:
    """As often as makes a fight, all at one time; whether the last one made it so."""
    return [undone(fights, at_s) for _ in range(UNDONE_MAX)][-1]


def test_a_few_times_are_no_fight() -> None:
    fights = WriteConflicts()
    assert not any(undone(fights, 0) for _ in range(UNDONE_MAX - 1))
    assert fights.pause_left_s("m1", APP, 0) == 0


@pytest.mark.parametrize("apart_s", [1, 600, 6_000, 86_400])
def test_a_field_that_is_undone_with_long_pauses_is_a_fight_too_and_told_as_one(apart_s: float) -> None:
    fights = WriteConflicts()
    begun = [undone(fights, number * apart_s) for number in range(UNDONE_MAX * 3)]
    assert begun.index(True) == UNDONE_MAX - 1
    assert begun.count(True) == 1
    last_s = (len(begun) - 1) * apart_s
    assert fights.ongoing(last_s + 1.9 * apart_s) == {SUBJECT}


def test_what_is_undone_now_and_then_is_no_fight() -> None:
    fights = WriteConflicts()
    assert not any(
        undone(fights, number * timing.UNDONE_COUNTED_S / (UNDONE_MAX - 2)) for number in range(UNDONE_MAX * 2)
    )


def test_each_field_is_counted_by_itself() -> None:
    fights = WriteConflicts()
    for number in range(UNDONE_MAX - 1):
        assert not undone(fights, number, one=())
        assert not undone(fights, number, two=())
    assert undone(fights, 10, one=())
    assert fights.leaves_alone(change("one"), 10)
    assert not fights.leaves_alone(change("one", "two"), 10)
    assert not fights.leaves_alone(change(), 10), "that it was deleted is another thing"


@pytest.mark.parametrize(
    ("altered", "differs"),
    [
        ("metadata.annotations", "metadata.annotations['fleet.reconciler/owner']"),
        ("spec.containers[name=web].image", "spec.containers"),
    ],
)
def test_a_part_of_a_field_is_left_alone_with_it(altered: str, differs: str) -> None:
    fights = WriteConflicts()
    for _ in range(UNDONE_MAX):
        fights.undone("m1", APP, {altered: (THE_SERVER,)}, 0)
    for cause in (Cause.ADOPTION, Cause.DRIFT):
        assert fights.leaves_alone(change(differs, cause=cause), 1)
    assert not fights.leaves_alone(change(differs, cause=Cause.DECLARED), 1), "a new commit is tried at once"
    assert not fights.leaves_alone(change(f"{altered}Other"), 2)
    assert not fights.paused(2), "nothing of it differs any more"


def test_a_fight_pauses_the_copy_and_no_other() -> None:
    fights = WriteConflicts()
    assert fought(fights, 0)
    assert fights.pause_left_s("m1", APP, 0) == 60
    assert fights.pause_left_s("m1", APP, 45) == 15
    assert fights.pause_left_s("m1", APP, 61) == 0
    assert fights.pause_left_s("m2", APP, 0) == 0


def test_who_fights_over_what_is_told_with_the_time_of_the_next_try() -> None:
    fights = WriteConflicts()
    fought(fights, 0)
    assert fights.current(timing.SETTLING_S - 1, NOW), "whoever undid it so often does it again"
    assert not fights.current(30, NOW), "nobody has, so that it is as the store wants it"
    assert fights.leaves_alone(change("data.value"), 30)
    (told,) = fights.current(30, NOW).values()
    assert told.why == ("kubectl keeps undoing our changes of data.value; it is left alone until 2026-11-21T10:00:30Z")
    for _ in range(UNDONE_MAX):
        fights.undone("m2", APP, {THE_OBJECT: ()}, 0)
    fights.compared(("m2", APP), [THE_OBJECT], 1)
    assert fights.current(30, NOW)["m2", APP].why.startswith("somebody keeps undoing our changes; it is left")


def test_each_time_in_a_fight_pauses_twice_as_long_up_to_an_hour() -> None:
    fights, at_s, pauses = WriteConflicts(), 0.0, []
    fought(fights, at_s)
    for _ in range(8):
        pauses.append(fights.pause_left_s("m1", APP, at_s))
        at_s += pauses[-1]
        assert not undone(fights, at_s), "it is the same fight"
    assert pauses == [60, 120, 240, 480, 960, 1920, 3600, 3600]


def test_what_the_server_changed_and_lets_pass_then_is_counted_once_and_left_alone_no_longer() -> None:
    fights, server = WriteConflicts(), {"data.value": (THE_SERVER,)}
    for _ in range(UNDONE_MAX):
        fights.undone("m1", APP, server, 0)
    assert fights.leaves_alone(change("data.value"), 59)
    assert fights.end_altered("m1", APP, ["data.value", "data.other"], 60) == {"data.value"}
    assert not fights.current(60, NOW)
    assert not fights.end_altered("m1", APP, ["data.value"], 61), "who changes it now is somebody else"
    assert fights.ongoing(60 + timing.QUIET_S - 1), "it may begin again"


@pytest.mark.parametrize("who", ["kubectl", THE_SERVER])
def test_what_was_left_alone_and_is_as_wanted_again_is_left_alone_no_longer(who: str) -> None:
    fights = WriteConflicts()
    fights.undone("m1", APP, {"data.value": (who,)}, 0)
    assert [undone(fights, 0, **{"data.value": (who,)}) for _ in range(UNDONE_MAX - 1)][-1]
    if who != THE_SERVER:
        fights.compared(COPY, [], 1)
        assert fights.paused(1) == (COPY,), "our own write is what is there, and may be undone once more"
    fights.compared(COPY, ["data.value"], 2)
    assert fights.paused(2) == (COPY,)
    fights.compared(COPY, ["data.other"], 3)
    assert not fights.paused(3)
    assert fights.ongoing(4), "it may begin again"
    assert not undone(fights, 5, **{"data.value": (who,)}), "it is the same fight"
    assert fights.pause_left_s("m1", APP, 5) == 120


def test_peace_makes_the_next_fight_a_first_one() -> None:
    fights = WriteConflicts()
    fought(fights, 0)
    assert fights.ongoing(60 + timing.QUIET_S - 1)
    assert not fights.ongoing(60 + timing.QUIET_S)
    assert fought(fights, 60 + timing.QUIET_S)
    assert fights.pause_left_s("m1", APP, 60 + timing.QUIET_S) == 60


def event(kind: EventKind, at: str, **data: object) -> Event:
    return Event(round=1, time=f"2026-11-21T{at}:00Z", kind=kind, subject=SUBJECT, data=data)


def healed(at: str) -> Event:
    return event(EventKind.DRIFT, at, outcome="healed", who="kubectl", fields=["data.value"])


@pytest.mark.parametrize(
    ("events", "is_fought_next"),
    [
        ([], False),
        ([healed(f"09:0{number}") for number in range(UNDONE_MAX - 1)], True),
        ([healed(f"09:0{number}") for number in range(UNDONE_MAX - 2)], False),
        ([event(EventKind.DRIFT, "09:00", outcome="left", fields=["data.value"])] * 9, False),
        ([event(EventKind.FAILED, "09:00", altered=["data.value"])] * (UNDONE_MAX - 1), True),
        ([event(EventKind.FAILED, "09:00", altered=["data.value"]),
          event(EventKind.DRIFT, "09:01", outcome="healed", who="the server", fields=["data.value"])] * 2, False),
        ([event(EventKind.FAILED, "09:00", error="no")] * 9, False),
        ([event(EventKind.FIGHT_DETECTED, "09:59", who="kubectl", fields=["data.value"]),
          event(EventKind.FIGHT_OVER, "09:59")], False),
    ],
)  # fmt: skip
def test_what_was_counted_before_a_start_is_read_from_history(events: list[Event], is_fought_next: bool) -> None:
    fights = WriteConflicts()
    fights.remember(events, NOW, 5.0)
    assert not fights.ongoing(5)
    assert undone(fights, 5) is is_fought_next


def test_a_fight_of_before_a_start_goes_on() -> None:
    fights = WriteConflicts()
    fights.remember([event(EventKind.FIGHT_DETECTED, "09:59", who="kubectl", fields=["data.value"])], NOW, 5.0)
    assert fights.ongoing(5) == {SUBJECT}
    assert not undone(fights, 5), "it is told already"
    assert fights.pause_left_s("m1", APP, 5) == 120
