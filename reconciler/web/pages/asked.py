"""Questions as the query of a link, so that a page leads to its other parts."""

from __future__ import annotations

from urllib.parse import urlencode

from reconciler.report.views.questions import ROWS_MAX, HistoryQuestion, MatrixQuestion


def is_narrowed(asked: MatrixQuestion | HistoryQuestion) -> bool:
    """Return whether a filter leaves anything out."""
    if isinstance(asked, HistoryQuestion):
        return bool(asked.resource or asked.namespace or asked.cluster or asked.since)
    return bool(asked.q or asked.namespace or asked.kind or asked.troubles)


def matrix_query(asked: MatrixQuestion, offset: int) -> str:
    """The same question from another row on.

    >>> matrix_query(MatrixQuestion(q="a&b", troubles=True), 500)
    'q=a%26b&troubles=1&offset=500'
    """
    parts = {
        "q": asked.q,
        "namespace": asked.namespace,
        "kind": asked.kind,
        "troubles": "1" if asked.troubles else "",
        "offset": str(offset or ""),
        "limit": str(asked.limit) if asked.limit != ROWS_MAX else "",
    }
    return urlencode({name: value for name, value in parts.items() if value}, errors="replace")


def troubles_query(namespace: str) -> str:
    """The troubles of one namespace."""
    return matrix_query(MatrixQuestion(namespace=namespace, troubles=True), 0)
