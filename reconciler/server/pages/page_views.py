"""The pages. The cells of the matrix are written here, since a template takes too long for 25,000."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from reconciler.incremental import by_key
from reconciler.report.difference import cut
from reconciler.report.views.live_view import LiveView
from reconciler.report.views.queries import FILTERS, FOLDS, ROWS_MAX, DayView, HistoryQuery, MatrixQuery, NotFound
from reconciler.report.views.view_shapes import (
    CapacityPart,
    ClusterHead,
    ClusterView,
    CopyPart,
    FleetView,
    MatrixRow,
    MatrixView,
    ObjectView,
    ProblemsView,
)
from reconciler.server.pages.alerts_page import alert_texts, changes, coming, day_rows
from reconciler.server.pages.drawing import Pill, draw, head_of, text
from reconciler.server.pages.page_links import is_narrowed, matrix_query, named_link, object_link, shown_name
from reconciler.server.pages.styles import HEALTHS, STATES, copy_look

_WHY_SHOWN = 120
_USUAL_KIND = "Deployment"
_NOTHING = "<td></td>"
_TROUBLES = ("bad", "warn")


def body_of(view: MatrixView, query: MatrixQuery) -> tuple[list[dict[str, Any]], Mapping[int, int]]:
    """Return escaped rows by namespace, and how many copies of each column need a look. `query`: for links."""
    by_namespace = by_key(("" if row.workloads else row.resource.namespace, row) for row in view.rows)
    names, counted, groups = [text(cluster.name) for cluster in view.clusters], Counter[int](), list[dict[str, Any]]()
    fine: dict[int, str] = {}
    for namespace, rows in by_namespace.items():
        drawn = [_row(row, view, names, query, fine) for row in rows]
        markup, troubled = "".join(html for html, _ in drawn), [columns for _, columns in drawn if columns]
        groups.append({"namespace": namespace, "count": len(rows), "troubled": len(troubled), "rows": markup})
        for columns in troubled:
            counted.update(columns)
    return groups, counted


def _row(
    row: MatrixRow, matrix: MatrixView, names: Sequence[str], query: MatrixQuery, fine: dict[int, str]
) -> tuple[str, list[int]]:
    """Return a row's markup, and the columns that need a look. `fine`: markup of fine cells, which rows share."""
    cells, troubled = fine.get(id(row.cells), ""), list[int]()
    link, within = text(_row_link(row, query)), text(shown_name(row.resource))
    if not cells:
        cells_of, is_fine = [_NOTHING] * len(names), True
        counted = "copies fine" if query.rows or query.columns else "ready"
        for cell in row.cells:
            look, column = copy_look(cell.state, cell.health, cell.replicas, cell.ready, counted), cell.cluster
            if look.tone == "ok":
                cells_of[column] = f'<td class="ok" aria-label="{look.words}">{look.sign}</td>'
                continue
            is_fine = False
            if look.tone in _TROUBLES:
                troubled.append(column)
            address = text(_row_link(row, query, matrix.clusters[column]))
            # Screen readers read links one by one: each has a full label.
            why = f": {text(cut(cell.why, _WHY_SHOWN))}" if cell.why else ""
            words = f"{within} in {names[column]}: {text(look.words)}{why}"
            cells_of[column] = (
                f'<td class="{look.tone}"><a href="{address}" data-in="{names[column]}" aria-label="{words}" '
                f'title="{words}">{look.sign}</a></td>'
            )
        cells = "".join(cells_of)
        if is_fine:
            fine[id(row.cells)] = cells
    tone, kind = "few" if troubled else "most", row.resource.kind
    kind_words = "" if kind in ("", _USUAL_KIND) else f" <small>{text(kind)}</small>"
    many = f" <small>{row.workloads:,}</small>" if row.workloads else ""
    html = (
        f'<tr data-key="{link}"><th scope="row" title="{text(kind)} {within}">'
        f'<a href="{link}">{text(row.resource.name)}</a>{kind_words}{many}</th>'
        f'<td class="sum {tone}" aria-label="{row.fine} of {row.copies} in sync and healthy">{row.fine}/{row.copies}'
        f"</td>{cells}</tr>\n"
    )
    return html, troubled


def _row_link(row: MatrixRow, query: MatrixQuery, column: ClusterHead | None = None) -> str:
    """Return where a row leads, or its cell in a column: to the object, or to what is folded in it."""
    is_folded = column is not None and column.clusters
    if not row.workloads:
        return object_link(row.resource, column.name if column is not None and not is_folded else "")
    narrowed: dict[str, Any] = {query.rows: row.resource.name, "rows": ""}
    if column is not None:
        narrowed |= {query.columns: column.name, "columns": ""} if is_folded else {"cluster": column.name}
    return f"/?{matrix_query(query, **narrowed)}"


def _page(template: str, fleet: FleetView, now: str, **values: Any) -> str:
    return draw(template, now=now, fleet=fleet, head=head_of(fleet), **values)


def fleet_page(fleet: FleetView, matrix: MatrixView | None, query: MatrixQuery, now: str) -> str:
    """Return the page. `matrix`: the answer to `query`; None: no workloads yet. `now`: RFC 3339."""
    return _page(
        "fleet.html",
        fleet,
        now,
        needs=alert_texts(fleet.needs),
        timers=coming(fleet.timers),
        events=changes(fleet.events),
        matrix=matrix,
        body=body_of(matrix, query) if matrix else ((), {}),
        choices=matrix.choices if matrix else {},
        asked=query,
        has_more_filters=any(getattr(query, name) for name in _MORE),
        # Above the rest: nobody is needed, or somebody asks something of it.
        is_matrix_first=bool(matrix and matrix.rows and head_of(fleet)["mark"] == "ok")
        or is_narrowed(query)
        or query.offset > 0,
    )


