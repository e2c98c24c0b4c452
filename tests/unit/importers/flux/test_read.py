from __future__ import annotations

from typing import Any

import pytest

from tests.unit.importers.told import check_case
from tests.unit.policy_cases import cases


@pytest.mark.parametrize("case", cases("importing/flux.yaml"))
def test_a_store_is_made_of_what_the_tool_was_told(case: dict[str, Any]) -> None:
    check_case({**case, "tool": "flux"})
