"""Engine T against a real API server: what it says is what server-side apply does.

A kind that does not agree on every triple would have to fall back to the dry run; none has to.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler.api.refs import GVK
from reconciler.diff import Difference, sendable
from reconciler.documents import builtin_schema
from tests.apiserver.requests_to import ApiServer, Body, path_of
from tests.apiserver.trial import MANAGER, Outcome, ordinary, run_trial
from tests.apiserver.wishes import CRD, SUBJECTS, Subject
from tests.engine_t import three_way
from tests.real_clusters import RealCluster
from tests.yaml_text import load_yaml

pytestmark = pytest.mark.apiserver

SEEDS = int(os.environ.get("DIFF_SEEDS", "40"))
"""Triples per kind; DIFF_FIRST_SEED moves the window."""
FIRST_SEED = int(os.environ.get("DIFF_FIRST_SEED", "0"))

KINDS: list[Body] = load_yaml((Path(__file__).parent.parent / "cases/diff/kinds.yaml").read_text())


DOUBTFUL_WITHOUT_JOURNAL = frozenset({"LimitRange"})
"""Kinds whose atomic lists get defaults that depend on other fields; the previous desired state tells them apart."""


@pytest.fixture(scope="module")
def custom_kinds(server: ApiServer) -> Iterator[None]:
    """The test's custom kind, gone afterwards: other tests compare what a fresh cluster serves."""
    definition = path_of(CRD)
    server.apply(definition, CRD, "test-set-up")
    server.until_established(definition)
    yield
    for path in (definition, *(path_of(body) for body in KINDS if body["kind"] == CRD["kind"])):
        server.remove(path)


@pytest.mark.usefixtures("custom_kinds")
@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: str(subject.name))
def test_says_what_an_apply_will_change(server: ApiServer, real_cluster: RealCluster, subject: Subject) -> None:
    namespace = real_cluster.new_namespace("triples")
    outcomes = [run_trial(server, namespace, subject, seed) for seed in range(FIRST_SEED, FIRST_SEED + SEEDS)]
    faulty = [outcome for outcome in outcomes if outcome.faults]
    assert not faulty, _report(faulty)
    # The triples have to be worth something.
    judged = [outcome for outcome in outcomes if not outcome.refused]
    assert len(judged) > 0.8 * SEEDS
    assert sum(outcome.changes for outcome in judged) > SEEDS
    assert sum(outcome.removals for outcome in judged) > SEEDS / 10


def _report(faulty: list[Outcome]) -> str:
    lines = [f"{len(faulty)} triples disagree"]
    for outcome in faulty[:3]:
        lines += [f"{outcome.kind} seed {outcome.seed}", *outcome.faults, *map(str, outcome.story)]
    return "\n".join(lines)


@pytest.fixture(scope="module")
def kinds_namespace(real_cluster: RealCluster) -> str:
    """The namespace that the manifests name."""
    return real_cluster.create_namespace("kinds")


@pytest.mark.usefixtures("kinds_namespace", "custom_kinds")
@pytest.mark.parametrize("body", KINDS, ids=lambda body: str(body["kind"]))
def test_is_silent_after_defaulting(server: ApiServer, body: Body) -> None:
    schema = builtin_schema(GVK.parse(body["apiVersion"], body["kind"]))
    assert schema is not None
    sent: Any = sendable(body, schema)
    server.apply(path_of(body), sent, MANAGER)
    live = server.get(path_of(body))
    assert three_way(sent, live, manager=MANAGER, previous=sent, schema=schema) == Difference()
    forgetful = three_way(sent, live, manager=MANAGER, schema=schema)
    if body["kind"] in DOUBTFUL_WITHOUT_JOURNAL:
        assert forgetful.unsure, "a difference that may be a default has to go to the dry run"
    else:
        assert forgetful == Difference()
    again = server.apply(path_of(body), sent, MANAGER)
    assert ordinary(again) == ordinary(live)


def test_knows_every_distributable_kind() -> None:
    assert len(KINDS) == 18
    assert len({body["kind"] for body in KINDS}) == 18
