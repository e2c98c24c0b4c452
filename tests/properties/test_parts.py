"""Processes that each apply to a part of the clusters plan, together, what one process plans for all of them.

Source: ADR 24. It is so of what each can decide by itself, and the rest stays as it is.
"""

from __future__ import annotations

import json
from collections.abc import Collection

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from reconciler.api.plan import Action, Change
from reconciler.api.refs import Identity
from reconciler.fleet_snapshot import FleetSnapshot
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.planner import copies_in, plan_round
from reconciler.scheduler import schedule_fleet, undecided
from tests.examples import examples
from tests.properties.applied_members import AppliedMembers
from tests.properties.test_one_plan import Edit, applied, commits, written
from tests.properties.test_schedule_tables import ALL_OBSERVED, BASE, CLUSTERS, FIXED, NOW, fleet_of

PARTS = (frozenset({"m1"}), frozenset({"m2", "m3", "m4"}))
GENEROUS = {
    "apiVersion": "fleet.reconciler/v1alpha1", "kind": "Fleet", "metadata": {"name": "f"},
    "spec": {"guards": {"maxDeletes": 10_000, "maxDeletePercent": 100}},
}  # fmt: skip
STORE: dict[str, bytes] = {**FIXED, "fleet.yaml": json.dumps(GENEROUS).encode()} | {
    path: data for path, data in map(written, BASE) if data is not None
}


def plan_of(world: FleetSnapshot, own: frozenset[str]) -> tuple[tuple[Change, ...], frozenset[Identity]]:
    """The changes of a process that applies to `own`, and what it leaves as it is: it sees no other cluster."""
    seen = {name: found for name, found in world.observations.clusters.items() if name in own}
    observations = replace(world.observations, clusters=seen)
    ledger = {name: rows for name, rows in world.journal.ledger.items() if name in own}
    schedule = schedule_fleet(world.fleet, observations, NOW, interpreters=BUILT_IN_KINDS, copies=copies_in(ledger))
    left = undecided(schedule, own, ledger)
    part = replace(
        world,
        members={name: member for name, member in world.members.items() if name in own},
        journal=replace(world.journal, ledger=ledger),
        observations=observations,
        elsewhere=frozenset(world.fleet.clusters.keys() - own),
        undecided=left,
    )
    return plan_round(part, schedule).plan.changes, frozenset(left)


def taken(changes: Collection[Change]) -> set[tuple[str, Identity]]:
    """Return what runs pods and is taken away at once."""
    return {
        (change.cluster, change.identity)
        for change in changes
        if change.identity.kind in ("Deployment", "Job")
        and change.held is None
        and change.action in (Action.DELETE, Action.RELEASE, Action.REPLACE)
    }


def copies_of(changes: Collection[Change], but: Collection[Identity]) -> set[tuple[str, Identity]]:
    return {(change.cluster, change.identity) for change in changes if change.identity not in but}


revisions = commits()


@settings(max_examples=examples(75), deadline=None)
@given(revisions, revisions, st.sampled_from((0, 1, 2, 4, 5)))
def test_the_parts_are_the_whole_of_what_each_can_decide(made: list[Edit], edited: list[Edit], kind: int) -> None:
    files = applied(STORE, made)
    bed = AppliedMembers(CLUSTERS, ALL_OBSERVED[kind])
    bed.settle(fleet_of(files, {}))
    bed.look()
    world = bed.world(fleet_of(applied(files, edited), {}))
    whole = plan_round(world).plan.changes
    found = [plan_of(world, own) for own in PARTS]
    parts = [change for changes, _ in found for change in changes]
    for own, (changes, left) in zip(PARTS, found, strict=True):
        assert {change.cluster for change in changes} <= own
        assert not {change.identity for change in changes} & left
    # Nothing is taken away, and nothing comes, that one process would not take away or bring.
    assert taken(parts) <= taken(whole)
    # The Namespace of something follows it, and comes where it may come.
    spaces = {change.identity for change in parts if change.identity.kind == "Namespace"}
    assert copies_of(parts, spaces) <= copies_of(whole, ())
    undecidable = {identity for _, left in found for identity in left}
    undecidable |= {Identity("", "Namespace", "", identity.namespace) for identity in undecidable}
    assert copies_of(parts, undecidable) == copies_of(whole, undecidable)
