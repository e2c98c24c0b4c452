"""The loopback face: faults as a client meets them, stopped, paused and replaced clusters, real time."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from reconciler.sim import ClusterSpec, Fault, FaultKind, Faults, FleetInABox, Request, background_fleet, is_write
from tests.fakes.waiting import until

MAPS = "/api/v1/namespaces/default/configmaps"
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}


@asynccontextmanager
async def a_fleet(
    folder: Path, *names: str, speed: float | None = None
) -> AsyncIterator[tuple[FleetInABox, aiohttp.ClientSession]]:
    specs = [ClusterSpec(name=name) for name in names or ("m1",)]
    async with FleetInABox(specs, folder, speed=speed) as box, aiohttp.ClientSession() as session:
        yield box, session


async def status_of(pending: AbstractAsyncContextManager[aiohttp.ClientResponse]) -> int:
    async with pending as answer:
        await answer.read()
        return answer.status


async def test_serves_each_cluster_on_a_port_of_its_own(tmp_path: Path) -> None:
    async with a_fleet(tmp_path, "m1", "m2") as (box, session):
        config = json.loads(box.kubeconfig.read_text())
        assert [context["name"] for context in config["contexts"]] == ["m1", "m2"]
        assert box.kubeconfig.stat().st_mode & 0o077 == 0
        await status_of(session.post(box.servers["m1"].url + MAPS, json=CONFIG_MAP))
        found = [await status_of(session.get(f"{box.servers[name].url}{MAPS}/c")) for name in ("m1", "m2")]
        assert found == [200, 404]
        assert box["m1"].audit[0].user_agent.startswith("Python/")


@pytest.mark.parametrize(
    ("kind", "status", "header"),
    [(FaultKind.THROTTLED, 429, "7"), (FaultKind.UNAVAILABLE, 503, "7"), (FaultKind.INTERNAL, 500, None),
     (FaultKind.EXPIRED, 410, None), (FaultKind.FORBIDDEN, 403, None), (FaultKind.UNAUTHORIZED, 401, None)],
)  # fmt: skip
async def test_a_refusing_fault_answers_so_and_does_nothing(
    tmp_path: Path, kind: FaultKind, status: int, header: str | None
) -> None:
    async with a_fleet(tmp_path) as (box, session):
        server = box.servers["m1"]
        server.faults.order(Fault(kind=kind, retry_after_s=7))
        answer = await session.post(server.url + MAPS, json=CONFIG_MAP)
        assert (answer.status, answer.headers.get("Retry-After")) == (status, header)
        assert (await answer.json())["code"] == status
        assert await status_of(session.get(f"{server.url}{MAPS}/c")) == 404


@pytest.mark.parametrize(("kind", "is_stored"), [(FaultKind.RESET, False), (FaultKind.LOST_RESPONSE, True)])
async def test_a_broken_connection_leaves_it_open_what_was_done(
    tmp_path: Path, kind: FaultKind, is_stored: bool
) -> None:
    async with a_fleet(tmp_path) as (box, session):
        server = box.servers["m1"]
        server.faults.order(Fault(kind=kind), when=is_write)
        with pytest.raises(aiohttp.ClientError):
            await session.post(server.url + MAPS, json=CONFIG_MAP)
        found = await status_of(session.get(f"{server.url}{MAPS}/c"))
        assert found == (200 if is_stored else 404)


async def test_a_truncated_answer_is_noticed(tmp_path: Path) -> None:
    async with a_fleet(tmp_path) as (box, session):
        server = box.servers["m1"]
        server.faults.order(Fault(kind=FaultKind.TRUNCATED))
        async with session.get(server.url + MAPS) as answer:
            with pytest.raises(aiohttp.ClientPayloadError):
                await answer.read()


@pytest.mark.parametrize(("kind", "count"), [(FaultKind.PARTIAL_LIST, 2), (FaultKind.EMPTY_LIST, 0)])
async def test_a_short_list_looks_whole(tmp_path: Path, kind: FaultKind, count: int) -> None:
    async with a_fleet(tmp_path) as (box, session):
        server = box.servers["m1"]
        for number in range(3):
            await status_of(session.post(server.url + MAPS, json={**CONFIG_MAP, "metadata": {"name": f"c{number}"}}))
        server.faults.order(Fault(kind=kind))
        body = await (await session.get(server.url + MAPS)).json()
        assert (len(body["items"]), "continue" in body["metadata"]) == (count, False)
        assert len((await (await session.get(server.url + MAPS)).json())["items"]) == 4


async def test_a_hanging_request_hangs_alone(tmp_path: Path) -> None:
    async with a_fleet(tmp_path) as (box, session):
        server = box.servers["m1"]
        server.faults.order(Fault(kind=FaultKind.HANGING))
        with pytest.raises(asyncio.TimeoutError):
            await session.get(server.url + MAPS, timeout=aiohttp.ClientTimeout(total=0.2))
        assert await status_of(session.get(server.url + MAPS)) == 200


async def test_html_is_not_json(tmp_path: Path) -> None:
    async with a_fleet(tmp_path) as (box, session):
        server = box.servers["m1"]
        server.faults.order(Fault(kind=FaultKind.HTML))
        answer = await session.get(server.url + MAPS)
        assert (answer.status, answer.content_type) == (200, "text/html")


async def test_a_stopped_cluster_refuses_and_comes_back_with_its_data(tmp_path: Path) -> None:
    async with a_fleet(tmp_path) as (box, session):
        server = box.servers["m1"]
        await status_of(session.post(server.url + MAPS, json=CONFIG_MAP))
        await server.stop()
        with pytest.raises(aiohttp.ClientConnectorError):
            await session.get(server.url + MAPS)
        await server.start()
        assert await status_of(session.get(f"{server.url}{MAPS}/c")) == 200


async def test_a_paused_cluster_answers_once_it_is_resumed(tmp_path: Path) -> None:
    async with a_fleet(tmp_path) as (box, session):
        server = box.servers["m1"]
        server.pause()
        waiting = asyncio.create_task(session.get(server.url + MAPS))
        done, _ = await asyncio.wait([waiting], timeout=0.1)
        assert not done
        server.resume()
        assert (await waiting).status == 200


async def test_a_replaced_cluster_has_another_uid(tmp_path: Path) -> None:
    async with a_fleet(tmp_path) as (box, _):
        uid = box["m1"].uid
        box.replace("m1")
        assert box["m1"].uid != uid


async def test_a_watch_sees_changes_as_they_come(tmp_path: Path) -> None:
    async with a_fleet(tmp_path) as (box, session):
        url = box.servers["m1"].url + MAPS
        version = (await (await session.get(url)).json())["metadata"]["resourceVersion"]
        watches = [await session.get(url, params={"watch": "1", "resourceVersion": version}) for _ in range(3)]
        for verb, seen in ((session.post(url, json=CONFIG_MAP), "ADDED"), (session.delete(f"{url}/c"), "DELETED")):
            await status_of(verb)
            lines = [json.loads(await asyncio.wait_for(watch.content.readline(), 60)) for watch in watches]
            assert [line["type"] for line in lines] == [seen] * 3
        for watch in watches:
            watch.close()


async def test_a_broken_watch_can_be_taken_up_again(tmp_path: Path) -> None:
    async with a_fleet(tmp_path) as (box, session):
        server = box.servers["m1"]
        query = {"watch": "1", "resourceVersion": str(box["m1"].state.store.version)}
        watch = await session.get(server.url + MAPS, params=query)
        server.break_connections()
        with pytest.raises(aiohttp.ClientPayloadError):
            await watch.content.read()
        watch.close()
        await status_of(session.post(server.url + MAPS, json=CONFIG_MAP))
        again = await session.get(server.url + MAPS, params=query)
        assert json.loads(await again.content.readline())["type"] == "ADDED"
        again.close()


async def test_time_follows_the_clock_when_asked(tmp_path: Path) -> None:
    async with a_fleet(tmp_path, speed=1000) as (box, _):
        began = box["m1"].now_s
        await until(lambda: box["m1"].now_s >= began + 100)


async def test_a_body_that_is_no_json_is_refused(tmp_path: Path) -> None:
    async with a_fleet(tmp_path) as (box, session):
        url = box.servers["m1"].url + MAPS
        assert await status_of(session.post(url, data=b"{bad", headers={"Content-Type": "application/json"})) == 400
        protobuf = {"Content-Type": "application/vnd.kubernetes.protobuf"}
        assert await status_of(session.post(url, data=b"k8s\x00", headers=protobuf)) == 415


async def test_nobody_else_is_given_the_port_of_a_cluster_that_stops(tmp_path: Path) -> None:
    async with a_fleet(tmp_path) as (box, _):
        server = box.servers["m1"]
        stop = asyncio.create_task(server.stop())
        while not stop.done():
            with socket.socket() as stranger, pytest.raises(OSError, match="in use"):
                stranger.bind(("127.0.0.1", server.port))
            await asyncio.sleep(0)
        await server.start()


def test_a_fleet_in_the_background_serves_callers_without_a_loop(tmp_path: Path) -> None:
    with background_fleet([ClusterSpec(name="m1")], tmp_path, speed=None) as fleet:
        began = fleet.call(lambda box: box["m1"].now_s)
        fleet.call(lambda box: box.advance(60))
        assert fleet.call(lambda box: box["m1"].now_s) == began + 60
        fleet.wait(lambda box: box.servers["m1"].stop())


def drawn(seed: int) -> list[Any]:
    faults = Faults(seed=seed)
    faults.rates = {FaultKind.RESET: 0.2, FaultKind.LOST_RESPONSE: 0.2, FaultKind.EMPTY_LIST: 0.2}
    faults.latency_s = (0.1, 0.2)
    requests = [Request(method=method, path="/x") for method in ("GET", "PATCH")] * 100
    return [
        (request.method, fault.kind if fault else None, faults.delay_s(request))
        for request in requests
        for fault in [faults.draw(request)]
    ]


def test_chance_repeats_with_the_seed() -> None:
    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)


def test_chance_strikes_only_what_it_can() -> None:
    struck = {(method, kind) for method, kind, _ in drawn(3)}
    assert ("PATCH", FaultKind.LOST_RESPONSE) in struck
    assert ("GET", FaultKind.EMPTY_LIST) in struck
    assert ("GET", FaultKind.LOST_RESPONSE) not in struck
    assert ("PATCH", FaultKind.EMPTY_LIST) not in struck


def test_an_ordered_fault_strikes_as_often_as_ordered() -> None:
    faults = Faults()
    faults.order(Fault(kind=FaultKind.INTERNAL), when=is_write, times=2)
    kinds = [faults.draw(Request(method=method, path="/x")) is not None for method in ("GET", "PUT", "PUT", "PUT")]
    assert kinds == [False, True, True, False]
    assert faults.struck == [(FaultKind.INTERNAL, "PUT", "/x")] * 2
