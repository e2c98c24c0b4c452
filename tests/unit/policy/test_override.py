from __future__ import annotations

from typing import Any

import pytest

from reconciler.fleet.assemble import refusals
from reconciler.policy import parse_override_policy
from tests.unit.policy_cases import cases, check_problems, check_values, document_of


@pytest.mark.parametrize("case", cases("policies/override_pages.yaml", "policies/overrides.yaml"))
def test_override_policy_reads_as_documented(case: dict[str, Any]) -> None:
    policy, problems = parse_override_policy(document_of(case, "OverridePolicy"))
    refused = tuple(refusals(policy, frozenset())) if policy is not None else ()
    check_problems(case, (*problems, *refused))
    check_values(case, "policy", None if refused else policy)
