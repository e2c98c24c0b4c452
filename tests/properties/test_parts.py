"""What processes plan that apply to a part of the clusters each is, together, what one process plans for all of them.

Source: ADR 21. With observations of all clusters, of everything; without, of what each can decide by itself.
"""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from reconciler.engine import World, decide, plan_round
from reconciler.interpreters.registry import BUILT_IN_KINDS
from reconciler.model.fleet import Fleet
from reconciler.model.observation import Observations
from reconciler.model.plan import Action, Change, Plan
from reconciler.model.refs import Identity
from reconciler.stages.decision.undecided import undecided
from tests.examples import examples
from tests.properties.applied_members import AppliedMembers
from tests.properties.test_decide_tables import ALL_OBSERVED, BASE, CLUSTERS, FIXED, NOW, fleet_of
from tests.properties.test_one_plan import Edit, applied, commits, written

PARTS = (frozenset({"m1"}), frozenset({"m2", "m3", "m4"}))
GENEROUS = {
    "apiVersion": "fleet.reconciler/v1alpha1", "kind": "Fleet", "metadata": {"name": "f"},
    "spec": {"guards": {"maxDeletes": 10_000, "maxDeletePercent": 100}},
}  # fmt: skip
STORE: dict[str, bytes] = {**FIXED, "fleet.yaml": json.dumps(GENEROUS).encode()} | {
    path: data for path, data in map(written, BASE) if data is not None
}


def part_of(world: World, own: frozenset[str], observations: Observations) -> World:
    """The world as a process finds it that applies to `own`: no other cluster is a member, or in its journal."""
    return replace(
        world,
        members={name: member for name, member in world.members.items() if name in own},
        ledger={name: rows for name, rows in world.ledger.items() if name in own},
        observations=observations,
        elsewhere=frozenset(world.fleet.clusters.keys() - own),
    )


def without_others(observations: Observations, own: frozenset[str]) -> Observations:
    """What a process sees by itself."""
    seen = {name: found for name, found in observations.clusters.items() if name in own}
    return replace(observations, clusters=seen)


def plan_of(world: World, own: frozenset[str], *, is_given: bool) -> tuple[Plan, frozenset[Identity]]:
    """The plan of one process, and what it leaves as it is."""
    observations = world.observations if is_given else without_others(world.observations, own)
    part = part_of(world, own, observations)
    copies: dict[Identity, set[str]] = {}
    for cluster, rows in part.ledger.items():
        for identity in rows:
            copies.setdefault(identity, set()).add(cluster)
    decision = decide(part.fleet, observations, NOW, interpreters=BUILT_IN_KINDS, copies=copies)
    left = {} if is_given else undecided(decision, own, part.ledger)
    # The Namespace of something follows it, and comes where it may come.
    spaces = {Identity("", "Namespace", "", identity.namespace) for identity in left}
    return plan_round(replace(part, undecided=left), NOW, decision).plan, frozenset({*left, *spaces})


def takes_away(change: Change) -> bool:
    """Whether something that runs pods is taken away at once: of the rest, nobody tells how it is elsewhere."""
    return (
        change.identity.kind in ("Deployment", "Job")
        and change.held is None
        and change.action in (Action.DELETE, Action.RELEASE, Action.REPLACE)
    )


def copies_of(changes: list[Change], *left: Any) -> set[tuple[str, Identity]]:
    return {(change.cluster, change.identity) for change in changes if change.identity not in frozenset().union(*left)}


def check(base: Fleet, head: Fleet, kind: int, *, is_given: bool) -> None:
    bed = AppliedMembers(CLUSTERS, ALL_OBSERVED[kind])
    bed.settle(base)
    bed.look()
    world = bed.world(head)
    whole = plan_round(world, NOW).plan
    found = [plan_of(world, own, is_given=is_given) for own in PARTS]
    parts = [change for plan, _ in found for change in plan.changes]
    left = [kept for _, kept in found]
    assert not {change.cluster for change in found[0][0].changes} & {change.cluster for change in found[1][0].changes}
    assert not any(c.identity in kept and c.identity.kind != "Namespace" for plan, kept in found for c in plan.changes)
    # Nothing is taken away, and nothing comes, that one process would not take away or bring.
    assert copies_of([c for c in parts if takes_away(c)]) <= copies_of([c for c in whole.changes if takes_away(c)])
    spaces = {change.identity for change in parts if change.identity.kind == "Namespace"}
    assert copies_of(parts, spaces) <= copies_of(list(whole.changes))
    assert copies_of(parts, *left) == copies_of(list(whole.changes), *left)


revisions = commits()


@settings(max_examples=examples(150), deadline=None)
@given(revisions, revisions, st.sampled_from((1, 2, 4, 5)))
def test_with_observations_of_all_clusters_the_parts_are_the_whole(
    made: list[Edit], edited: list[Edit], kind: int
) -> None:
    files = applied(STORE, made)
    check(fleet_of(files, {}), fleet_of(applied(files, edited), {}), kind, is_given=True)


@settings(max_examples=examples(150), deadline=None)
@given(revisions, revisions, st.sampled_from((0, 1, 2, 4, 5)))
def test_without_them_the_parts_are_the_whole_of_what_can_be_decided(
    made: list[Edit], edited: list[Edit], kind: int
) -> None:
    files = applied(STORE, made)
    check(fleet_of(files, {}), fleet_of(applied(files, edited), {}), kind, is_given=False)
