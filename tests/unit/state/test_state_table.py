"""The table of states: what is known of one copy, and what is said of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reconciler.api.refs import Identity
from reconciler.state import Lag, ObjectState, StateFacts, StateTables, copies_of, state_of
from reconciler.state import state_tables as tables
from tests.unit.state.scenes import APP, Scene, scene_of
from tests.yaml_text import load_yaml

ROWS = load_yaml((Path(__file__).parents[2] / "cases/state/sync.yaml").read_text())["rows"]


@pytest.mark.parametrize("row", ROWS, ids=[row["name"] for row in ROWS])
def test_every_trouble_has_its_words(row: dict[str, Any]) -> None:
    facts = scene_of(row).facts()
    found = state_of(facts, "m1", APP)
    if row["is"] is None:
        assert found is None
        return
    assert found is not None
    assert (str(found.sync.sync), str(found.sync.lag), str(found.health.word)) == (
        row["is"], row.get("state", "synced"), row["health"],
    )  # fmt: skip
    assert row.get("why", "") in found.sync.why
    assert str(getattr(found.sync, "by", "")) == row.get("by", "")
    state = StateTables().update(facts)
    assert state.of("m1", APP) == found
    # The copy, and the Namespace that it lives in, count once each.
    assert state.clusters["m1"].total == 2, state.clusters["m1"]
    assert sum(state.clusters["m1"].healths.values()) == 2


def test_every_state_has_a_reason_unless_it_is_well() -> None:
    for row in ROWS:
        found = state_of(scene_of(row).facts(), "m1", APP)
        if found is not None:
            assert bool(found.sync.why) == (row["is"] != "Synced"), row["name"]
            assert bool(found.health.why) == (row["health"] != "Healthy"), row["name"]


def test_a_hook_that_failed_and_was_deleted_has_failed_for_a_gate() -> None:
    """Source: ADR 26."""
    facts = scene_of({"now": "in-sync", "health_told": "Missing", "finished": True, "failed": True}).facts()
    (copy,) = copies_of(StateTables().update(facts).clusters["m1"], {APP})
    assert copy.has_failed


def test_a_commit_of_one_object_costs_that_object(monkeypatch: pytest.MonkeyPatch) -> None:
    names = tuple(f"n{number}" for number in range(60))
    scene, keeper, asked = Scene("m1", "m2", "m3", names=names), StateTables(), []

    def counted(facts: StateFacts, cluster: str, identity: Identity) -> ObjectState | None:
        asked.append((cluster, identity))
        return state_of(facts, cluster, identity)

    scene.apply()
    keeper.update(scene.facts())
    scene.edit("m2", "n7", "by hand")
    facts = scene.facts()
    monkeypatch.setattr(tables, "state_of", counted)
    found = keeper.update(facts, frozenset({Identity("", "ConfigMap", "demo", "n7")}))
    assert sorted(cluster for cluster, _ in asked) == ["m1", "m2", "m3"]
    assert found.clusters["m2"].syncs[Lag.PENDING] == 1
    # What is well is counted and not kept.
    assert [len(one.notable) for one in found.clusters.values()] == [0, 1, 0]
    assert [turn.cluster for turn in keeper.turns] == ["m2"]
