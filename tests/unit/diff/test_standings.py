"""Owners of the objects of clusters, and the places of our copies."""

from __future__ import annotations

from typing import Any

from reconciler.api.clusters import LiveObject, Member, NotRead, Read
from reconciler.api.fleet import Fleet, FleetSettings
from reconciler.api.ledger import AppliedRow, JournalSnapshot
from reconciler.api.policies import Flavor
from reconciler.api.refs import GVK, Identity, PolicyRef
from reconciler.diff import OwnershipIndex
from reconciler.fleet_snapshot import FleetSnapshot
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.ownership import ObjectOwner, OwnershipRecord, mark, written_terms

CONFIG_MAP = GVK("", "v1", "ConfigMap")
OURS, THEIRS = Identity("", "ConfigMap", "demo", "ours"), Identity("", "ConfigMap", "demo", "theirs")
OWNER = OwnershipRecord(policy=PolicyRef("PropagationPolicy", "demo", "p"), flavor=Flavor.ACK, replicas=3)


def live(identity: Identity, body: dict[str, Any]) -> LiveObject:
    return LiveObject(gvk=CONFIG_MAP, identity=identity, uid="u", resource_version="1", body=body)


READ = Read(
    name="m1",
    objects={
        OURS: live(OURS, mark({}, "f", written_terms(OWNER))),
        THEIRS: live(THEIRS, mark({}, "another", written_terms(OWNER))),
    },
)
ROWS = {name: {OURS: AppliedRow(cluster=name, gvk=CONFIG_MAP, identity=OURS, replicas=2)} for name in ("m1", "m2")}
MEMBERS: dict[str, Member] = {"m1": READ, "m2": NotRead(name="m2", why="gone"), "m3": Read(name="m3")}


def snapshot_of(members: dict[str, Member], only: frozenset[Identity] | None = None) -> FleetSnapshot:
    return FleetSnapshot(
        fleet=Fleet(revision="r", settings=FleetSettings(name="f")),
        interpreters=BUILT_IN_KINDS,
        now="",
        members=members,
        journal=JournalSnapshot(ledger=ROWS),
        only=only,
    )


def test_copies_are_what_is_ours_where_it_was_read_and_what_was_applied_where_it_was_not() -> None:
    standings = OwnershipIndex(snapshot_of(MEMBERS))
    assert standings.of(OURS).copies == {"m1": 3, "m2": 2}
    assert standings.of(THEIRS).copies == {}


def test_tells_whose_each_object_that_was_seen_is() -> None:
    standings = OwnershipIndex(snapshot_of(MEMBERS))
    found = [standings.of(identity).owners["m1"].standing for identity in (OURS, THEIRS)]
    assert found == [ObjectOwner.OURS, ObjectOwner.OTHER_FLEET]
    assert standings.of(OURS).owners.keys() == {"m1"}


def test_looks_at_nothing_but_what_is_asked_for() -> None:
    standings = OwnershipIndex(snapshot_of(MEMBERS, only=frozenset({THEIRS})))
    assert list(standings.identities) == [THEIRS]
    assert standings.of(OURS).copies == {}
    assert standings.of(OURS).owners == {}
    assert standings.of(THEIRS).owners.keys() == {"m1"}


def test_what_is_recorded_and_cannot_be_seen_now_may_be_there_still() -> None:
    hidden: dict[str, Member] = {
        "m1": Read(name="m1", unread={OURS: "forbidden"}), "m2": Read(name="m2", under_way=frozenset({OURS, THEIRS}))
    }  # fmt: skip
    standings = OwnershipIndex(snapshot_of(hidden))
    assert standings.of(OURS).copies == {"m1": 2, "m2": 2}
    assert standings.of(THEIRS).copies == {}
