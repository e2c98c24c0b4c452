"""A cluster that acknowledges a write and makes something else of it. Source: design#altered-writes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reconciler.api.fleet import Fleet
from reconciler.api.refs import Identity
from reconciler.controller.once import plan_once
from reconciler.controller.once.applying import apply_once
from reconciler.journal import Journal
from tests.fakes.admitting_server import let_admit
from tests.fakes.members import opened
from tests.fakes.worlds import deployment, fleet_of, policy

WORD = "hunter2-canary"
WEB = Identity("apps", "Deployment", "demo", "web")


def web(replicas: int = 3) -> Fleet:
    body = deployment("web", replicas)
    body["metadata"]["labels"] = {"team": "a"}
    return fleet_of(body, policy("Deployment", "m1"), clusters=("m1", "m2"))


def secret(word: str) -> Fleet:
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "app", "namespace": "demo"},
            "stringData": {"password": word}}  # fmt: skip
    return fleet_of(body, policy("Secret", "m1"), clusters=("m1", "m2"))


def spec_of(body: dict[str, Any]) -> dict[str, Any]:
    pod: dict[str, Any] = body["spec"]["template"]["spec"]
    return pod


def fewer(body: dict[str, Any]) -> None:
    body["spec"]["replicas"] = 1


def another_image(body: dict[str, Any]) -> None:
    spec_of(body)["containers"][0]["image"] = "registry.example/nginx:1"


def without_replicas(body: dict[str, Any]) -> None:
    del body["spec"]["replicas"]


def without_a_label(body: dict[str, Any]) -> None:
    del body["metadata"]["labels"]["team"]


def a_sidecar(body: dict[str, Any]) -> None:
    spec_of(body)["containers"].insert(0, {"name": "proxy", "image": "envoy:1"})
    spec_of(body)["volumes"] = [{"name": "certs", "emptyDir": {}}]
    body["metadata"].setdefault("annotations", {})["injected"] = "yes"


def other_spellings(body: dict[str, Any]) -> None:
    spec_of(body)["containers"][0]["resources"] = {"limits": {"cpu": "0.5", "memory": "1048576Ki"}}
    spec_of(body)["tolerations"] = []


def a_longer_image(body: dict[str, Any]) -> None:
    spec_of(body)["containers"][0]["image"] = f"registry.example{'/a' * 40}/nginx:2"


CHANGED = "the cluster changed what was written (an admission webhook?): "


@pytest.mark.parametrize(
    ("webhook", "told"),
    [
        (fewer, f"{CHANGED}spec.replicas is 1, not 3"),
        (another_image, f"{CHANGED}spec.template.spec.containers[name=main].image is "
                        '"registry.example/nginx:1", not "nginx:1"'),
        (a_longer_image, f"{CHANGED}spec.template.spec.containers[name=main].image is "
                         "[-registry.example" + "/a" * 40 + "/nginx:2-], not {+nginx:1+}"),
        (without_replicas, f"{CHANGED}spec.replicas is 1, not 3"),
        (without_a_label, "the cluster changed what was written (an admission webhook or a schema without the field?): "
                          "metadata.labels.team was dropped"),
        (a_sidecar, ""),
        (other_spellings, ""),
    ],
)  # fmt: skip
async def test_what_comes_back_from_a_write_is_compared_with_what_was_sent(
    tmp_path: Path, webhook: Callable[[dict[str, Any]], None], told: str
) -> None:
    async with opened(tmp_path) as scene:
        (await let_admit(scene.box, "m1", "Deployment")).webhook = webhook
        applied = await apply_once(web(), scene.access(tmp_path / "own.db"), lambda planned: True)
        (result,) = (result for result in applied.results if result.change.identity == WEB)
        assert result.error == told
        with Journal.open(tmp_path / "own.db") as journal:
            (row,) = (row for row in journal.applied("m1").values() if row.identity == WEB)
            assert row.uid == result.uid, "it is there, and ours"
            assert not journal.open_intents()
            (event,) = journal.events(subject=f"{WEB} @ m1", kind="failed" if told else "created")
            assert event.data.get("error", "") == told
            document = journal.state() or {}
            assert [entry["error"] for entry in document["failed"]] == ([told] if told else [])


async def test_values_of_a_secret_that_was_changed_on_the_way_are_not_told(tmp_path: Path) -> None:
    def weaker(body: dict[str, Any]) -> None:
        body["data"]["password"] = "cGw0bnRlZA=="

    async with opened(tmp_path) as scene:
        (await let_admit(scene.box, "m1", "Secret")).webhook = weaker
        applied = await apply_once(secret(WORD), scene.access(tmp_path / "own.db"), lambda planned: True)
        (error,) = (result.error for result in applied.results if result.change.identity.kind == "Secret")
        assert error.startswith(f"{CHANGED}data.password is ")
        for value in (WORD, "cGw0bnRlZA==", "pl4nted"):
            assert value not in error


async def test_what_lost_our_mark_and_leaves_the_store_is_told_and_stays(tmp_path: Path) -> None:
    fleet, empty = web(), fleet_of(clusters=("m1", "m2"))

    def without_marks(body: dict[str, Any]) -> None:
        del body["metadata"]["labels"]["fleet.reconciler/fleet"], body["metadata"]["annotations"]

    async with opened(tmp_path / "scene") as scene:
        (await let_admit(scene.box, "m1", "Deployment")).webhook = without_marks
        access = scene.access(tmp_path / "journal.db")
        await apply_once(fleet, access, lambda planned: True)
        text = f"{WEB} is no longer wanted but is not deleted: it lost our mark; it stays, unmanaged"
        for told in ([("m1", text)], []):
            problems = (await plan_once(empty, access)).plan.problems
            assert [(found.cluster, found.message) for found in problems if found.code == "not-deleted"] == told
            await apply_once(empty, access, lambda planned: True)
        assert scene.live("m1", "web", "Deployment") is not None
        with Journal.open(tmp_path / "journal.db", read_only=True) as journal:
            released = {event.subject: event.data.get("why") for event in journal.last_releases()}
    assert released[f"{WEB} @ m1"] == text
