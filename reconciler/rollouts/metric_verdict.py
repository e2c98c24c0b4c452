"""Metrics of a gate: the question to a Prometheus, and the verdict on its answer, which is foreign input.

Source: Prometheus, HTTP API: range queries; Argo Rollouts and Flagger: a query, and what its value must be.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from reconciler.api.rollout_progress import Sight, Unmet, Unseen
from reconciler.api.rollouts import MetricCheck
from reconciler.prepared import prepared

ANSWER_BYTES_MAX: Final = 1 << 20
_STEPS_MAX: Final = 60
_SHOWN_CHARS: Final = 120
_STEP_LEAST_S: Final = 15
_COMPARE: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq,
}  # fmt: skip


class _Series(msgspec.Struct):
    values: list[tuple[float, str]]


class _Matrix(msgspec.Struct, rename="camel"):
    result_type: str
    result: list[_Series]


@prepared
class _RangeAnswer(msgspec.Struct):
    status: str
    data: _Matrix


def range_query(check: MetricCheck, cluster: str, now_s: int) -> dict[str, str]:
    """Return the parameters of `/api/v1/query_range` for the time up to now. `now_s`: Unix time."""
    query = check.query.replace("$cluster", cluster)
    return {"query": query, "start": str(now_s - check.for_s), "end": str(now_s), "step": str(_step_s(check))}


def verdict_on(check: MetricCheck, answer: bytes, prometheus: str, now_s: int) -> Sight | None:
    """Return why the metric does not hold, or cannot be told; None: every series had such a value all the time."""
    unreadable = Unseen(f"the Prometheus {prometheus} gives no answer that can be read")
    try:
        found = msgspec.json.decode(answer, type=_RangeAnswer)
        points = [(float(at), float(value)) for series in found.data.result for at, value in series.values]
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return unreadable
    start_s = now_s - check.for_s
    is_range = found.status == "success" and found.data.result_type == "matrix"
    if not is_range or not all(start_s <= at <= now_s for at, _ in points):
        return unreadable
    if not points:
        return Unmet(f"the query {_shown(check)} has no series")
    for _, value in points:
        if math.isnan(value) or not _COMPARE[check.comparison](value, check.threshold):
            return Unmet(f"the query {_shown(check)} is {value:g}, not {check.comparison} {check.threshold:g}")
    if len({at for at, _ in points}) < check.for_s // _step_s(check) + 1:
        return Unmet(f"the query {_shown(check)} has no value for a part of the last {check.for_s}s")
    return None


def refusal(answer: bytes) -> str:
    """Return the reason in an answer that refuses a query; empty: it has none."""
    try:
        said = msgspec.json.decode(answer, type=dict[str, Any]).get("error")
    except (msgspec.MsgspecError, RecursionError):
        return ""
    return f" ({said[:_SHOWN_CHARS]})" if isinstance(said, str) and said.isprintable() else ""


def _shown(check: MetricCheck) -> str:
    return check.query if len(check.query) <= _SHOWN_CHARS else f"{check.query[:_SHOWN_CHARS]}…"


def _step_s(check: MetricCheck) -> int:
    return max(_STEP_LEAST_S, -(-check.for_s // _STEPS_MAX))
