"""Metrics of gates, asked from a Prometheus that is away, lies, is slow, says too much, or has no number.

Source: Prometheus, HTTP API, range queries; ADR 18.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from reconciler.api.rollout_progress import GateStatus, GateUnknown, GateUnmet
from reconciler.api.rollouts import MetricCheck
from reconciler.controller import timing
from reconciler.controller.rollouts.requests import Prometheus, PrometheusAddress, no_prometheus
from reconciler.notify.post import Poster
from tests.fakes.prometheus import Answer, FakePrometheus, answer_of, matrix

NOW, BEGUN = "2026-11-23T12:00:00Z", "2026-11-23T11:00:00Z"
ERRORS = MetricCheck(query='rate(errors{cluster="$cluster"}[5m])', comparison="<", threshold=0.01)
LASTING = MetricCheck(query="up", comparison=">=", threshold=1, for_s=600)
Answering = Callable[[Mapping[str, str]], Answer]


async def asked(answering: Answering, check: MetricCheck = ERRORS, *, begun: str = BEGUN) -> GateStatus | None:
    async with Poster.open() as poster:
        with FakePrometheus(answering) as fake:
            known = Prometheus(PrometheusAddress(name="main", url=fake.url), poster)
            return await known.verdict((check,), "m1", begun, NOW)


@pytest.mark.parametrize(
    ("check", "values", "why"),
    [
        (ERRORS, ["0.001"], ""),
        (ERRORS, ["0.001", "0.002"], ""),
        (ERRORS, ["0.01"], "is 0.01, not < 0.01"),
        (ERRORS, ["0.001", "0.5"], "is 0.5, not < 0.01"),
        (ERRORS, ["NaN"], "is nan, not < 0.01"),
        (ERRORS, ["-Inf"], "is -inf, not < 0.01"),
        (ERRORS, ["+Inf"], "is inf, not < 0.01"),
        (ERRORS, [], "has no series"),
        (LASTING, ["1"], ""),
        (LASTING, ["0"], "is 0, not >= 1"),
    ],
)
async def test_each_value_counts(check: MetricCheck, values: list[str], why: str) -> None:
    found = await asked(lambda params: matrix(params, *values), check)
    assert found is None if not why else isinstance(found, GateUnmet) and found.why.endswith(why)


async def test_a_metric_holds_for_its_whole_time_since_the_beginning() -> None:
    gap = await asked(lambda params: matrix(params, "1", skips=(3,)), LASTING)
    assert isinstance(gap, GateUnmet) and "no value for a part of the last 600s" in gap.why
    late = await asked(lambda params: matrix(params, "1", "1", skips=(0, 3)), LASTING)
    assert late == gap, "of several series each has to have a value all the time"
    early = await asked(lambda params: matrix(params, "1"), LASTING, begun="2026-11-23T11:55:00Z")
    assert isinstance(early, GateUnmet) and "600s after its beginning" in early.why


def lying(params: Mapping[str, str]) -> Answer:
    """Values of another time than was asked for."""
    return matrix({**params, "start": "0", "end": "0"}, "0.001")


def warned(answer: Answer) -> Answer:
    """The answer of a store of which a part did not answer."""
    status, headers, body = answer
    return status, headers, json.dumps({**json.loads(body), "warnings": ["a store did not answer"]}).encode()


LIES: dict[str, tuple[Answering, str]] = {
    "no JSON": (lambda _: (200, {}, b"<html>"), "no answer that can be read"),
    "another shape": (lambda _: answer_of({"status": "success", "data": {"resultType": "vector", "result": []}}),
                      "no answer that can be read"),
    "no numbers": (lambda params: matrix(params, "many"), "no answer that can be read"),
    "a number of Python": (lambda params: matrix(params, "0_0"), "no answer that can be read"),
    "a part": (lambda params: warned(matrix(params, "0.001")), "warns that its answer is not whole"),
    "an error with 200": (lambda _: answer_of({"status": "error", "error": "no store"}), "can be read (no store)"),
    "another time": (lying, "no answer that can be read"),
    "deep": (lambda _: (200, {}, b"[" * 100_000), "no answer that can be read"),
    "an error": (lambda _: answer_of({"status": "error", "error": "parse error"}, 400),
                 "it answers 400 (parse error)"),
    "a redirect": (lambda _: (302, {"Location": "http://127.0.0.1:9/"}, b""), "it answers 302"),
    "huge": (lambda _: (200, {}, b" " * (3 << 20)), "answers with more than 1 MiB"),
}  # fmt: skip


@pytest.mark.parametrize("kind", LIES)
async def test_what_cannot_be_told_is_said_and_is_never_met(kind: str) -> None:
    answering, why = LIES[kind]
    found = await asked(answering)
    assert isinstance(found, GateUnknown)
    assert found.why.startswith("the Prometheus main ") and found.why.endswith(why)


async def test_one_that_is_slow_or_away_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "PATIENCE_S", 0.2)
    async with Poster.open() as poster:
        with FakePrometheus(lambda _: (200, {}, b"")) as fake:

            def never(_: Mapping[str, str]) -> Answer:
                fake.closing.wait()
                return 200, {}, b""

            fake.answer = never
            known = Prometheus(PrometheusAddress(name="main", url=fake.url), poster)
            slow = await known.verdict((ERRORS,), "m1", BEGUN, NOW)
        away = await known.verdict((ERRORS,), "m1", BEGUN, NOW)
    assert slow == GateUnknown("the Prometheus main gives no answer within 0.2 s")
    assert away == GateUnknown("the Prometheus main cannot be asked: connection refused")


async def test_the_token_is_the_operators_and_the_cluster_is_named(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("secret")
    token.chmod(0o600)
    async with Poster.open() as poster:
        with FakePrometheus(lambda params: matrix(params, "0")) as fake:
            address = PrometheusAddress(name="main", url=f"{fake.url}/prom/", token=token)
            known = Prometheus(address, poster)
            assert await known.verdict((ERRORS,), "m1", BEGUN, NOW) is None
            token.unlink()
            gone = await known.verdict((ERRORS,), "m1", BEGUN, NOW)
    (path, params, authorization), *more = fake.asked
    assert (path, authorization, more) == ("/prom/api/v1/query_range", "Bearer secret", [])
    assert params["query"] == 'rate(errors{cluster="m1"}[5m])'
    assert gone == GateUnknown("the token of the Prometheus main cannot be read")


def test_where_there_is_none_it_is_said() -> None:
    assert "names no Prometheus (spec.prometheus)" in no_prometheus("").why
    assert "knows no Prometheus main; start the service with --prometheus main=URL" in no_prometheus("main").why
