from __future__ import annotations

from typing import Any

import pytest

from reconciler.hydration import parse_render
from tests.unit.policy_cases import cases, check_problems, check_values, document_of


@pytest.mark.parametrize("case", cases("hydration/renders.yaml"))
def test_a_render_reads_as_documented(case: dict[str, Any]) -> None:
    render, problems = parse_render(document_of(case, "Render"))
    check_problems(case, problems)
    check_values(case, "render", render)
