"""Recorded pull requests in every format that a forge shows, word for word."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from reconciler.api.plan import Plan
from reconciler.report import json_text
from reconciler.report.plan import plan_document, plan_text
from reconciler.report.plan.annotations import plan_annotations, plans_junit
from reconciler.report.plan.markdown import plan_markdown
from reconciler.server.pages.plan_page import plans_html
from tests.golden.pulls import RECORDED, fleet_wide_bump

FORMATS: dict[str, Callable[[Plan], str]] = {
    "md.txt": plan_markdown,
    "txt": plan_text,
    "json.txt": lambda plan: json_text(plan_document(plan)),
    "github.txt": plan_annotations,
    "junit.txt": lambda plan: plans_junit([plan]),
    "html": lambda plan: plans_html([plan]),
}


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_pull_request(golden: Callable[[str, str], None], name: str, form: str) -> None:
    golden(f"pulls_recorded/{name}.{form}", FORMATS[form](RECORDED[name]()))


def test_the_worst_pull_request_in_a_small_comment(golden: Callable[[str, str], None]) -> None:
    golden("pulls_recorded/fleet-wide-bump-of-5000.md.txt", plan_markdown(fleet_wide_bump(), budget=8192))
