"""The unkind twin has what it is said to have, and the same workloads, policies and clusters."""

from __future__ import annotations

from collections import Counter

from bench import corpus, unkind
from reconciler.api.problem import Severity
from reconciler.fleet import parse

WORKLOADS = 400
KIND, UNKIND = parse(corpus.snapshot(WORKLOADS)), parse(unkind.snapshot(WORKLOADS))
TEXTS = {path: data for path, data in unkind.store_files(WORKLOADS) if path.startswith("apps/")}


def test_has_the_same_workloads_and_clusters() -> None:
    assert UNKIND.clusters == KIND.clusters
    beside = {identity.kind for identity in UNKIND.templates.keys() - KIND.templates.keys()}
    assert KIND.templates.keys() < UNKIND.templates.keys()
    assert beside == {"Secret", "CustomResourceDefinition"}


def test_has_a_hint_in_every_file_and_broken_policies() -> None:
    by_path = Counter(problem.source.path for problem in UNKIND.problems if problem.severity is Severity.HINT)
    assert by_path == Counter(TEXTS.keys())
    errors = {problem.code for problem in UNKIND.problems if problem.severity is not Severity.HINT}
    assert errors == {"unknown-field"}
    assert len(UNKIND.frozen) == (len(KIND.propagation) + len(KIND.overrides) - 15) // 5


def test_has_what_real_stores_have() -> None:
    marks = {b"kind: Secret": 20, b"&selected": 10, b"routes.conf": 20, b"\r\n": 20, b"# ": 1, b"0644": 1}
    assert {mark: sum(mark in data for data in TEXTS.values()) for mark in marks} == {
        mark: WORKLOADS // of for mark, of in marks.items()
    }
    assert all(len(data) > 100_000 for path, data in unkind.store_files(WORKLOADS) if path.startswith("definitions/"))


def test_most_of_its_lines_that_have_a_value_stand_in_one_file_only() -> None:
    lines = Counter(line.strip() for data in TEXTS.values() for line in data.splitlines())
    usual = Counter(
        line.strip() for path, data in corpus.store_files(WORKLOADS) if path in TEXTS for line in data.splitlines()
    )
    assert _once(lines) > 4 * _once(usual)


def _once(lines: Counter[bytes]) -> int:
    return sum(count == 1 for count in lines.values())


def test_is_the_same_text_every_time() -> None:
    assert dict(unkind.store_files(100)) == dict(unkind.store_files(100))
    before, after = (unkind.workload_file(1, 2, version).splitlines() for version in (1, 2))
    assert sum(one != line for one, line in zip(before, after, strict=True)) == 1
