"""The matrix of workloads and clusters. Its cells are written here, since a template takes too long for 25,000."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from reconciler.report.text.values import cut
from reconciler.report.views.shapes import ClusterHead, MatrixView, Row
from reconciler.web.pages.drawing import text
from reconciler.web.pages.links import object_link, shown_name
from reconciler.web.pages.looks import Look, copy_look

_WHY_SHOWN = 120
_USUAL_KIND = "Deployment"
_NOTHING = "<td></td>"
_TROUBLES = ("bad", "warn")


class Group(Struct, frozen=True):
    """The workloads of one namespace. `rows` is markup that holds no text of others that is not escaped."""

    namespace: str
    count: int
    troubled: int
    rows: str


class Body(Struct, frozen=True):
    """The matrix by namespace, in the order of the view. `troubles`: of each column how many copies need a look."""

    groups: tuple[Group, ...] = ()
    troubles: Mapping[int, int] = {}


def body_of(view: MatrixView) -> Body:
    """Return the content below the head of the matrix."""
    by_namespace: dict[str, list[Row]] = {}
    for row in view.rows:
        by_namespace.setdefault(row.resource.namespace, []).append(row)
    names, counted, groups = [text(cluster.name) for cluster in view.clusters], Counter[int](), list[Group]()
    for namespace, rows in by_namespace.items():
        drawn = [_row(row, view.clusters, names) for row in rows]
        groups.append(
            Group(namespace, len(rows), sum(bool(found.troubled) for found in drawn), "".join(r.html for r in drawn))
        )
        for found in drawn:
            counted.update(found.troubled)
    return Body(tuple(groups), counted)


def namespaces(view: MatrixView) -> tuple[str, ...]:
    """The namespaces to choose from: all where the view has them, else those of its rows."""
    return view.namespaces or tuple(sorted({row.resource.namespace for row in view.rows} - {""}))


class _Drawn(NamedTuple):
    """`troubled`: columns of copies that need attention. Copies in progress or hidden by their cluster do not."""

    html: str
    troubled: list[int]


def _row(row: Row, clusters: Sequence[ClusterHead], names: Sequence[str]) -> _Drawn:
    resource = row.resource
    link, within = text(object_link(resource)), text(shown_name(resource))
    cells, fine, troubled = [_NOTHING] * len(clusters), 0, list[int]()
    for cell in row.cells:
        look = copy_look(cell.state, cell.health, cell.replicas, cell.ready)
        column = cell.cluster
        if look.tone == "ok":
            fine += 1
            cells[column] = f'<td class="ok" aria-label="{look.words}">{look.sign}</td>'
            continue
        if look.tone in _TROUBLES:
            troubled.append(column)
        cells[column] = _linked(
            look, cell.why, within, names[column], text(object_link(resource, clusters[column].name))
        )
    placed, tone = len(row.cells), "few" if troubled else "most"
    kind = "" if resource.kind == _USUAL_KIND else f" <small>{text(resource.kind)}</small>"
    html = (
        f'<tr data-key="{link}"><th scope="row" title="{text(resource.kind)} {within}">'
        f'<a href="{link}">{text(resource.name)}</a>{kind}</th>'
        f'<td class="sum {tone}" aria-label="{fine} of {placed} in sync and healthy">{fine}/{placed}</td>'
        f"{''.join(cells)}</tr>\n"
    )
    return _Drawn(html, troubled)


def _linked(look: Look, why: str, within: str, where: str, address: str) -> str:
    """Return a cell that links to the copy, with a full label: screen readers read links one by one."""
    words = f"{within} in {where}: {text(look.words)}{f': {text(cut(why, _WHY_SHOWN))}' if why else ''}"
    return (
        f'<td class="{look.tone}"><a href="{address}" data-in="{where}" aria-label="{words}" title="{words}">'
        f"{look.sign}</a></td>"
    )
