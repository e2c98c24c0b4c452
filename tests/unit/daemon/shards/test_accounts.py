"""What the guards of a shard make of what the leader tells. Source: ADR 22."""

from __future__ import annotations

from reconciler.daemon.shards.accounts import others_of
from reconciler.model.ledger import Loss
from reconciler.model.refs import GVK, Identity
from reconciler.stages.deletion import NOBODY
from reconciler.stages.shards import Account, Due, Guarded

WEB = Identity("apps", "Deployment", "demo", "web")
DUE = Due(action="delete", cluster="m2", gvk=GVK("apps", "v1", "Deployment"), identity=WEB)
LOSS = Loss(cluster="m2", identity=WEB, time="2026-11-24T10:00:00Z")
OF_B = Guarded(revision="2", due=(DUE,), made=(LOSS,), held_since={"m2": LOSS.time}, managed={"m2": 7})


def leader(**guarded: Guarded) -> Account:
    return Account(revision="2", guarded=guarded)


def test_before_the_leader_tells_of_all_shards_nothing_passes() -> None:
    assert others_of(None, "a", ("a", "b", "c"), "2").awaited == "shard b, c"
    assert others_of(leader(b=OF_B), "a", ("a", "b", "c"), "2").awaited == "shard c"
    assert others_of(leader(b=OF_B), "a", ("a", "b"), "3").awaited == "shard b", "b told of another revision"


def test_what_the_others_delete_and_have_is_counted_and_what_is_ours_is_not_counted_twice() -> None:
    found = others_of(leader(a=Guarded(revision="1", due=(DUE,)), b=OF_B), "a", ("a", "b"), "2")
    assert not found.awaited
    assert [(change.cluster, change.identity, change.guarded) for change in found.due] == [("m2", WEB, True)]
    assert found.managed == {"m2": 7}
    assert found.losses.made == (LOSS,)


def test_a_single_shard_waits_for_nobody() -> None:
    assert others_of(None, "a", ("a",), "2") == NOBODY


def test_an_action_of_another_version_is_left_out() -> None:
    told = Guarded(revision="2", due=(Due(action="vanish", cluster="m2", gvk=DUE.gvk, identity=WEB),))
    assert others_of(leader(b=told), "a", ("a", "b"), "2").due == ()
