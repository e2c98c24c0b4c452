"""The first page: whether all is in step, alerts, and every workload in every cluster."""

from __future__ import annotations

from reconciler.report.views.questions import MatrixQuestion
from reconciler.report.views.shapes import FleetView, MatrixView
from reconciler.web.pages.changes import changes
from reconciler.web.pages.drawing import draw
from reconciler.web.pages.head import head_of
from reconciler.web.pages.matrix import Body, body_of, namespaces
from reconciler.web.pages.needs import coming, told


def fleet_page(fleet: FleetView, matrix: MatrixView | None, asked: MatrixQuestion, now: str) -> str:
    """Return the page as HTML. `matrix` answers `asked`; None: no workloads yet, while the fleet says why.

    `now` (RFC 3339) is the reference of relative times.
    """
    return draw(
        "fleet.html",
        now=now,
        fleet=fleet,
        head=head_of(fleet),
        needs=told(fleet.needs),
        timers=coming(fleet.timers),
        events=changes(fleet.events),
        matrix=matrix,
        body=body_of(matrix) if matrix else Body(),
        namespaces=namespaces(matrix) if matrix else (),
        asked=asked,
    )
