"""A suspension of a policy that a commit takes away counts until the next one. Source: design#guards-stricter."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from reconciler.api.fleet import Fleet, FleetSettings, LooseningHold
from reconciler.api.ledger import GuardsInForce
from reconciler.api.policies import Flavor, PropagationPolicy, Suspension
from reconciler.api.problem import NOWHERE
from reconciler.api.refs import PolicyRef
from reconciler.controller.store_follower import concerns_everything
from reconciler.placement import suspended_by
from reconciler.planner import with_former_suspensions
from reconciler.planner.guard import judged_by
from reconciler.scheduler.following import inherited_policy

NOW = "2026-11-21T10:00:00Z"


def suspending(revision: str, suspension: Suspension, **settings: Any) -> Fleet:
    ref = PolicyRef("PropagationPolicy", "demo", "web")
    policy = PropagationPolicy(ref=ref, flavor=Flavor.KARMADA, source=NOWHERE, suspension=suspension)
    return Fleet(revision=revision, settings=FleetSettings(**settings), propagation=(policy,))


def suspended(first: Fleet, *others: Fleet) -> set[str]:
    """The clusters in which the policy is not written, by the last of some revisions that came one after the other."""
    record, last = judged_by(None, first, NOW), first
    for fleet in others:
        last = with_former_suspensions(fleet, record)
        record = judged_by(record, last, NOW)
        assert with_former_suspensions(fleet, record) == last, "a restart changes nothing"
        assert msgspec.json.decode(msgspec.json.encode(record), type=GuardsInForce) == record
    (policy,) = last.propagation
    return {name for name in ("m1", "m2") if suspended_by(policy, name) is not None}


EVERYWHERE, IN_M1, IN_M2 = Suspension(dispatching=True), Suspension(clusters=("m1",)), Suspension(clusters=("m2",))
SUSPENSIONS: dict[str, tuple[set[str], tuple[Fleet, ...]]] = {
    "it goes": ({"m1", "m2"}, (suspending("r1", EVERYWHERE), suspending("r2", Suspension()))),
    "a revision later": (set(), (suspending("r1", EVERYWHERE), suspending("r2", Suspension()),
                                 suspending("r3", Suspension()))),
    "for one cluster": ({"m1", "m2"}, (suspending("r1", EVERYWHERE), suspending("r2", IN_M1))),
    "for another cluster": ({"m1", "m2"}, (suspending("r1", IN_M1), suspending("r2", IN_M2))),
    "for another cluster, a revision later": (
        {"m2"}, (suspending("r1", IN_M1), suspending("r2", IN_M2), suspending("r3", IN_M2)),
    ),
    "for every cluster": ({"m1", "m2"}, (suspending("r1", IN_M1), suspending("r2", EVERYWHERE))),
    "it comes": ({"m1"}, (suspending("r1", Suspension()), suspending("r2", IN_M1))),
    "a person confirms": (set(), (suspending("r1", EVERYWHERE), suspending("r2", Suspension(), review_confirm="d1"))),
    "loosening is allowed by both": (
        set(), (suspending("r1", EVERYWHERE, loosening=LooseningHold.ALLOW),
                suspending("r2", Suspension(), loosening=LooseningHold.ALLOW)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SUSPENSIONS)
def test_what_either_revision_suspends_is_not_written(name: str) -> None:
    wanted, fleets = SUSPENSIONS[name]
    assert suspended(*fleets) == wanted


def test_a_dependency_is_suspended_where_each_owner_is_now_or_was_before() -> None:
    def owner(suspension: Suspension) -> PropagationPolicy:
        return suspending("r1", suspension).propagation[0]

    (lifted,) = with_former_suspensions(
        suspending("r2", Suspension()), judged_by(None, suspending("r1", IN_M1), NOW)
    ).propagation
    both = inherited_policy([lifted, owner(EVERYWHERE)])
    assert suspended_by(both, "m1") is not None
    assert suspended_by(both, "m2") is None
    assert suspended_by(inherited_policy([lifted, owner(Suspension())]), "m1") is None
    assert suspended_by(inherited_policy([owner(IN_M1), owner(EVERYWHERE)]), "m1") is not None


def test_a_round_over_everything_records_that_the_revision_was_judged() -> None:
    """A policy may have no object yet, so that nothing is due."""
    first = suspending("r1", EVERYWHERE)
    lifted = with_former_suspensions(suspending("r2", Suspension()), judged_by(None, first, NOW))
    assert concerns_everything(first, lifted)
    assert not concerns_everything(lifted, suspending("r3", Suspension()))
