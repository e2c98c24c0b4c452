from __future__ import annotations

from typing import Any

import pytest

from reconciler.fleet.assemble import refusals
from reconciler.policy import parse_propagation_policy, readable_selectors
from tests.unit.policy_cases import cases, check_problems, check_values, document_of, plain


@pytest.mark.parametrize(
    "case",
    cases(
        "policies/pages.yaml",
        "policies/spellings.yaml",
        "policies/defaults.yaml",
        "policies/rules.yaml",
        "policies/fields.yaml",
        "policies/names.yaml",
    ),
)
def test_propagation_policy_reads_as_documented(case: dict[str, Any]) -> None:
    policy, problems = parse_propagation_policy(document_of(case, "PropagationPolicy"))
    refused = tuple(refusals(policy, frozenset())) if policy is not None else ()
    check_problems(case, (*problems, *refused))
    check_values(case, "policy", None if refused else policy)


@pytest.mark.parametrize("case", cases("policies/readable_selectors.yaml"))
def test_broken_policy_keeps_what_can_be_read_of_its_selectors(case: dict[str, Any]) -> None:
    document = document_of(case, "PropagationPolicy")
    selectors = readable_selectors(document)
    if case["selectors"] is None:
        assert selectors is None
    else:
        assert plain(selectors) == [
            {"namespace": "", "name": "", "labels": None} | selector for selector in case["selectors"]
        ]
