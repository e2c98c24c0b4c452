"""Rollouts in `status`: a line for each stage, what a person has to do, and clusters that stick out."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from reconciler.api.rollout_progress import RolloutProgress
from reconciler.report import PLAIN
from reconciler.report.plan.plan_json import rollouts_part
from reconciler.report.status import state_document, status_text
from reconciler.report.status.text import status_lines
from tests.fakes.rollouts import AWAITED, DONE, ENTRY, NEW, OLD, PAUSED, PINNED
from tests.unit.report.status.test_state_document import picture, planned


def shown(found: RolloutProgress) -> list[str]:
    return status_lines(rollouts_part([found], str), PLAIN, None)


def test_the_entry_of_an_approval_can_be_pasted() -> None:
    assert shown(AWAITED) == [
        "Rollout default  bbbbbbbbbbbb goes over the clusters",
        "  STAGE    CLUSTERS   AT IT    STATE",
        "  canary   m1         1 of 1   done; the next stage needs an approval",
        f"    to approve, add under spec.approvals: {ENTRY}",
        "    or run: reconciler approve canary",
        "  rest     m2, m3     0 of 2   waits for the stage canary",
    ]


def test_a_cluster_that_failed_says_why_and_equal_ones_are_one() -> None:
    assert "  failed m1 at bbbbbbbbbbbb: why m1 is failed" in shown(PAUSED)
    alike = {name: replace(one, why="the stage rest is pinned") for name, one in PINNED.clusters.items()}
    assert "  pinned m2, m3 at aaaaaaaaaaaa: the stage rest is pinned" in shown(replace(PINNED, clusters=alike))


def test_what_is_done_is_short() -> None:
    assert shown(DONE)[0] == "Rollout default  bbbbbbbbbbbb is done everywhere"
    assert shown(replace(DONE, is_done=False, waiting=OLD))[0].endswith("; aaaaaaaaaaaa waits until it is")


def test_the_document_has_each_stage_and_each_cluster() -> None:
    seen = replace(picture(planned()), rollouts=(AWAITED,))
    (found,) = state_document(seen)["rollouts"]
    assert (found["name"], found["release"], found["waiting"], found["done"]) == ("default", NEW, None, False)
    canary, rest = found["stages"]
    assert canary == {
        "name": "canary", "clusters": ["m1"], "state": "waits-for-approval",
        "why": "done; the next stage needs an approval", "done": None, "until": None, "approval": ENTRY, "failed": [],
        "pinned": None,
    }  # fmt: skip
    assert rest["state"] == "waits-for-stage"
    assert found["clusters"][1] == {
        "name": "m2", "stage": "rest", "revision": OLD, "phase": "behind", "why": "why m2 is behind",
    }  # fmt: skip


def test_a_cluster_that_is_synced_with_an_older_revision_is_behind() -> None:
    seen = state_document(replace(picture(planned()), rollouts=(AWAITED, replace(DONE, rollout="other"))))
    rest: dict[str, Any] = {"fleet": "f", "writer": None, "suspensions": [], "constraints": [], "released": []}
    text = status_text({**seen, **rest}).splitlines()
    assert [line.split()[:3] for line in text if line.startswith(("CLUSTER", "m1", "m2"))] == [
        ["CLUSTER", "REACHABLE", "BEHIND"], ["m1", "yes", "-"], ["m2", "yes", "default"]
    ]  # fmt: skip


def test_a_picture_without_rollouts_is_as_before() -> None:
    assert "rollouts" not in state_document(picture(planned()))


def test_what_waits_for_a_stage_is_among_what_is_held() -> None:
    trouble = {
        "resource": {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "demo", "name": "old"}, "cluster": "m1",
        "state": "held", "by": "stage", "why": "it is deleted after the last stage", "sync": "OutOfSync",
        "health": "Healthy", "healthWhy": "", "who": "li", "revision": OLD, "source": "old.yaml:1", "todo": "nothing",
    }  # fmt: skip
    seen = state_document(picture(planned()))
    rest: dict[str, Any] = {"fleet": "f", "writer": None, "suspensions": [], "constraints": [], "released": []}
    text = status_text({**seen, **rest, "troubles": [trouble]})
    assert "Held (1)\n  ConfigMap demo/old @ m1: it is deleted after the last stage\n" in text
