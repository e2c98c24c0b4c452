"""Differences that count as another schedule: how a copy goes depends on who took it away."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from reconciler.api.binding import Constraint, Tick
from reconciler.api.refs import Identity
from reconciler.render import changed_identities
from reconciler.scheduler import Schedule
from tests.tick_cases import decided, identity, observations

MOVED = {"replicas": 2, "placed": {"m2": 2}, "workloads": {"web": {}, "api": {}}}
WEB = identity("web", {})
EXCLUSION = Constraint(identity=WEB, cluster="m1", replicas_max=0, reason="", excludes=True, tick=Tick.FAILOVER)


def under(*constraints: Constraint) -> Schedule:
    return decided(MOVED, observations(MOVED, constraints=constraints))


@pytest.mark.parametrize("changed", [None, frozenset({WEB})], ids=["searched", "known"])
def test_another_reason_for_a_copy_to_go_is_another_decision(changed: frozenset[Identity] | None) -> None:
    free, failed = under(), under(EXCLUSION)
    evicted = under(EXCLUSION, replace(EXCLUSION, tick=Tick.EVICTION))
    assert free.bindings[WEB].targets == failed.bindings[WEB].targets == evicted.bindings[WEB].targets
    for before, after in ((free, failed), (failed, evicted), (evicted, free)):
        assert changed_identities(before, after, changed) == {WEB}


def test_one_that_only_lasts_longer_is_the_same_decision() -> None:
    longer = replace(EXCLUSION, until="2999-01-01T00:00:00Z")
    assert changed_identities(under(EXCLUSION), under(longer)) == set()
