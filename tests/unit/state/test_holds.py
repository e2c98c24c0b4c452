"""A hold says who lets the change pass, whatever its words are."""

from __future__ import annotations

import pytest

from reconciler.api.plan import Action, Cause, Change, HeldBy, Hold
from reconciler.api.refs import GVK, Identity
from reconciler.observations import is_waiting
from reconciler.placement import closed_by_order

APP = Identity("", "ConfigMap", "demo", "app")
FREE = Change(action=Action.CREATE, cluster="m1", gvk=GVK("", "v1", "ConfigMap"), identity=APP, cause=Cause.PLACEMENT)


@pytest.mark.parametrize("by", HeldBy)
def test_words_decide_nothing(by: HeldBy) -> None:
    held = Change(action=FREE.action, cluster="m1", gvk=FREE.gvk, identity=APP, cause=FREE.cause,
                  hold=Hold(by, "waits for guard: dispatching is suspended"))  # fmt: skip
    assert held.waits_for_person is (by in (HeldBy.GUARD, HeldBy.SUSPENDED, HeldBy.REPLACEMENT))
    assert is_waiting(held) is (by is HeldBy.MOVE)


def test_what_is_not_held_waits_for_nobody() -> None:
    assert not FREE.waits_for_person
    assert not is_waiting(FREE)
    assert FREE.held is None


@pytest.mark.parametrize("scope", ["fleet", "cluster m1", "ConfigMap demo/app"])
def test_the_order_of_a_person_is_named(scope: str) -> None:
    assert closed_by_order({scope: "closed by li"}, APP, "m1") == Hold(HeldBy.SUSPENDED, "closed by li", scope)
    assert closed_by_order({"cluster m2": "closed by li"}, APP, "m1") is None
