"""The document by which a Rollout goes on while its release is under way. Source: design#rollouts-stricter."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.api.clusters import Cluster
from reconciler.api.fleet import Fleet
from reconciler.api.rollout_progress import Record, ReleaseFacts
from reconciler.rollouts import is_looser, lay_out, progress, rollout_documents
from tests.fakes.worlds import NOW
from tests.unit.rollouts.staged_bed import rollout, store

BASE = rollout(
    {
        "name": "first", "clusters": {"clusterNames": ["m1"]}, "maxConcurrency": 2,
        "gate": {"minSuccessTime": "10m", "timeout": "1h", "maxFailures": 1,
                 "conditions": [{"type": "Available", "status": "True"}]},
        "after": {"wait": "1h", "approval": True},
        "windows": [{"kind": "deny", "cron": "0 0 * * 6", "duration": "1h"},
                    {"kind": "allow", "cron": "0 8 * * *", "duration": "8h"}],
    },
    {"name": "rest", "clusters": {}, "maxConcurrency": "25%"},
    templates={"namespaces": ["demo", "shop"]}, placement="last",
)  # fmt: skip

EDITS: dict[str, tuple[str, Any, bool]] = {
    "more at once": ("0.maxConcurrency", 3, True),
    "fewer at once": ("0.maxConcurrency", 1, False),
    "a larger share": ("1.maxConcurrency", "50%", True),
    "a number for a share": ("1.maxConcurrency", 1, True),
    "a shorter time of success": ("0.gate.minSuccessTime", "1m", True),
    "a longer time of success": ("0.gate.minSuccessTime", "1h", False),
    "a later failure": ("0.gate.timeout", "9h", False),
    "an earlier failure where one may fail": ("0.gate.timeout", "20m", True),
    "an earlier failure where none may": ("1.gate", {"timeout": "20m"}, False),
    "a metric": ("0.gate.metrics", [{"query": "errors", "threshold": "< 1"}], False),
    "a window of rollbacks": ("rollbackWindow", "1h", True),
    "more failures": ("0.gate.maxFailures", 2, True),
    "failures stop nothing": ("0.gate.onFailure", "Continue", True),
    "health does not matter": ("0.gate.healthy", False, True),
    "no condition": ("0.gate.conditions", [], True),
    "a further condition": (
        "0.gate.conditions",
        [{"type": "Available", "status": "True"}, {"type": "Progressing", "status": "True"}],
        False,
    ),
    "a shorter wait": ("0.after.wait", "1m", True),
    "no approval": ("0.after.approval", False, True),
    "another approval": ("1.after", {"approval": True}, False),
    "other clusters": ("0.clusters", {"clusterNames": ["m2"]}, True),
    "another order": ("0.orderByLabel", "place", True),
    "another name": ("0.name", "zero", True),
    "no windows": ("0.windows", [], True),
    "a further freeze": (
        "0.windows",
        [*BASE["spec"]["stages"][0]["windows"], {"kind": "deny", "cron": "0 0 1 1 *", "duration": "24h"}],
        False,
    ),
    "a wider opening": (
        "0.windows",
        [*BASE["spec"]["stages"][0]["windows"], {"kind": "allow", "cron": "0 0 * * *", "duration": "24h"}],
        True,
    ),
    "other templates": ("templates", {"namespaces": ["demo"]}, True),
    "placement at once": ("placement", "now", True),
    "deletions with each stage": ("deletions", "withStage", True),
    "queue": ("onNewCommit", "queue", False),
    "an approval": ("approvals", [{"stage": "first", "revision": "0123456789ab"}], False),
    "a pin": ("pin", {"rest": "0123456789ab"}, False),
}


def edited(path: str, value: Any) -> dict[str, Any]:
    body = copy.deepcopy(BASE)
    at: Any = body["spec"]["stages"] if path[0].isdigit() else body["spec"]
    *steps, last = path.split(".")
    for step in steps:
        at = at[int(step) if step.isdigit() else step]
    at[last] = value
    return body


@pytest.mark.parametrize("name", EDITS)
def test_what_loosens_a_rollout_waits_and_what_tightens_it_does_not(name: str) -> None:
    path, value, loosens = EDITS[name]
    base, head = store("r1", BASE), store("r2", edited(path, value))
    before, after = base.rollouts[0], head.rollouts[0]
    assert is_looser(before, after) is loosens
    assert not is_looser(before, before)
    found = rollout_documents(head, {"default": base})["default"]
    assert found.stages == (before.stages if loosens else after.stages)
    assert (found.approvals, found.pins, found.on_new_commit) == (after.approvals, after.pins, after.on_new_commit)


def fleet(**review: Any) -> dict[str, Any]:
    body = {"apiVersion": "fleet.reconciler/v1alpha1", "kind": "Fleet", "metadata": {"name": "test"}}
    return {**body, "spec": {"review": review}} if review else body


@pytest.mark.parametrize(
    ("base", "head", "removed", "loosened"),
    [
        ({}, {}, True, True),
        ({}, {"confirm": "0123456789abcdef"}, False, False),
        ({"confirm": "0123456789abcdef"}, {"confirm": "0123456789abcdef"}, True, True),
        ({"loosening": "allow"}, {"loosening": "allow"}, True, False),
        ({}, {"loosening": "allow"}, True, True),
    ],
)
def test_a_removed_rollout_stays_until_it_is_confirmed(
    base: dict[str, str], head: dict[str, str], removed: bool, loosened: bool
) -> None:
    before = store("r1", BASE, fleet(**base))
    assert bool(rollout_documents(store("r2", fleet(**head)), {"default": before})) is removed
    loose = store("r2", edited("0.after.approval", False), fleet(**head))
    assert rollout_documents(loose, {"default": before})["default"].stages[0].after.approval is loosened


@pytest.mark.parametrize("is_removed", [True, False])
def test_the_entry_that_approves_a_removed_rollout_says_what_comes_first(is_removed: bool) -> None:
    before = store("r1", BASE)
    head = store("r2", *([] if is_removed else [BASE]))
    rollout = rollout_documents(head, {"default": before})["default"]
    waiting = lay_out(rollout, head.clusters)
    names = waiting.stages[0].clusters
    records = {name: Record(revision="r0", completed_at=NOW) for name in waiting.stage_of}
    records |= {name: Record(revision="r1", begun_at=NOW, completed_at=NOW) for name in names}
    facts = ReleaseFacts(fleets={"r1": before}, order=("r0", "r1"))
    stages = progress(rollout, waiting, "r1", records, {}, NOW, facts).stages
    (entry,) = [one.state.entry for one in stages if one.state.entry]
    assert entry.endswith("  # bring the document of the Rollout back first") is is_removed


BY_LABEL = rollout(
    {"name": "first", "clusters": {"labelSelector": {"matchLabels": {"tier": "first"}}}, "after": {"approval": True}},
    {"name": "rest", "clusters": {}},
)


def labelled(revision: str, *documents: dict[str, Any], **tiers: str) -> Fleet:
    clusters = {name: Cluster(name=name, labels={"tier": tier}) for name, tier in tiers.items()}
    return replace(store(revision, BY_LABEL, *documents), clusters=clusters)


@pytest.mark.parametrize(
    ("tiers", "stages"),
    [
        ({"m1": "first", "m2": "", "m3": ""}, None),
        ({"m1": "", "m2": "", "m3": ""}, [("m1",), ("m2", "m3")]),
        ({"m1": "", "m2": "first", "m3": ""}, [("m1",), ("m2", "m3")]),
        ({"m1": "first", "m3": ""}, None),
        ({"m1": "", "m2": "", "m3": "", "m4": "first"}, [("m1", "m4"), ("m2", "m3")]),
        ({"m2": "", "m3": ""}, None),
    ],
    ids=["none", "it moves", "two change places", "another goes", "one comes", "it goes"],
)
def test_labels_of_clusters_take_none_past_a_gate(tiers: dict[str, str], stages: list[tuple[str, ...]] | None) -> None:
    """A release that is under way keeps the clusters of its stages; one that lost all of them is skipped."""
    before, head = labelled("r1", m1="first", m2="", m3=""), labelled("r2", **tiers)
    found = rollout_documents(head, {"default": before})["default"]
    assert (found is head.rollouts[0]) is (stages is None)
    layout = lay_out(found, head.clusters)
    assert stages is None or [each.clusters for each in layout.stages] == stages
    records = {name: Record(revision="r0", begun_at=NOW, completed_at=NOW) for name in ("m2", "m3")}
    records["m1"] = Record(revision="r1", begun_at=NOW, completed_at=NOW)
    facts = ReleaseFacts(fleets={"r1": before}, order=("r0", "r1"))
    progressed = progress(found, layout, "r1", records, {}, NOW, facts)
    behind = {name for name, one in progressed.clusters.items() if one.revision == "r0"}
    assert behind == {"m2", "m3"} & head.clusters.keys() - ({"m2"} if "m1" not in head.clusters else set())
    is_confirmed = labelled("r2", fleet(confirm="0123456789abcdef"), **tiers)
    assert rollout_documents(is_confirmed, {"default": before})["default"] is is_confirmed.rollouts[0]
