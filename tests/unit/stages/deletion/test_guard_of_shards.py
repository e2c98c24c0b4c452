"""Guards count over all processes of a fleet. Source: design#guards; ADR 22."""

from __future__ import annotations

from msgspec.structs import replace

from reconciler.model.fleet import Guards
from reconciler.model.ledger import Loss, Losses
from reconciler.model.plan import Action, Cause, Change
from reconciler.model.refs import GVK, Identity
from reconciler.stages.deletion import Others, guard

NOW = "2026-11-24T10:00:00Z"
GUARDS = Guards(max_deletes=4, max_delete_percent=100)
HERE, THERE = {"m1": 20}, {"m2": 20}


def deletion(cluster: str, number: int, *, action: Action = Action.DELETE, confirm: str = "") -> Change:
    return Change(
        action=action,
        cluster=cluster,
        gvk=GVK("", "v1", "ConfigMap"),
        identity=Identity("", "ConfigMap", "demo", f"c{number}"),
        cause=Cause.REMOVED,
        guarded=action is Action.DELETE,
        confirm=confirm,
    )


OWN = tuple(deletion("m1", number) for number in range(3))
OTHER = tuple(deletion("m2", number) for number in range(3))


def test_what_is_due_in_other_shards_counts() -> None:
    alone = guard(OWN, GUARDS, HERE, NOW)
    assert [change.held for change in alone.changes] == [None] * 3
    together = guard(OWN, GUARDS, HERE, NOW, others=Others(due=OTHER, managed=THERE))
    assert {change.held for change in together.changes} == {
        "guard: 6 deletions and releases over the fleet, at most 4 pass"
    }
    assert [change.cluster for change in together.changes] == ["m1"] * 3


def test_what_was_lost_in_other_shards_counts() -> None:
    made = tuple(Loss(cluster="m2", identity=change.identity, time=NOW) for change in OTHER)
    found = guard(OWN, GUARDS, HERE, NOW, others=Others(losses=Losses(made=made), managed=THERE))
    assert found.digest


def test_all_shards_have_one_digest_and_one_confirmation() -> None:
    here = guard(OWN, GUARDS, HERE, NOW, others=Others(due=OTHER, managed=THERE))
    there = guard(OTHER, GUARDS, THERE, NOW, others=Others(due=OWN, managed=HERE))
    whole = guard((*OWN, *OTHER), GUARDS, {**HERE, **THERE}, NOW)
    assert here.digest == there.digest == whole.digest
    agreed = replace(GUARDS, confirm=here.digest)
    passed = guard(OWN, agreed, HERE, NOW, others=Others(due=OTHER, managed=THERE))
    assert [change.held for change in passed.changes] == [None] * 3
    assert passed.confirmed == {(change.cluster, change.identity) for change in OWN}


def test_nothing_is_deleted_before_all_have_told_what_they_delete() -> None:
    made = replace(deletion("m1", 9), action=Action.CREATE, guarded=False)
    found = guard((*OWN, made), GUARDS, HERE, NOW, others=Others(awaited="shard b"))
    assert [change.held for change in found.changes] == [
        *["not before shard b has told what it deletes by this revision"] * 3,
        None,
    ]
    assert found.is_awaiting
    assert not found.digest


def test_what_takes_over_here_waits_for_the_confirmation_of_what_leaves_there() -> None:
    arriving = deletion("m1", 0, action=Action.CREATE)
    leaving = replace(deletion("m2", 0), guarded=False, confirm="volumes stay behind")
    found = guard((arriving,), GUARDS, HERE, NOW, others=Others(due=(leaving,), managed=THERE))
    assert found.changes[0].held == "guard: volumes stay behind"
