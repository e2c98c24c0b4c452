"""Restored clusters are told from API servers that lag. Source: design#restored-cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain, repeat
from pathlib import Path

import pytest

from reconciler.api.clusters import LiveObject
from reconciler.api.ledger import Event, EventKind
from reconciler.api.refs import GVK, Identity
from reconciler.controller import timing
from reconciler.controller.inbox import Inbox
from reconciler.controller.retries.health_cache import HealthCache
from reconciler.controller.retries.restores import ANSWERS, Restores, VersionDecrease
from reconciler.journal import Journal
from reconciler.kube import MemberClusters, MemberConfig, UserAgent
from reconciler.sim import Request
from reconciler.sim.api.discovery import answer as discovery
from reconciler.sim.objects.kinds import Served
from reconciler.state import Degraded, Healthy
from tests.fakes.clocks import QuickClock
from tests.fakes.scripted_server import CUT, Asked, ScriptedServer, reply
from tests.fakes.worlds import NOW

CONFIG_MAP = GVK("", "v1", "ConfigMap")
APP = VersionDecrease(CONFIG_MAP, "demo", "app", 100)


def answering(versions: Iterator[int | None], uid: str = "u1") -> Callable[[Asked], bytes]:
    """An API server, or several behind one address, whose lists are as of these versions. None: no answer."""

    def answer(asked: Asked) -> bytes:
        path = asked.target.partition("?")[0]
        if path.endswith("/kube-system"):
            metadata = {"name": "kube-system", "uid": uid}
            return reply(200, {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        found = discovery(Served(), Request(method="GET", path=path, accept=asked.headers.get("accept", "")))
        if found is not None:
            return reply(found.status, found.body, Content_Type=found.content_type)
        version = next(versions)
        if version is None:
            return CUT
        assert "resourceVersion=" not in asked.target, "what is read has to come through from etcd"
        if path.endswith("/app"):
            metadata = {"name": "app", "namespace": "demo", "uid": "a", "resourceVersion": str(version or "")}
            return reply(200, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
        return reply(200, {"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList", "items": [],
                           "metadata": {"resourceVersion": str(version or "")}})  # fmt: skip

    return answer


async def judged(restores: Restores, versions: Iterator[int | None], uid: str = "u1") -> tuple[list[str], int]:
    """The clusters that went back, once nothing is suspected any more, and how many connections were made."""
    async with ScriptedServer(by_target=answering(versions, uid)) as server:
        config = MemberConfig(name="m1", server=server.url)
        async with MemberClusters.open({"m1": config}, agent=UserAgent("f"), clock=QuickClock()) as members:
            found: list[str] = []
            while any(restores.suspected.values()):
                found = await restores.confirmed({"m1": (members["m1"], "u1")})
            return found, server.connections


def suspecting(*versions: str) -> Restores:
    restores = Restores()
    for version in versions:
        restores.listed("m1", CONFIG_MAP, version)
    return restores


@pytest.mark.parametrize(
    ("answers", "went_back"),
    [
        pytest.param(repeat(50), True, id="each is older than what was seen"),
        pytest.param(iter((50, 50, 100)), False, id="one of several lags"),
        pytest.param(iter((101,)), False, id="it was late"),
        pytest.param(repeat(0), False, id="a proxy takes the versions away"),
        pytest.param(chain((None, None), repeat(50)), True, id="no answer is no evidence, and is tried again"),
        pytest.param(chain((50, 50, None, None), repeat(120)), False, id="what came before the silence counts no more"),
    ],
)
async def test_a_list_of_an_earlier_version(answers: Iterator[int | None], went_back: bool) -> None:
    found, connections = await judged(suspecting("100", "50"), answers)
    assert bool(found) is went_back
    assert not went_back or connections > ANSWERS, "each comes over a connection of its own"


async def test_another_cluster_under_the_name_has_not_gone_back() -> None:
    assert (await judged(suspecting("100", "50"), repeat(50), uid="another"))[0] == []


async def test_an_object_in_an_earlier_version_counts_too() -> None:
    """The versions of the restored cluster have grown past those seen before."""
    for answers, went_back in ((repeat(60), True), (iter((60, 100)), False)):
        restores = Restores()
        restores.suspect("m1", APP)
        assert bool((await judged(restores, answers))[0]) is went_back


def test_versions_that_grow_or_are_no_numbers_are_no_reason() -> None:
    assert not suspecting("100", "100", "101", "", "abc").suspected
    late = suspecting("100")
    late.saw("m1", CONFIG_MAP, "50")  # An event that came late.
    assert not late.suspected
    late.listed("m1", CONFIG_MAP, "99")
    assert late.suspected


def test_it_is_told_for_a_day_and_after_a_restart() -> None:
    restores = Restores()
    subject = "cluster m1"
    event = Event(round=1, time=NOW, kind=EventKind.CLUSTER_WENT_BACK, subject=subject, data={})
    restores.recall([event], {})
    assert [found.cluster for found in restores.problems(NOW)] == ["m1"]
    assert restores.problems("2026-11-23T10:00:00Z") == ()
    assert timing.WENT_BACK_SHOWN_S == 86_400


def test_what_the_process_before_has_seen_counts(tmp_path: Path) -> None:
    kinds = [GVK("apps", "v1", kind) for kind in ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet")]
    before, after = Restores(), Restores()
    for number, gvk in enumerate(kinds):
        before.listed("m1", gvk, str(100 + number))
    with Journal.open(tmp_path / "journal.db") as journal:
        assert journal.versions() == {}
        journal.record_versions(before.newest())
        after.recall([], journal.versions())
    assert after.newest() == {"m1": {kinds[number]: 100 + number for number in (3, 2, 1)}}
    assert {found.version for found in after.suspected["m1"]} == {101, 102, 103}, "nothing is written before a check"
    after.suspected.clear()
    for gvk, version in ((kinds[0], "1"), (kinds[1], "101"), (kinds[3], "200")):
        after.listed("m1", gvk, version)
    assert not after.suspected
    after.listed("m1", kinds[2], "101")
    assert after.suspected


def test_what_a_list_shows_in_an_earlier_version_and_what_is_forgotten() -> None:
    identity = Identity("", "ConfigMap", "demo", "app")
    healths, live = (
        HealthCache(Inbox()),
        LiveObject(gvk=CONFIG_MAP, identity=identity, uid="a", resource_version="50", body={}),
    )
    healths.note("m1", identity, "100", Degraded("it fails"))
    assert list(healths.older("m1", [live])) == [(live, 100)]
    assert list(healths.older("m2", [live])) == []
    healths.forget("m1")
    assert healths.snapshot()["m1"] == {}
    healths.note("m1", identity, "50", Degraded("again"))
    assert healths.snapshot()["m1"] == {identity: Degraded("again")}
    healths.note("m1", identity, "51", Healthy())
    assert healths.snapshot()["m1"] == {}
