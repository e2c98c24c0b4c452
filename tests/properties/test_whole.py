"""Laws of what shards tell each other: put together it is what one process would show, and nothing looks better.

Source: ADR 22.
"""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from reconciler.daemon.shards.own_picture import OwnPicture
from reconciler.daemon.vitals.board import Shown
from reconciler.engine import Round
from reconciler.model.fleet import HighAvailability
from reconciler.model.plan import Plan
from reconciler.model.refs import Identity
from reconciler.report.status.state_document import Picture
from reconciler.stages.shards import SHARD_LABEL, packed_picture, read_picture
from reconciler.stages.state import (
    Facts,
    FleetState,
    HealthWord,
    Lag,
    Others,
    ShardTold,
    StateTables,
    shard_told,
    whole_of,
)
from tests.fakes.worlds import NOW
from tests.properties.test_state import CLUSTERS, NAMES, TROUBLES, identity_of, scene_with

SHARDS = {"m1": "a", "m2": "b", "m3": "b"}
IDENTITIES = (*map(identity_of, NAMES), Identity("", "Namespace", "", "demo"))


def sharded(facts: Facts) -> Facts:
    """The same facts of a fleet with shards."""
    fleet = facts.decision.fleet
    settings = replace(fleet.settings, ha=HighAvailability(cluster="m1", shards=("a", "b")))
    clusters = {name: replace(each, labels={SHARD_LABEL: SHARDS[name]}) for name, each in fleet.clusters.items()}
    decision = replace(facts.decision, fleet=replace(fleet, settings=settings, clusters=clusters))
    return replace(facts, decision=decision)


def of_shard(facts: Facts, shard: str) -> Facts:
    """What the process of one shard knows of them."""
    own = {name for name, each in SHARDS.items() if each == shard}
    return replace(
        facts,
        manifests={name: found for name, found in facts.manifests.items() if name in own},
        members={name: found for name, found in facts.members.items() if name in own},
        changes={copy: found for copy, found in facts.changes.items() if copy[0] in own},
        failures={copy: found for copy, found in facts.failures.items() if copy[0] in own},
        fights={copy: found for copy, found in facts.fights.items() if copy[0] in own},
        health={name: found for name, found in facts.health.items() if name in own},
        ledger={name: found for name, found in facts.ledger.items() if name in own},
        elsewhere=frozenset(facts.decision.fleet.clusters.keys() - own),
    )


def told(facts: Facts, shard: str, revision: str = "r1", bytes_max: int = 950_000) -> ShardTold:
    """What the process of a shard tells of these facts, as another one reads it."""
    own = of_shard(facts, shard)
    changes = tuple(change for due in own.changes.values() for change in due)
    plan = Plan(base="", head="r1", changes=changes)
    fleet = replace(own.decision.fleet, revision=revision)
    planned = Round(decision=replace(own.decision, fleet=fleet), manifests=own.manifests, plan=plan)
    picture = Picture(round=planned, state=StateTables().update(own), time=NOW)
    packed = packed_picture(OwnPicture(shard, f"of-{shard}").of(Shown(picture=picture)), bytes_max)
    found = read_picture(packed, shard)
    assert found is not None
    return shard_told(found)


def shown(facts: Facts, shard: str, others: Mapping[str, ShardTold]) -> FleetState:
    return whole_of(StateTables().update(of_shard(facts, shard)), Others(shard=shard, told=others))


@settings(deadline=None)
@given(st.lists(TROUBLES, max_size=6))
def test_what_shards_tell_put_together_is_what_one_process_shows(troubles: list[tuple[str, tuple[str, str]]]) -> None:
    facts = sharded(scene_with(troubles).facts())
    one = StateTables().update(facts)
    views = {
        "a": shown(facts, "a", {"b": told(facts, "b")}),
        "b": shown(facts, "b", {"a": told(facts, "a")}),
        "": shown(facts, "", {shard: told(facts, shard) for shard in ("a", "b")}),
    }
    for view in views.values():
        assert view.clusters.keys() == one.clusters.keys()
        for name, wanted in one.clusters.items():
            found = view.clusters[name]
            assert (found.why_away, found.is_left, found.syncs, found.healths) == (
                wanted.why_away, wanted.is_left, wanted.syncs, wanted.healths,
            )  # fmt: skip
            assert found.applier is not None
            assert found.applier.shard == SHARDS[name]
            for identity in IDENTITIES:
                assert view.seen(name, identity) == one.seen(name, identity)


@settings(deadline=None)
@given(st.lists(TROUBLES, max_size=6), st.sampled_from(("", "old")), st.integers(200, 1200))
def test_nothing_looks_fine_that_is_not_known_to_be(
    troubles: list[tuple[str, tuple[str, str]]], why: str, bytes_max: int
) -> None:
    facts = sharded(scene_with(troubles).facts())
    one = StateTables().update(facts)
    try:
        of_b = replace(told(facts, "b", bytes_max=bytes_max), why=why)
    except ValueError:
        of_b = ShardTold(why="it tells nothing")
    view = shown(facts, "a", {"b": of_b})
    other = shown(facts, "a", {"b": replace(told(facts, "b", revision="r0"), why=why)})
    for name in set(CLUSTERS) & facts.decision.fleet.clusters.keys() - {"m1"}:
        for identity in IDENTITIES:
            is_seen, is_so = view.seen(name, identity), one.seen(name, identity)
            if is_seen is not None and is_seen.sync.lag is Lag.SYNCED:
                assert is_seen == is_so, "what was cut from the picture is not taken for well"
            else:
                assert is_seen is None or is_seen.sync.why
            beside = other.seen(name, identity)
            assert beside is None or beside.sync.lag is not Lag.SYNCED, "of another revision nothing is Synced"
        assert other.clusters[name].syncs[Lag.SYNCED] == 0
        if why or of_b.why:
            assert view.clusters[name].why_away
            assert view.clusters[name].syncs[Lag.UNKNOWN] == view.clusters[name].total
            assert view.clusters[name].healths[HealthWord.UNKNOWN] == view.clusters[name].total
