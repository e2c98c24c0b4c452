"""The metrics and labels of a query of Prometheus, held against the reference of metrics."""

from __future__ import annotations

import re
from typing import Final

from reconciler.controller.vitals.service_vitals import Vitals
from reconciler.server.metrics import PREFIX, histograms, metrics

_LABELS: Final[dict[str, frozenset[str]]] = {
    **{PREFIX + row.name: frozenset(row.labels) for row in metrics(Vitals(), 0.0)},
    **{
        f"{PREFIX}{row.name}_{part}": frozenset(row.labels) | (frozenset({"le"}) if part == "bucket" else frozenset())
        for row in histograms(Vitals())
        for part in ("bucket", "sum", "count")
    },
}
_GIVEN: Final = frozenset({"job", "instance"})
"""Labels that Prometheus puts on everything."""


def unknown_in(query: str) -> list[str]:
    """The metrics and labels of a query that there are not. Its groupings are of any metric in it."""
    asked = set(re.findall(rf"{PREFIX}\w+", query))
    unknown = sorted(asked - _LABELS.keys())
    there = frozenset().union(*(_LABELS.get(metric, frozenset()) for metric in asked)) | _GIVEN
    for metric, matchers in re.findall(rf"({PREFIX}\w+)\{{([^}}]*)\}}", query):
        names = re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", re.sub(r'"[^"]*"', '""', matchers))
        unknown += [f"{metric}{{{name}}}" for name in names if name not in _LABELS.get(metric, frozenset()) | _GIVEN]
    for names in re.findall(r"\b(?:by|on|without)\s*\(([^)]*)\)", query):
        unknown += [name for name in re.findall(r"\w+", names) if name not in there]
    return unknown
