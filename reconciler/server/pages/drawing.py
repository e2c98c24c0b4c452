"""Templates to text, escaped in any case, the static files (named by their content), and the head of every page."""

from __future__ import annotations

from functools import lru_cache, partial
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import Any, Final, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from msgspec import Struct

from reconciler.api.refs import short_revision
from reconciler.report.plan.groups import counted
from reconciler.report.safe_text import visible
from reconciler.report.views.matrix import rows_at_once
from reconciler.report.views.queries import FILTERS, FOLDS
from reconciler.report.views.view_shapes import FleetView, Weight
from reconciler.server.pages.page_links import (
    ago,
    clock_time,
    cluster_link,
    column_link,
    commit_link,
    copy_anchor,
    file_link,
    is_narrowed,
    lasting,
    live_link,
    matrix_query,
    object_link,
    shown_name,
    subject_link,
    until,
)
from reconciler.server.pages.styles import (
    HEALTHS,
    LEGEND,
    NEEDS,
    PHASES,
    STAGES,
    STATES,
    WEIGHTS,
    StateStyle,
    copy_look,
    count_words,
    style_of,
)

CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""The browser may load nothing inline and nothing from other hosts."""
CACHE_CONTROL: Final = "private, max-age=31536000, immutable"
"""For static files alone; pages are not kept."""

_TYPES: Final = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


class StaticFile(Struct, frozen=True):
    """A file as it is served, in UTF-8."""

    content: bytes
    content_type: str


def _read() -> tuple[dict[str, StaticFile], dict[str, str]]:
    files, shown_at = dict[str, StaticFile](), dict[str, str]()
    for path in sorted((Path(__file__).parent / "static").iterdir()):
        if path.suffix in _TYPES:
            content = path.read_bytes()
            address = f"/static/{path.stem}-{sha256(content).hexdigest()[:12]}{path.suffix}"
            files[address] = StaticFile(content, _TYPES[path.suffix])
            shown_at[path.name] = address
    return files, shown_at


STATIC_FILES, SHOWN_AT = _read()
"""The served files by address, and the address of each by its name."""


def text(value: str) -> str:
    """Return a text for HTML, in an element or a quoted attribute: on one line, without markup."""
    return escape(visible(value))


def field_path(path: str) -> Markup:
    """Return a path for HTML that a browser breaks before a part of it, where it has to.

    >>> field_path("spec.template<b>")
    Markup('spec.<wbr>template&lt;b&gt;')
    """
    return Markup(text(path).replace(".", ".<wbr>").replace("[", "<wbr>["))  # noqa: S704 - escaped


@lru_cache(maxsize=256)
def pill(look: StateStyle) -> Markup:
    """Return a state as HTML: its sign and its words. A page has a thousand of a few kinds."""
    sign = f'<span aria-hidden="true">{text(look.sign)}</span>'
    return Markup(f'<span class="pill {text(look.tone)}">{sign} {text(look.words)}</span>')  # noqa: S704 - escaped


def draw(template: str, **values: Any) -> str:
    """Return the page of a template. Raises if the template uses a value that was not given."""
    return _TEMPLATES.get_template(template).render(values)


def _finalize(value: object) -> object:
    if isinstance(value, str) and not hasattr(value, "__html__"):
        return visible(value)
    return "" if value is None else value


def _environment() -> Environment:
    engine = Environment(
        loader=PackageLoader("reconciler.server.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalize,
        lstrip_blocks=True,
        auto_reload=False,
    )
    functions = (
        *(object_link, cluster_link, subject_link, copy_anchor, shown_name, ago, lasting, until, clock_time),
        *(copy_look, count_words),
        *(short_revision, is_narrowed, matrix_query, rows_at_once, field_path, counted, column_link, pill),
        *(live_link, commit_link, file_link),
    )
    looks = {"state_look": STATES, "health_look": HEALTHS, "stage_look": STAGES, "phase_look": PHASES}
    engine.globals.update({name: partial(style_of, known) for name, known in looks.items()})
    engine.globals.update({function.__name__: function for function in functions})
    engine.globals.update(static=SHOWN_AT, tones=WEIGHTS, need_words=NEEDS, legend=LEGEND, filters=FILTERS, folds=FOLDS)
    return engine


_TEMPLATES = _environment()


class Pill(NamedTuple):
    """A few words with a colour."""

    tone: str
    words: str


def head_of(fleet: FleetView) -> dict[str, Any]:
    """Return the content of the page's head. `mark`: the sign of the tab. `lead`: the text before its title."""
    pills = _pills(fleet)
    errors = sum(need.weight is Weight.ERROR for need in fleet.needs)
    is_bad = errors > 0 or any(pill.tone == "bad" for pill in pills)
    mark = "bad" if is_bad else "ok" if all(pill.tone == "ok" for pill in pills) and not fleet.needs else "warn"
    lead = f"{fleet.needs_total} to look at" if fleet.needs_total else {"ok": "in sync"}.get(mark, "look")
    bars = {"bands": _bands(fleet.objects, STATES), "fares": _bands(fleet.health, HEALTHS)}
    return {"pills": pills, "mark": mark, "lead": lead, **bars}


def _pills(fleet: FleetView) -> tuple[Pill, ...]:
    clusters, pills = fleet.clusters, list[Pill]()
    if fleet.source.error:
        pills.append(Pill("bad", "store cannot be read"))
    if not fleet.is_progressing:
        pills.append(Pill("bad", f"stalled while {fleet.phase}"))
    if fleet.time is None:
        return (*pills, Pill("unk", "no round yet"))
    if clusters.total == 0:
        return (*pills, Pill("unk", "no clusters"))
    words = f"{clusters.in_sync} of {clusters.total} clusters in sync"
    pills.append(Pill("ok" if clusters.in_sync == clusters.total else "warn", words))
    if clusters.away:
        pills.append(Pill("bad", f"{clusters.away} away"))
    pills += [
        Pill("bad", f"{fleet.health[name]} {HEALTHS[name].words}")
        for name in ("Degraded", "Missing")
        if fleet.health.get(name)
    ]
    if not fleet.is_ready:
        pills.append(Pill("bad", "not ready"))
    return tuple(pills)


def _bands(counts: dict[str, int], order: dict[str, StateStyle]) -> list[dict[str, Any]]:
    """Return the parts of a bar, of 1000. Each is a little wide, so that one of 25,000 is seen."""
    present = [(name, counts[name]) for name in (*order, *(counts.keys() - order)) if counts.get(name)]
    total = sum(count for _, count in present)
    widths = [max(12, round(1000 * count / total)) for _, count in present]
    if widths:
        widths[widths.index(max(widths))] += 1000 - sum(widths)
    bands, at = list[dict[str, Any]](), 0
    for (name, count), width in zip(present, widths, strict=True):
        sign, tone, words = style_of(order, name)
        words = words.partition(",")[0]
        bands.append({"at": at, "width": width, "tone": tone, "count": count, "sign": sign, "words": words})
        at += width
    return bands
