"""The revision in force, by the case table tests/cases/rollouts/progress.yaml, each case citing its rule."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.api.rollout_progress import (
    GateMet,
    GateStatus,
    GateUnknown,
    GateUnmet,
    Record,
    ReleaseFacts,
    RolloutProgress,
)
from reconciler.rollouts import adopted, lay_out, progress, recorded
from tests.unit.policy_cases import cases
from tests.unit.rollouts.looks import (
    NAMES,
    ORDER,
    REVISIONS,
    at,
    change_text,
    clusters_of,
    minute,
    record_of_case,
    rollout_of,
    state_text,
)

Case = dict[str, Any]
NOW = at(60)
USUAL = {"c1": {"stage": "canary"}, "c2": {"stage": "canary"}, "r1": {}, "r2": {}}
CASES = cases("rollouts/progress.yaml")


def spec_of(case: Case) -> dict[str, Any]:
    own = case.get("spec", {})
    canary = {"name": "canary", "clusters": {"labelSelector": {"matchLabels": {"stage": "canary"}}}}
    usual = [{**canary, **own.get("canary", {})}, {"name": "rest", "clusters": {}, **own.get("rest", {})}]
    renamed = {"deletions_when": "deletions"}
    given = ("onNewCommit", "approvals", "pin", "placement", "deletions_when", "rollbackWindow")
    return {
        "stages": case.get("stages_of", usual),
        **{renamed.get(key, key): case[key] for key in given if key in case},
    }


def records_of(case: Case) -> dict[str, Record]:
    names = case.get("clusters", USUAL)
    given = {name: ["old", 0, 0] for name in names} | case.get("records", {})
    return {name: record_of_case(record) for name, record in given.items() if record is not None}


def sight_of_case(text: str, record: Record) -> GateStatus:
    verb, _, rest = text.partition(" ")
    if verb == "met":
        return GateMet(REVISIONS[rest] if rest else record.revision)
    if verb == "unseen":
        return GateUnknown(rest)
    return GateUnmet(rest, is_scaling=verb == "scaling", failed=record.revision if verb == "failed" else "")


def look(case: Case, records: dict[str, Record], sights: dict[str, GateStatus]) -> RolloutProgress:
    rollout = rollout_of(spec_of(case))
    facts = ReleaseFacts(
        order=ORDER,
        missing=frozenset({REVISIONS["gone"]}),
        pinned={"aaaaaaa0": "aaaaaaa0"},
        away=case.get("away", {}),
        closed={name: at(until) for name, until in case.get("closed", {}).items()},
        alike=frozenset(REVISIONS[name] for name in (case.get("head", "new"), *case.get("alike", ()))),
    )
    layout = lay_out(rollout, clusters_of(case.get("clusters", USUAL)))
    return progress(rollout, layout, REVISIONS[case.get("head", "new")], records, sights, NOW, facts)


@pytest.mark.parametrize("case", CASES)
def test_the_revision_in_force(case: Case) -> None:
    records = records_of(case)
    sights = {name: sight_of_case(text, records[name]) for name, text in case.get("sights", {}).items()}
    found = look(case, records, sights)
    names = case.get("clusters", USUAL)
    force = {name: NAMES[each.revision] for name, each in found.clusters.items()}
    assert force == dict.fromkeys(names, "old") | case.get("force", {})
    assert [state_text(stage.state) for stage in found.stages] == case["stages"]
    assert [change_text(change) for change in found.changes] == case.get("changes", [])
    assert minute(found.look_again) == case.get("again", "never")
    assert [problem.code for problem in found.problems] == case.get("problems", [])
    assert found.is_done is case.get("done", False)
    assert list(found.left) == case.get("left", [])
    assert found.placement_due is case.get("placement_due", True)
    assert "release" not in case or NAMES[found.release] == case["release"]
    assert "deletions" not in case or sorted(found.deletions_due) == case["deletions"]
    assert {name: str(found.clusters[name].phase) for name in case.get("phases", {})} == case.get("phases", {})
    assert {name: found.clusters[name].why for name in case.get("why", {})} == case.get("why", {})
    for each in found.clusters.values():
        assert each.why


@pytest.mark.parametrize("case", CASES)
def test_a_second_look_at_the_same_time_changes_nothing(case: Case) -> None:
    records = records_of(case)
    sights = {name: sight_of_case(text, records[name]) for name, text in case.get("sights", {}).items()}
    first = look(case, records, sights)
    known = {name: record for name, record in records.items() if name in first.clusters}
    assert recorded(known, first.changes) == first.records
    second = look(case, dict(first.records), sights)
    assert second.changes == ()
    assert second.clusters == first.clusters
    assert second.stages == first.stages
    assert second.look_again == first.look_again


def test_a_rollout_begins_with_what_runs_already() -> None:
    rollout = rollout_of(spec_of({}))
    layout = lay_out(rollout, clusters_of(USUAL))
    records = adopted(layout, REVISIONS["old"], NOW)
    found = progress(rollout, layout, REVISIONS["old"], records, {}, NOW, ReleaseFacts(order=ORDER))
    assert found.is_done
    assert found.changes == ()
