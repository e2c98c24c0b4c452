"""Looks at copies in their clusters: what is read, how often, for how long, and what is hidden of it."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from reconciler.api.clusters import LiveObject
from reconciler.api.refs import GVK, Identity
from reconciler.controller.vitals.service_vitals import Vitals
from reconciler.errors import ClusterUnreachable, Forbidden
from reconciler.report.views import LiveReading, live_view
from reconciler.server import live_objects
from reconciler.server.live_objects import KEPT_S, LiveObjects
from tests.fakes.clocks import TestClock
from tests.fakes.worlds import TestBed, fleet_of, policy
from tests.unit.report.views.sights import sight_of
from tests.unit.server.test_api import asking, scene
from tests.unit.state.scenes import APP, Scene

WEB = GVK("apps", "v1", "Deployment")
PASSWORD = "correct-horse-battery"


def made(kind: str, name: str, owner: str = "", group: str = "", **body: Any) -> LiveObject:
    references = [{"uid": owner, "controller": True, "kind": "?", "name": "?"}] if owner else []
    metadata = {"name": name, "namespace": "shop", "uid": name, "ownerReferences": references, "managedFields": [{}]}
    gvk = GVK(group, "v1", kind)
    whole = {"apiVersion": gvk.api_version, "kind": kind, "metadata": metadata, **body}
    identity = Identity(group, kind, "shop", name)
    return LiveObject(gvk=gvk, identity=identity, uid=name, resource_version="1", body=whole)


def pod(name: str, owner: str = "web-1", reason: str = "", restarts: int = 0) -> LiveObject:
    state = {"waiting": {"reason": reason}} if reason else {"running": {}}
    status = {"name": "main", "ready": not reason, "restartCount": restarts, "state": state}
    return made("Pod", name, owner, status={"phase": "Running", "containerStatuses": [status]})


class Member:
    """A cluster with one Deployment, two ReplicaSets and some pods; each request is noted."""

    def __init__(self, *pods: LiveObject, fails: Mapping[str, Exception] | None = None) -> None:
        spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}}
        self.live = made("Deployment", "web", group="apps", spec=spec, status={"readyReplicas": 1})
        self.objects: Sequence[LiveObject] = (
            made("ReplicaSet", "web-1", "web", "apps", spec={"replicas": 2}, status={"replicas": 2}), *pods,
            pod("of-another", "other"),
        )  # fmt: skip
        self.fails = fails or {}
        self.asked: list[str] = []

    async def _answer(self, what: str) -> None:
        self.asked.append(what)
        await asyncio.sleep(0)
        if error := self.fails.get(what):
            raise error

    async def get(self, gvk: GVK, namespace: str, name: str) -> LiveObject:
        await self._answer("get")
        return self.live

    async def first_objects(self, gvk: GVK, limit: int, **query: str) -> tuple[LiveObject, ...]:
        await self._answer(gvk.kind)
        if gvk.kind == "Event":
            about = query["field_selector"].removeprefix("involvedObject.uid=")
            event = {"reason": "BackOff", "type": "Warning", "message": f"password={PASSWORD} of {about}"}
            return (made("Event", f"of-{about}", involvedObject={"kind": "Pod", "name": about}, **event),)
        assert query["label_selector"] == "app=web"
        return tuple(each for each in self.objects if each.identity.kind == gvk.kind)

    async def pod_log(self, namespace: str, name: str, container: str, **how: Any) -> str:
        await self._answer(f"log {name} {how['is_previous']}")
        return f"starting\nlogin with {PASSWORD}\n"


class Loop(NamedTuple):
    """A control loop, as far as a look needs it."""

    members: Mapping[str, Any]


def looks(member: Member, clock: TestClock | None = None, *, logs: bool = True) -> LiveObjects:
    return LiveObjects(Vitals(loop=Loop({"m1": member})), clock or TestClock(), logs=logs)


async def look(found: LiveObjects, cluster: str = "m1") -> LiveReading:
    return await found.read(cluster, WEB, Identity("apps", "Deployment", "shop", "web"))


async def test_a_look_reads_the_object_its_pods_their_events_and_the_log_of_the_broken_one() -> None:
    member = Member(
        pod("well"), pod("broken", reason="CrashLoopBackOff", restarts=4), pod("pulls", reason="ErrImagePull")
    )
    found = await look(looks(member))
    assert [each.identity.name for each in found.owned] == ["web-1", "well", "broken", "pulls"]
    assert {each.identity.name for each in found.events} == {"of-web", "of-web-1", "of-broken", "of-pulls"}
    assert [(log.pod, log.is_previous) for log in found.logs] == [("broken", True)]
    assert found.notes == ()


async def test_without_leave_of_the_operator_no_log_is_asked_for() -> None:
    member = Member(pod("broken", reason="CrashLoopBackOff", restarts=4))
    assert (await look(looks(member, logs=False))).logs == ()
    assert not [each for each in member.asked if each.startswith("log")]


async def test_what_may_not_be_read_is_said_and_the_rest_is_shown() -> None:
    fails = {"Event": Forbidden("m1", "not allowed: list events", status=403),
             "log broken False": Forbidden("m1", "not allowed: get pods/log", status=403)}  # fmt: skip
    found = await look(looks(Member(pod("broken", reason="Error"), fails=fails)))
    assert found.notes == ("events: not allowed: list events", "log of broken: not allowed: get pods/log")
    assert (len(found.owned), found.events, found.logs) == (2, (), ())


async def test_many_readers_of_one_object_cost_one_look_and_a_moment_later_another() -> None:
    member, clock = Member(), TestClock()
    found = looks(member, clock)
    await asyncio.gather(*(look(found) for _ in range(20)))
    assert member.asked.count("get") == 1
    clock.advance(KEPT_S + 1)
    await look(found)
    assert member.asked.count("get") == 2


async def test_a_silent_cluster_says_so_and_holds_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_objects, "READ_S", 0.05)

    class Silent(Member):
        async def get(self, gvk: GVK, namespace: str, name: str) -> LiveObject:
            await asyncio.Event().wait()
            raise AssertionError("it never answers")

    away = Member(fails={"get": ClusterUnreachable("m3", "connection refused")})
    members = {"m1": Silent(), "m2": Member(), "m3": away}
    found = LiveObjects(Vitals(loop=Loop(members)), TestClock(), logs=False)
    whys = [each.why for each in await asyncio.gather(*(look(found, name) for name in ("m1", "m2", "m3", "m4")))]
    assert whys == ["the cluster does not answer: nothing came within 0.05 s", "", "connection refused",
                    "this process has no access to the cluster now"]  # fmt: skip
    await found.close()


def test_what_is_shown_hides_secrets_of_the_store_wherever_they_are_quoted() -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db", "namespace": "shop"},
              "data": {"password": base64.b64encode(PASSWORD.encode()).decode()}}  # fmt: skip
    bed = TestBed("m1")
    chosen = replace_namespace(policy("Secret", "m1"))
    scene = bed.run(fleet_of(secret, chosen, clusters=("m1",)))
    facts = Scene("m1").facts()
    sight = sight_of(replace(facts, schedule=scene.schedule, manifests=scene.manifests))
    env = [{"name": "main", "env": [{"name": "PASSWORD", "value": PASSWORD}]}]
    live = made("Deployment", "web", group="apps", spec={"template": {"spec": {"containers": env}}})
    member = Member(pod("broken", reason="Error"))
    reading = asyncio.run(look(looks(member)))
    view = live_view(sight, Identity("apps", "Deployment", "shop", "web"), "m1", replace(reading, live=live))
    assert PASSWORD not in repr(view)
    assert "managedFields" not in repr(view.manifest)
    assert view.logs[0].lines[1].startswith("login with «value #")


def replace_namespace(document: dict[str, Any]) -> dict[str, Any]:
    return {**document, "metadata": {**document["metadata"], "namespace": "shop"}}


def test_a_pod_without_a_node_says_so() -> None:
    found = Scene("m1")
    found.apply()
    status = {
        "phase": "Pending",
        "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
    }
    waits = made("Pod", "waits", "web", spec={"containers": [{"name": "main"}, {"name": "side"}]}, status=status)
    live = made("ReplicaSet", "web", group="apps", spec={"replicas": 1}, status={})
    reading = LiveReading(at="2026-11-23T10:00:00Z", live=live, owned=(waits,))
    owned = live_view(sight_of(found.facts()), APP, "m1", reading).owned
    assert [(each.depth, each.words, each.ready, each.is_broken) for each in owned] == [
        (0, "", "0 of 1", True), (1, "Unschedulable", "0 of 2", True),
    ]  # fmt: skip


def test_the_difference_is_of_the_fields_that_the_store_names() -> None:
    found = Scene("m1")
    found.apply()
    found.edit("m1", "app", "by hand")
    sight = sight_of(found.facts())
    live = found.bed.objects["m1"][APP]
    view = live_view(sight, APP, "m1", LiveReading(at="2026-11-23T10:00:00Z", live=live))
    changed = [(line.sign, line.text.strip()) for line in view.difference if line.sign in "-+"]
    assert changed == [("-", "value: by hand"), ("+", 'value: "1"')]
    in_sync = Scene("m1")
    in_sync.apply()
    view = live_view(sight_of(in_sync.facts()), APP, "m1", LiveReading(at="2026-11-23T10:00:00Z", live=live))
    assert view.difference == ()


async def test_the_page_and_the_api_tell_of_a_cluster_that_cannot_be_looked_at() -> None:
    async with asking(sight_of(scene().facts())) as asker:
        status, body, _ = await asker.get("/api/v1/live/m1/cm/demo/app")
        assert (status, body["why"]) == (200, "this process has no access to the cluster now")
        status, body, _ = await asker.get("/objects/cm/demo/app?cluster=m1")
        assert (status, "this process has no access to the cluster now" in body) == (200, True)
        for path in ("/api/v1/live/m9/cm/demo/app", "/objects/cm/demo/app?cluster=m9"):
            assert (await asker.get(path))[0] == 404
