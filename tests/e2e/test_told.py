"""A service tells a webhook and a forge what happens, while things are broken in turn, and over a `kill -9`.

Source: design#told; design#history.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from reconciler.sim import ClusterSpec, FleetInABox
from tests.e2e.daemon_process import Daemon, GitRepository
from tests.fakes.scripted_server import Asked, ScriptedServer, reply
from tests.fakes.waiting import until
from tests.fakes.worlds import config_map, policy

KEY = b"a secret of our own"
TOKEN = "t0ken-of-the-forge"
WITHIN_S = 180.0


class Scene:
    """Clusters m1 and m2, a store in Git, a service, and a server that is a receiver and a forge."""

    def __init__(self, folder: Path, box: FleetInABox) -> None:
        self.box, self.folder = box, folder
        self.server = ScriptedServer(by_target=self._answer)
        self.store = GitRepository(folder / "store", "shop", ("m1", "m2"), guards={"maxDeletes": 1})
        (folder / "secret").write_bytes(KEY)
        (folder / "token").write_text(TOKEN)

    def prepare(self) -> None:
        """Name the server to the service; it listens."""
        options = ["--webhook", f"{self.server.url}/hook?key=s3cret", "--webhook-secret-file", self.folder / "secret"]
        options += ["--forge-status", "github", "--forge-repository", "acme/fleet", "--forge-api", self.server.url]
        options += ["--forge-token-file", self.folder / "token"]
        self.daemon = Daemon(
            self.store.folder, self.box.kubeconfig, self.folder / "state/journal.db", *map(str, options)
        )  # fmt: skip

    def _answer(self, asked: Asked) -> bytes:
        if asked.target.startswith("/repos/"):
            return reply(201, {"id": 1})
        return reply(204)

    def maps(self, *names: str, value: str = "1", clusters: tuple[str, ...] = ("m1", "m2")) -> str:
        """These ConfigMaps are what the store has of them; the commit."""
        rule = policy("ConfigMap", *clusters, preserveResourcesOnDeletion=False)
        self.store.write("maps.yaml", *(config_map(name, value=value) for name in names), rule)
        return self.store.commit()

    def value(self, cluster: str, name: str) -> str | None:
        live = self.box[cluster].state.get("ConfigMap", "demo", name)
        return live["data"]["value"] if live is not None else None

    @property
    def events(self) -> list[dict[str, Any]]:
        """Return what the receiver was asked to take, in order; each is signed."""
        found = [asked for asked in self.server.asked if asked.target.startswith("/hook")]
        for asked in found:
            head = asked.headers
            content = f"{head['webhook-id']}.{head['webhook-timestamp']}.".encode() + asked.body
            assert (
                head["webhook-signature"]
                == f"v1,{base64.b64encode(hmac.new(KEY, content, hashlib.sha256).digest()).decode()}"
            )
        return [json.loads(asked.body) for asked in found]

    def told(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["type"] == f"io.fleet-reconciler.{kind}.v1"]

    def statuses(self, commit: str) -> list[tuple[str, str]]:
        found = [asked for asked in self.server.asked if asked.target == f"/repos/acme/fleet/statuses/{commit}"]
        return [(body["state"], body["description"]) for body in (json.loads(asked.body) for asked in found)]

    async def until(self, fact: Callable[[], object], what: str) -> None:
        try:
            async with asyncio.timeout(WITHIN_S):
                await until(fact)
        except TimeoutError:
            told = [(event["type"], event["subject"]) for event in self.events]
            raise AssertionError(f"{what}; it told {told[-20:]}; it said {self.daemon.text()[-3000:]}") from None

    async def tells(self, kind: str, subject: str, **data: Any) -> dict[str, Any]:
        """The event once it is told."""

        def found() -> list[dict[str, Any]]:
            return [event for event in self.told(kind)
                    if event["subject"] == subject and data.items() <= event["data"].items()]  # fmt: skip

        await self.until(found, f"{kind} of {subject} with {data}")
        return found()[-1]

    async def stop(self) -> None:
        assert await asyncio.to_thread(self.daemon.stop) == 0


@asynccontextmanager
async def scene(folder: Path) -> AsyncIterator[Scene]:
    async with FleetInABox([ClusterSpec(name=name) for name in ("m1", "m2")], folder, speed=5.0) as box:
        it = Scene(folder, box)
        async with it.server:
            it.prepare()
            with it.daemon:
                yield it


async def test_each_trouble_is_told_with_its_cause_and_who_is_behind_it(tmp_path: Path) -> None:
    async with scene(tmp_path) as it:
        commit = it.maps("a", "b", "c")
        it.daemon.start()
        await it.tells("created", "ConfigMap demo/a @ m1")
        advanced = (await it.tells("advanced", "store"))["data"]
        assert (advanced["revision"], advanced["author"]) == (commit, "a")
        assert (await it.tells("in-step", "store"))["data"]["clusters"] == 2
        await it.until(lambda: it.statuses(commit)[-1:] == [("success", "2 of 2 clusters in step")], "success")

        await _a_guard_holds(it)
        await _the_store_is_broken(it)

        events = it.events
        assert [event["sequence"] for event in events] == sorted({event["sequence"] for event in events})
        assert len({event["id"] for event in events}) == len(events)
        await it.stop()
        shown = it.daemon.text() + json.dumps(events)
        assert "s3cret" not in shown
        assert TOKEN not in shown


async def _a_guard_holds(it: Scene) -> None:
    commit = it.maps("a")
    held = (await it.tells("held", "cluster m2"))["data"]
    assert (held["by"], held["held"], held["objects"]) == ("guard", 2, ["ConfigMap demo/b", "ConfigMap demo/c"])
    await it.until(lambda: it.statuses(commit) and it.statuses(commit)[-1][0] == "failure", "failure")
    it.maps("a", "b", "c")
    await it.tells("hold-over", "cluster m2")


async def _the_store_is_broken(it: Scene) -> None:
    it.store.write_text("broken.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: [other\n")
    commit = it.store.commit()
    assert "broken.yaml" in (await it.tells("store-broken", "store"))["data"]["why"]
    await it.until(lambda: it.statuses(commit) and it.statuses(commit)[-1][0] == "error", "error")
    it.store.write("broken.yaml")
    it.store.commit()
    await it.tells("store-mended", "store")


async def test_what_was_told_when_it_was_killed_is_told_again_under_the_same_id_and_nothing_is_lost(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path) as it:
        it.maps("a", "b")
        it.daemon.start(RECONCILER_FAIL_POINT="after an event was sent")
        assert await asyncio.to_thread(it.daemon.wait) == -9
        (first,) = it.events
        it.daemon.start()
        await it.tells("in-step", "store")
        events = it.events
        assert events[1]["id"] == first["id"]
        assert events[1]["data"] == first["data"]
        told = [event["sequence"] for event in events[1:]]
        assert told == [f"{number:020d}" for number in range(1, len(told) + 1)]
        assert {event["subject"] for event in it.told("created")} >= {f"ConfigMap demo/{name} @ {cluster}"
                for name in ("a", "b") for cluster in ("m1", "m2")}  # fmt: skip
        await it.stop()
