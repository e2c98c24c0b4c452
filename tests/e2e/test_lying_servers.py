"""A fleet one of whose API servers lies: a sample of the seeds that `make soak` tries by the thousand.

A seed is repeated with `plan_beside_a_liar(folder, range(seed, seed + 1))`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

from reconciler.api.plan import Plan
from reconciler.controller.once import Access, plan_once
from reconciler.controller.once.applying import apply_once
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.sim import ClusterSpec, FleetInABox, Request
from tests.fakes.clocks import TestClock
from tests.fakes.lying_server import Lie, let_lie
from tests.soak.lies import HONEST, LIAR, plan_beside_a_liar, serve_beside_a_liar, store

SEEDS = range(0, 24)


def test_no_answer_ends_a_plan_and_the_other_cluster_is_planned_for(tmp_path: Path) -> None:
    found = asyncio.run(plan_beside_a_liar(tmp_path, SEEDS))
    assert not found.faults, found.report()
    assert 0 < found.unread < len(SEEDS), "lies are found out, and do not end everything"


def test_a_service_goes_on_beside_a_liar_and_heals_it_in_the_end(tmp_path: Path) -> None:
    missed = asyncio.run(serve_beside_a_liar(tmp_path, SEEDS))
    assert not missed, "\n".join(missed)


def _in_discovery(change: Callable[[dict[str, Any]], Any]) -> Lie:
    def lie(request: Request, body: Any) -> Any:
        return change(dict(body)) if request.path in ("/api", "/apis") else body

    return lie


def _in_lists(change: Callable[[dict[str, Any]], Any]) -> Lie:
    def lie(request: Request, body: Any) -> Any:
        is_list = isinstance(body, dict) and isinstance(body.get("items"), list) and "continue" not in request.query
        return change(body) if is_list and not request.path.endswith("/apis") and request.path != "/api" else body

    return lie


def _each(body: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    """The list, with these metadata in each item."""
    return {**body, "items": [{**item, "metadata": {**item["metadata"], **metadata}} for item in body["items"]]}


ANSWERS: dict[str, Lie] = {
    "discovery without items": _in_discovery(lambda body: {**body, "items": None}),
    "discovery of items that are null": _in_discovery(lambda body: {**body, "items": [None]}),
    "names that are mappings": _in_lists(lambda body: _each(body, name={"a": "b"})),
    "items of null": _in_lists(lambda body: {**body, "items": [None, *body["items"]]}),
    "a token that is a mapping": _in_lists(lambda body: {**body, "metadata": {"continue": {"a": 1}}}),
    "metadata that are a list": _in_lists(lambda body: {**body, "metadata": []}),
    "a number instead of every answer": lambda request, body: 7,
}  # fmt: skip
"""Lies that make an answer worthless: the cluster is not read, or a kind of it."""

OBJECTS: dict[str, dict[str, Any]] = {
    "managedFields as a text": {"managedFields": "none"},
    "fields that are null": {"managedFields": [{"manager": "x", "operation": "Apply", "fieldsV1": {"f:spec": None}}]},
    "labels as a list": {"labels": []},
    "annotations that are numbers": {"annotations": {"fleet.reconciler/owner": 7}},
    "ownerReferences as a text": {"ownerReferences": "web"},
    "finalizers of null": {"finalizers": [None]},
    "a generation that is a text": {"generation": "3"},
    "a version that is a number": {"resourceVersion": 7},
}
"""Lies that make one object unreadable."""


async def _plans(folder: Path, lies: Mapping[str, Lie]) -> AsyncIterator[tuple[str, Plan]]:
    """Yield the plan over an honest cluster and one that tells each of the lies."""
    async with FleetInABox([ClusterSpec(name=name) for name in (LIAR, HONEST)], folder) as box:
        access = Access(
            interpreters=BUILT_IN_KINDS, kubeconfig=box.kubeconfig, journal=folder / "journal.db", clock=TestClock()
        )
        await apply_once(store(), access, lambda planned: True)
        server = await let_lie(box, LIAR)
        for name, server.lie in lies.items():
            yield name, (await plan_once(store(value="2"), access)).plan


async def test_an_answer_that_is_none_is_an_error_of_its_cluster_alone(tmp_path: Path) -> None:
    async for name, plan in _plans(tmp_path, ANSWERS):
        assert not plan.is_complete, name
        assert {change.cluster for change in plan.changes} == {HONEST}, name
        unread = {found.cluster for found in plan.problems if found.code in {"cluster-not-read", "kind-not-read"}}
        assert unread == {LIAR}, name


def _of_config_maps(metadata: dict[str, Any]) -> Lie:
    return lambda request, body: (
        _each(body, **metadata) if request.path.endswith("/configmaps") and isinstance(body, dict) else body
    )


async def test_an_object_that_cannot_be_read_is_left_alone_by_name_and_the_others_go_on(tmp_path: Path) -> None:
    async for name, plan in _plans(tmp_path, {name: _of_config_maps(given) for name, given in OBJECTS.items()}):
        assert not plan.is_complete, name
        assert {(change.cluster, change.identity.name) for change in plan.changes} == {(HONEST, "settings")}, name
        unread = [problem for problem in plan.problems if problem.code == "object-not-read"]
        assert [problem.cluster for problem in unread] == [LIAR], name
        assert "ConfigMap demo/settings cannot be read" in unread[0].message, name


STATUSES: tuple[Any, ...] = (
    None, 7, "x", [], {"conditions": None}, {"conditions": {"type": "Ready"}}, {"conditions": [None, {"type": []}]},
    {"conditions": [{"type": {}, "status": [], "lastTransitionTime": {}}], "replicas": "3", "readyReplicas": "x"},
    {"conditions": [{"type": "Available", "status": "False", "lastTransitionTime": "2026-13-45T99:99:99Z"}]},
    {"observedGeneration": "1", "replicas": 2**63, "availableReplicas": 2**63, "updatedReplicas": 2**63},
    {"phase": {}, "loadBalancer": [], "currentRevision": {}, "updateRevision": [], "active": "1", "succeeded": {}},
)  # fmt: skip


def _with_status(status: Any) -> Lie:
    def lie(request: Request, body: Any) -> Any:
        if not isinstance(body, dict) or request.path in ("/api", "/apis"):
            return body
        if isinstance(body.get("items"), list) and not request.path.endswith(("/pods", "/nodes")):
            return {**body, "items": [{**item, "status": status} for item in body["items"]]}
        return {**body, "status": status} if "metadata" in body and "items" not in body else body

    return lie


async def test_a_status_of_any_type_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    async for name, plan in _plans(tmp_path, {str(status): _with_status(status) for status in STATUSES}):
        changed = {(change.cluster, change.identity.name) for change in plan.changes}
        assert changed >= {(HONEST, "settings"), (LIAR, "settings")}, name
