"""The gate of a cluster: met by all copies or the reason why not, since when, for long enough, and in time.

Source: Karmada's proposal of staged rollouts: requireHealthy, requiredConditions, any flap starts minSuccessTime again;
Open Cluster Management, RolloutStrategy; Prometheus, HTTP API: range queries, whose answers are foreign input; Argo
Rollouts and Flagger: a query, and what its value must be.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import Annotated, Any, Final, NamedTuple

import msgspec

from reconciler.api.content import JsonObject, dig
from reconciler.api.refs import Identity, ResourceRef
from reconciler.api.rollout_progress import Complete, GateMet, GateStatus, GateUnknown, GateUnmet, Steady
from reconciler.api.rollouts import ConditionCheck, Gate, MetricCheck
from reconciler.decoding import prepared
from reconciler.rollouts.record_book import RolloutRecords, later_of

NOT_OBSERVED = GateUnknown("nothing is known of it yet")


def note_success(cluster: str, gate: Gate, book: RolloutRecords) -> None:
    """Note in the book when the time of success of a cluster begins or breaks off, and when it is complete."""
    record, status = book[cluster], book.sights.get(cluster, NOT_OBSERVED)
    if not record.revision or record.completed_at:
        return
    if not (isinstance(status, GateMet) and status.revision == record.revision):
        if record.steady_since and not (isinstance(status, GateUnmet) and status.is_scaling):
            book.note(Steady(cluster, ""))
        return
    since = later_of(record.steady_since or book.text, record.begun_at)
    if since != record.steady_since:
        book.note(Steady(cluster, since))
    if book.is_over(since, gate.min_success_s, cluster):
        book.note(Complete(cluster, book.text))


def has_failed(cluster: str, gate: Gate, book: RolloutRecords) -> bool:
    """Return whether a hook failed in a cluster, or its gate is not met now and its deadline is over."""
    record, status = book[cluster], book.sights.get(cluster, NOT_OBSERVED)
    if not record.revision or record.completed_at:
        return False
    if isinstance(status, GateMet) and status.revision == record.revision:
        return False
    return has_failed_hook(record.revision, status) or book.is_over(record.begun_at, gate.timeout_s, cluster)


def has_failed_hook(revision: str, status: GateStatus) -> bool:
    """Return whether a hook of a revision failed, which no waiting fixes. Source: ADR 26."""
    return isinstance(status, GateUnmet) and status.failed == revision != ""


def is_too_late(cluster: str, revision: str, gate: Gate, book: RolloutRecords) -> bool:
    """Return whether a cluster that cannot be changed has failed by the age of its turn."""
    record, is_away = book[cluster], cluster in book.facts.away
    return record.turn == revision and is_away and book.is_over(record.turn_at, gate.timeout_s, cluster)


class GatedCopy(NamedTuple):
    """A copy as gates see it. `is_in_step`: as in the active revision. `is_scaling`: placement changed its replicas."""

    identity: Identity
    is_in_step: bool
    is_healthy: bool
    why: str
    body: JsonObject
    is_scaling: bool = False
    has_failed: bool = False


def gate_status(
    gate: Gate, revision: str, copies: Iterable[GatedCopy], objects: Mapping[ResourceRef, JsonObject]
) -> GateStatus:
    """Return whether all copies are in step with the revision and the gate is met. `objects`: of its conditions."""
    ordered = sorted(copies, key=lambda copy: copy.identity)
    failed = next((copy for copy in ordered if copy.has_failed), None)
    if failed is not None:
        return GateUnmet(f"{failed.identity} failed: {failed.why}", failed=revision)
    late = [copy for copy in ordered if not copy.is_in_step]
    unwell = [copy for copy in ordered if copy.is_in_step and not copy.is_healthy] if gate.healthy else []
    is_scaling = all(copy.is_scaling for copy in (*late, *unwell))
    if late:
        return GateUnmet(f"{late[0].identity} is not as it is to be yet", is_scaling)
    if unwell:
        return GateUnmet(f"{unwell[0].identity}: {unwell[0].why or 'it is not healthy'}", is_scaling)
    why = next(filter(None, (_unmet(check, ordered, objects) for check in gate.checks)), "")
    return GateUnmet(why) if why else GateMet(revision)


def _unmet(check: ConditionCheck, copies: Iterable[GatedCopy], objects: Mapping[ResourceRef, JsonObject]) -> str:
    """Return the reason why a condition does not hold, empty if it does."""
    if check.of is not None:
        body = objects.get(check.of)
        return f"{check.of} is not there" if body is None else _unlike(check, str(check.of), body)
    bodies = [(str(copy.identity), copy.body) for copy in copies]
    having = [(name, body) for name, body in bodies if _status(body, check.condition) is not None]
    if not having:
        return f"no copy has the condition {check.condition} yet"
    return next(filter(None, (_unlike(check, name, body) for name, body in having)), "")


def _unlike(check: ConditionCheck, name: str, body: JsonObject) -> str:
    status = _status(body, check.condition)
    if status == check.status:
        return ""
    actual = "not there yet" if status is None else status
    return f"the condition {check.condition} of {name} is {actual}, not {check.status}"


def _status(body: JsonObject, condition: str) -> str | None:
    """Return the status of a condition; None if missing, or about an older generation of the object."""
    conditions, generation = dig(body, "status", "conditions"), dig(body, "metadata", "generation")
    for entry in conditions if isinstance(conditions, list | tuple) else ():
        if dig(entry, "type") == condition:
            observed = dig(entry, "observedGeneration")
            is_old = isinstance(observed, int) and isinstance(generation, int) and observed < generation
            status = dig(entry, "status")
            return status if isinstance(status, str) and not is_old else None
    return None


ANSWER_BYTES_MAX: Final = 1 << 20
_STEPS_MAX: Final = 60
_SHOWN_CHARS: Final = 120
_STEP_LEAST_S: Final = 15
_COMPARE: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq,
}  # fmt: skip


class _Series(msgspec.Struct):
    values: list[tuple[float, Annotated[str, msgspec.Meta(pattern=r"^[^_\s]+$")]]]


class _Matrix(msgspec.Struct, rename="camel"):
    result_type: str
    result: list[_Series]


@prepared
class _RangeAnswer(msgspec.Struct):
    status: str
    data: _Matrix
    warnings: list[str] = []


def range_query(check: MetricCheck, cluster: str, now_s: int) -> dict[str, str]:
    """Return the parameters of `/api/v1/query_range` for the time up to now. `now_s`: Unix time."""
    query = check.query.replace("$cluster", cluster)
    return {"query": query, "start": str(now_s - check.for_s), "end": str(now_s), "step": str(_step_s(check))}


def verdict_on(check: MetricCheck, answer: bytes, prometheus: str, now_s: int) -> GateStatus | None:
    """Return why the metric does not hold, or cannot be told; None: every series had such a value all the time."""
    unreadable = GateUnknown(f"the Prometheus {prometheus} gives no answer that can be read{refusal(answer)}")
    try:
        response = msgspec.json.decode(answer, type=_RangeAnswer)
        series = [[(float(at), float(value)) for at, value in one.values] for one in response.data.result]
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return unreadable
    start_s = now_s - check.for_s
    is_range = response.status == "success" and response.data.result_type == "matrix"
    if not is_range or not all(start_s <= at <= now_s for one in series for at, _ in one):
        return unreadable
    if response.warnings:
        return GateUnknown(f"the Prometheus {prometheus} warns that its answer is not whole")
    query = check.query if len(check.query) <= _SHOWN_CHARS else f"{check.query[:_SHOWN_CHARS]}…"
    if not series:
        return GateUnmet(f"the query {query} has no series")
    for _, value in chain.from_iterable(series):
        if not math.isfinite(value) or not _COMPARE[check.comparison](value, check.threshold):
            return GateUnmet(f"the query {query} is {value:g}, not {check.comparison} {check.threshold:g}")
    if min(len(dict(one)) for one in series) < check.for_s // _step_s(check) + 1:
        return GateUnmet(f"the query {query} has no value for a part of the last {check.for_s}s")
    return None


def refusal(answer: bytes) -> str:
    """Return the reason in an answer that refuses a query; empty: it has none."""
    try:
        error = msgspec.json.decode(answer, type=dict[str, Any]).get("error")
    except (msgspec.MsgspecError, RecursionError):
        return ""
    return f" ({error[:_SHOWN_CHARS]})" if isinstance(error, str) and error.isprintable() else ""


def _step_s(check: MetricCheck) -> int:
    return max(_STEP_LEAST_S, -(-check.for_s // _STEPS_MAX))
