"""No store, however odd, ends a command, and none finds a fault of the program. Source: design#boundaries.

What was found once is a case of `tests/unit/test_engine_boundaries.py`.
"""

from __future__ import annotations

import os
import resource
import time
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.api.clusters import Observations
from reconciler.api.fleet import Fleet, Snapshot, StoreFile
from reconciler.api.plan import Plan
from reconciler.containment import INTERNAL_ERROR
from reconciler.fleet import parse
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.lint import lint
from reconciler.planner import compare_revisions
from reconciler.report import (
    json_text,
    problems_part,
    problems_text,
    render_json,
    render_yaml,
    rendering,
    sorted_manifests,
)
from reconciler.report.plan import plan_document, plan_text
from reconciler.report.plan.markdown import plan_markdown
from reconciler.report.plan.plan_patches import plan_patches
from reconciler.scheduler import schedule_fleet
from tests.examples import examples
from tests.fakes.mutations import SOUND, mutated_documents, mutated_text
from tests.fakes.worlds import NOW

SEEDS = st.integers(0, 2**48)
RUN_MAX_S = 10.0
"""Of processor time, for a store that usually takes a twentieth of a second in all forms."""
GROWN_MAX_KIB = 200 * 1024


def _fleet(data: bytes, name: str = "all.yaml") -> Fleet:
    return parse(Snapshot(revision=name, files=(StoreFile(path=name, blob=name, data=data),)))


BASE = _fleet(SOUND.encode())


def _print(plan: Plan) -> None:
    for text in (
        plan_text(plan),
        plan_markdown(plan, budget=65_536),
        json_text(plan_document(plan)),
        json_text(plan_patches(plan)),
    ):
        _assert_inert(text)


def _assert_inert(text: str) -> None:
    bad = {char for char in text if (ord(char) < 32 and char not in "\n\t") or 0x7F <= ord(char) < 0xA0}
    assert not bad, bad


def check(data: bytes) -> None:
    """Validate, render and compare the store, and print all of it in every form."""
    fleet = _fleet(data)
    schedule = schedule_fleet(fleet, Observations(), NOW, interpreters=BUILT_IN_KINDS)
    shown = rendering(schedule, with_bodies=True)
    carried = [identity for identity, binding in schedule.bindings.items() if binding.owners]
    found = {*shown.problems, *lint(fleet, schedule.claims, BUILT_IN_KINDS, carried)}
    _assert_inert(render_json(shown))
    _assert_inert(render_yaml(sorted_manifests(shown.manifests)))
    _assert_inert(problems_text(found))
    problems_part(found)
    for base, head in ((BASE, fleet), (fleet, BASE)):
        plan = compare_revisions(base, head, Observations(), NOW, interpreters=BUILT_IN_KINDS)
        found.update(plan.problems)
        _print(plan)
    faults = [f"{problem}\n{problem.trace}" for problem in found if problem.code == INTERNAL_ERROR]
    assert not faults, "\n".join(faults)


def test_the_sound_store_is_sound() -> None:
    assert not [str(problem) for problem in BASE.problems if problem.severity == "error"]
    check(SOUND.encode())


@given(SEEDS)
@settings(max_examples=examples(75))
def test_a_value_in_the_wrong_place_is_the_author_s_problem(seed: int) -> None:
    random = Random(seed)
    check(mutated_documents(random, random.choice((1, 1, 1, 2, 5))))


@given(SEEDS)
@settings(max_examples=examples(50))
def test_a_byte_in_the_wrong_place_is_the_author_s_problem(seed: int) -> None:
    random = Random(seed)
    check(mutated_text(random, random.choice((1, 1, 2, 8))))


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_a_hundred_thousand_mutations() -> None:
    """`RECONCILER_SOAK_STORES=FIRST:END` chooses other seeds, of which each makes two stores."""
    first, end = map(int, os.environ.get("RECONCILER_SOAK_STORES", "0:50000").split(":"))
    longest_s = 0.0
    before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for seed in range(first, end):
        for mutate in (mutated_documents, mutated_text):
            begun_s = time.process_time()
            try:
                check(mutate(Random(seed), 1 + seed % 3))
                taken_s = time.process_time() - begun_s
                assert taken_s < RUN_MAX_S, f"took {taken_s:.1f} s of processor time"
            except Exception as error:
                error.add_note(f"{mutate.__name__}, seed {seed}")
                raise
            longest_s = max(longest_s, taken_s)
    grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib
    print(f"{2 * (end - first)} stores, {longest_s:.2f} s of processor time at most, {grown_kib / 1024:.0f} MiB more")
    assert grown_kib < GROWN_MAX_KIB
