"""Templates to text. Inserted text is made visible and escaped in any case; only templates are markup."""

from __future__ import annotations

from html import escape
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from reconciler.report.plan.lines import short_revision
from reconciler.report.text.safe import visible
from reconciler.web.pages import links, looks, spans
from reconciler.web.pages.asked import is_narrowed, matrix_query, troubles_query
from reconciler.web.pages.static_files import SHOWN_AT


def text(value: str) -> str:
    """Return a text for HTML, in an element or a quoted attribute: on one line, without markup."""
    return escape(visible(value))


def draw(template: str, **values: Any) -> str:
    """Return the page of a template. Raises if the template uses a value that was not given."""
    return _TEMPLATES.get_template(template).render(values)


def _shown(value: object) -> object:
    if isinstance(value, str) and not hasattr(value, "__html__"):
        return visible(value)
    return "" if value is None else value


def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("reconciler.web.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.globals.update(
        static=SHOWN_AT,
        object_link=links.object_link,
        cluster_link=links.cluster_link,
        subject_link=links.subject_link,
        copy_anchor=links.copy_anchor,
        shown_name=links.shown_name,
        ago=spans.ago,
        lasting=spans.lasting,
        until=spans.until,
        clock_time=spans.clock_time,
        state_look=looks.state_look,
        health_look=looks.health_look,
        copy_look=looks.copy_look,
        stage_look=looks.stage_look,
        phase_look=looks.phase_look,
        count_words=looks.count_words,
        tones=looks.WEIGHTS,
        need_words=looks.NEEDS,
        legend=looks.LEGEND,
        short_revision=short_revision,
        is_narrowed=is_narrowed,
        matrix_query=matrix_query,
        troubles_query=troubles_query,
    )
    return made


_TEMPLATES = _environment()
