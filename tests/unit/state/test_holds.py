"""What holds a change, and whether a person has to do something about it."""

from __future__ import annotations

import pytest

from reconciler.api.plan import Action, Cause, Change
from reconciler.api.refs import GVK, Identity
from reconciler.state import HeldBy, held_by, waits_for_person

ORDERS = {"cluster m1": "cluster m1 is suspended by li: freeze"}


def change(why: str, action: Action = Action.UPDATE, cause: Cause = Cause.DECLARED) -> Change:
    identity = Identity("", "ConfigMap", "demo", "app")
    return Change(action=action, cluster="m1", gvk=GVK("", "v1", "ConfigMap"), identity=identity, cause=cause, held=why)


@pytest.mark.parametrize(
    ("held", "by", "is_for_person"),
    [
        (change("guard: 12 deletions", Action.DELETE, Cause.REMOVED), HeldBy.GUARD, True),
        (change(ORDERS["cluster m1"]), HeldBy.SUSPENDED, True),
        (change("dispatching is suspended by PropagationPolicy demo/app"), HeldBy.SUSPENDED, True),
        (change("waits for m2 healthy", Action.DELETE, Cause.PLACEMENT), HeldBy.MOVE, False),
        (change("spec.selector cannot be changed in place", Action.REPLACE), HeldBy.REPLACEMENT, True),
        (change("drift is left as it is", cause=Cause.DRIFT), HeldBy.SETTINGS, False),
        (change("waits until ConfigMap demo/other has left", Action.DELETE, Cause.DEPENDENCY), HeldBy.OTHERS, False),
    ],
)
def test_a_held_change_names_who_lets_it_pass(held: Change, by: HeldBy, is_for_person: bool) -> None:
    assert (held_by(held, ORDERS), waits_for_person(held, ORDERS)) == (by, is_for_person)


def test_what_is_not_held_waits_for_nobody() -> None:
    free = Change(action=Action.CREATE, cluster="m1", gvk=GVK("", "v1", "ConfigMap"),
                  identity=Identity("", "ConfigMap", "demo", "app"), cause=Cause.DECLARED)  # fmt: skip
    assert not waits_for_person(free, ORDERS)
