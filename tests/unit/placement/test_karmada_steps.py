"""Differences from Karmada's scheduler, step by step. Source: docs/how-to/coming-from-karmada.md."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reconciler.placement import place
from tests.placement_cases import identity, request_of
from tests.yaml_text import load_yaml

CASES: list[dict[str, Any]] = load_yaml((Path(__file__).parents[2] / "cases/karmada/steps.yaml").read_text())


@pytest.mark.parametrize("case", CASES, ids=[case["case"] for case in CASES])
def test_each_step_is_placed_as_the_table_says(case: dict[str, Any]) -> None:
    carried: dict[str, Any] = {}
    for number, step in enumerate(case["steps"]):
        given = {**case["shared"], **carried, **step}
        binding = place(request_of(given)).bindings[identity(given)]
        assert {target.cluster: target.replicas for target in binding.targets} == step["here"], (
            number,
            binding.reasons,
        )
        carried = {"previous": step["here"], "group_in_use": binding.affinity_name or None}


@pytest.mark.parametrize("case", CASES, ids=[case["case"] for case in CASES])
def test_the_answers_agree_until_the_last_step_and_differ_there(case: dict[str, Any]) -> None:
    *before, last = case["steps"]
    assert all(step["here"] == step["karmada"] for step in before)
    assert last["here"] != last["karmada"]
