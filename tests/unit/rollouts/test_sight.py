"""Copies that meet a gate. Source: Open Cluster Management, RolloutStrategy; Karmada PR 7891, requiredConditions."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.api.refs import GVK, Identity, ResourceRef
from reconciler.api.rollout_progress import GateMet, GateUnmet
from reconciler.api.rollouts import ConditionCheck, Gate
from reconciler.rollouts import GatedCopy, gate_status

JOB = ResourceRef(gvk=GVK("batch", "v1", "Job"), namespace="shop", name="smoke")
DONE = ConditionCheck(condition="Complete", of=JOB)
TESTED = ConditionCheck(condition="Tested")


def copy(
    name: str = "web", *, in_step: bool = True, why: str = "", tested: str = "", scales: bool = False
) -> GatedCopy:
    conditions = {"status": {"conditions": [{"type": "Tested", "status": tested}]}} if tested else {}
    return GatedCopy(Identity("apps", "Deployment", "shop", name), in_step, not why, why, conditions, scales)


@pytest.mark.parametrize(
    ("copies", "is_scaling"),
    [
        ([copy(in_step=False, scales=True)], True),
        ([copy(why="2 of 4", scales=True)], True),
        ([copy(why="2 of 4", scales=True), copy("api", why="0 of 1")], False),
        ([copy(why="2 of 4"), copy("api", in_step=False, scales=True)], False),
    ],
)
def test_replicas_that_placement_gave_are_no_break(copies: list[GatedCopy], *, is_scaling: bool) -> None:
    found = gate_status(Gate(), "r1", copies, {})
    assert isinstance(found, GateUnmet) and found.is_scaling is is_scaling


def job(status: str, **more: Any) -> dict[str, Any]:
    condition = {"type": "Complete", "status": status, **more}
    return {"metadata": {"generation": 2}, "status": {"conditions": [condition]}}


@pytest.mark.parametrize(
    ("gate", "copies", "objects", "why"),
    [
        (Gate(), [], {}, ""),
        (Gate(), [copy(), copy("api")], {}, ""),
        (Gate(), [copy(in_step=False)], {}, "Deployment shop/web is not as it is to be yet"),
        (Gate(), [copy(why="0 of 2")], {}, "Deployment shop/web: 0 of 2"),
        (Gate(healthy=False), [copy(why="0 of 2")], {}, ""),
        (Gate(healthy=False), [copy(in_step=False)], {}, "Deployment shop/web is not as it is to be yet"),
        (Gate(checks=(DONE,)), [copy()], {}, "Job shop/smoke is not there"),
        (
            Gate(checks=(DONE,)),
            [copy()],
            {JOB: {}},
            "the condition Complete of Job shop/smoke is not there yet, not True",
        ),
        (Gate(checks=(DONE,)), [], {JOB: job("False")}, "the condition Complete of Job shop/smoke is False, not True"),
        (Gate(checks=(DONE,)), [], {JOB: job("True")}, ""),
        (Gate(checks=(DONE,)), [], {JOB: job("True", observedGeneration=2)}, ""),
        (
            Gate(checks=(DONE,)),
            [],
            {JOB: job("True", observedGeneration=1)},
            "the condition Complete of Job shop/smoke is not there yet, not True",
        ),
        (Gate(checks=(TESTED,)), [copy()], {}, "no copy has the condition Tested yet"),
        (Gate(checks=(TESTED,)), [copy(), copy("api", tested="True")], {}, ""),
        (
            Gate(checks=(TESTED,)),
            [copy(tested="False"), copy("api", tested="True")],
            {},
            "the condition Tested of Deployment shop/web is False, not True",
        ),
    ],
)
def test_a_gate_is_met_or_it_is_said_why_not(
    gate: Gate, copies: list[GatedCopy], objects: dict[ResourceRef, Any], why: str
) -> None:
    found = gate_status(gate, "5f3c9d2", copies, objects)
    assert found == (GateUnmet(why) if why else GateMet("5f3c9d2"))