_MORE: Final = (*(each.name for each in FILTERS if not each.is_first), *FOLDS)
_FULL: Final = 0.9
_BYTES: Final = ("memory", "ephemeral-storage", "storage")


def cluster_page(fleet: FleetView, view: ClusterView, now: str) -> str:
    """Return the page as HTML. `fleet` is for its head; `now` (RFC 3339) is the reference of relative times."""
    return _page(
        "cluster.html",
        fleet,
        now,
        view=view,
        pills=_pills(view),
        gauges=tuple(map(_gauge, view.capacity)),
        needs=alert_texts(view.needs),
        timers=coming(view.timers),
        events=changes(view.history),
        objects_shown=ROWS_MAX,
    )


def _pills(view: ClusterView) -> tuple[Pill, ...]:
    if view.is_left:
        return (Pill("unk", "its document was taken out of the store"),)
    pills = [Pill("ok", "answers") if view.is_up else Pill("bad", "cannot be read")]
    if view.suspended is not None:
        pills.append(Pill("warn", "suspended"))
    looks = [(STATES[name], count) for name, count in view.counts.items() if count and name in STATES]
    looks += [(HEALTHS[name], count) for name, count in view.health.items() if count and name in HEALTHS]
    pills += [Pill(look.tone, f"{count} {look.words.partition(',')[0]}") for look, count in looks if look.tone != "ok"]
    if view.is_up and len(pills) == 1 and any(view.counts.values()):
        pills.append(Pill("ok", "all in sync and healthy"))
    return tuple(pills)


def _gauge(part: CapacityPart) -> dict[str, Any]:
    """Return the usage of one resource in a cluster. `filled`: of 1000."""
    if part.allocatable is None or part.used is None:
        return {"name": part.name, "filled": 0, "tone": "unk", "words": "not known"}
    share = part.used / part.allocatable if part.allocatable else 1.0 if part.used else 0.0
    words = f"{_amount(part.name, part.used, is_bare=True)} of {_amount(part.name, part.allocatable)}, {share:.0%}"
    filled, tone = min(1000, max(0, round(1000 * share))), "warn" if share >= _FULL else "prog"
    return {"name": part.name, "filled": filled, "tone": tone, "words": words}


def _amount(name: str, value: float, *, is_bare: bool = False) -> str:
    unit, amount = "", value
    if name == "cpu":
        unit = " cores"
    elif name in _BYTES:
        unit, amount = " GiB", value / 2**30
    digits = f"{amount:,.0f}" if amount >= 100 or amount == int(amount) else f"{amount:.1f}"
    return digits if is_bare else digits + unit


_WORST = {"bad": 0, "warn": 1, "unk": 2, "prog": 3, "ok": 4}


def object_page(fleet: FleetView, view: ObjectView, live: LiveView | None, now: str) -> str:
    """Return the page as HTML. `live`: one copy as its cluster has it; None: none was asked for. `now`: RFC 3339."""
    ordered = sorted(view.differences, key=lambda difference: difference.cluster)
    pills = [Pill("unk", "placed nowhere")]
    if view.copies:
        # The number of clusters in each state, the worst first.
        states = [STATES[copy.state] for copy in view.copies if copy.state in STATES]
        healths = [HEALTHS[copy.health] for copy in view.copies if copy.health in HEALTHS and copy.state != "unknown"]
        wrong = [look for look in (*states, *healths) if look.tone != "ok"]
        kinds = sorted(set(wrong), key=lambda look: (_WORST[look.tone], look.words))
        pills = [Pill(look.tone, f"{look.words.partition(',')[0]} in {wrong.count(look)}") for look in kinds]
        fine = sum(_tone(copy) == "ok" for copy in view.copies)
        pills.append(Pill("ok" if fine else "unk", f"in sync and healthy in {fine} of {len(view.copies)}"))
    return _page(
        "object.html",
        fleet,
        now,
        view=view,
        pills=pills,
        copies=worst_first(view.copies),
        live=live,
        differences=tuple(by_key((one.cluster, one) for one in ordered).items()),
        needs=alert_texts(view.needs),
        timers=coming(view.timers),
        events=changes(view.history),
    )


def worst_first(copies: tuple[CopyPart, ...]) -> tuple[CopyPart, ...]:
    """The copies, those with troubles first, else in their order."""
    return tuple(sorted(copies, key=lambda copy: _WORST[_tone(copy)]))


def _tone(copy: CopyPart) -> str:
    return copy_look(copy.state, copy.health, copy.replicas, copy.ready).tone


def problems_page(fleet: FleetView, view: ProblemsView, now: str) -> str:
    """The problems of the store as HTML. `fleet` is for its head; `now`: RFC 3339."""
    return _page("problems.html", fleet, now, view=view)


def history_page(
    fleet: FleetView, entries: Sequence[Mapping[str, Any]], query: HistoryQuery, day: DayView, now: str
) -> str:
    """The history as HTML: the `events` of its document, newest first, that answer `asked`. `now`: RFC 3339."""
    return _page("history.html", fleet, now, events=changes(entries), asked=query, day=day, day_rows=day_rows(day))


def not_found_page(fleet: FleetView, answer: NotFound, now: str) -> str:
    """Return the page for an unknown name: the reason and similar names."""
    close = tuple((words, named_link(words)) for words in answer.close)
    return _page("not_found.html", fleet, now, why=answer.why, close=close)


def not_shown_page(fleet: FleetView, why: str, now: str) -> str:
    """Return the page shown before the first round has ended, or when the journal cannot be read."""
    return _page("not_shown.html", fleet, now, why=why)
