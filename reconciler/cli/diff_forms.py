"""The formats of `reconciler diff`, of one plan or of two: that of the revisions, and that with the members."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from reconciler.errors import ConfigurationError

if TYPE_CHECKING:
    from reconciler.model.plan import Plan
    from reconciler.model.tree import Json
    from reconciler.report.text.style import Style

FORMATS = ("text", "markdown", "json", "jsonpatch", "github", "junit", "html")
TAKEN_OUT = {
    "sarif": "sarif was taken out; github has annotations at file and line, junit a list for a report of tests"
}
"""Formats of earlier versions, which are refused."""


def diff_text(
    plans: Sequence[Plan], form: str, *, max_size: int, marker: str, style: Style | None = None
) -> str:  # fmt: skip
    """The plans in one of `FORMATS`, as one document. `max_size`: of Markdown, in bytes, for all of them together.

    Raises:
        ConfigurationError: two plans do not fit into a comment of that size.
    """
    match form:
        case "json" | "jsonpatch":
            return _json(plans, form)
        case "markdown":
            return _markdown(plans, max_size, marker)
        case "github":
            from reconciler.report.review.github import plan_annotations

            return "".join(map(plan_annotations, plans))
        case "junit":
            from reconciler.report.review.junit import plans_junit

            return plans_junit(plans)
        case "html":
            from reconciler.report.review.html import plans_html

            return plans_html(plans)
        case _:
            from reconciler.report.plan.text import plan_text
            from reconciler.report.text.style import PLAIN

            return "\n".join(plan_text(plan, style or PLAIN) for plan in plans)


def _json(plans: Sequence[Plan], form: str) -> str:
    """The first, with the comparison with the members below `live`."""
    from reconciler.report.json_parts import json_text
    from reconciler.report.plan.json import plan_document
    from reconciler.report.plan.patches import plan_patches

    document: Callable[[Plan], dict[str, Json]] = plan_patches if form == "jsonpatch" else plan_document
    first, *others = map(document, plans)
    return json_text({**first, "live": others[0]} if others else first)


def _markdown(plans: Sequence[Plan], max_size: int, marker: str) -> str:
    """Return one comment for all plans: each may use the space that the ones before leave."""
    from reconciler.report.review.markdown import BUDGET_MIN, plan_markdown

    least = len(plans) * (BUDGET_MIN + 1)
    if len(plans) > 1 and max_size < least:
        raise ConfigurationError(f"--max-size {max_size} is too small for two plans; give {least} or more")
    first, *others = plans
    text = plan_markdown(first, budget=max_size if not others else max_size // 2, marker=marker)
    for other in others:
        text += "\n" + plan_markdown(other, budget=max_size - len(text.encode()) - 1, marker=marker)
    return text
