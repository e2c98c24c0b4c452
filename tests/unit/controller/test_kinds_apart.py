"""A kind in a cluster fails by itself: what else there is in that cluster goes on, and so does the kind elsewhere.

Source: design#kind-not-read; design#promise-3; design#promise-7.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from reconciler.api.ledger import EventKind
from reconciler.api.refs import Identity
from reconciler.kube.kube_requests import READ_DEADLINE_S
from reconciler.sim import Fault, FaultKind, Request
from tests.fakes.definitions import definition, widget
from tests.fakes.lying_server import let_lie, stale
from tests.fakes.worlds import policy
from tests.unit.controller.test_loop import Running, running

WATCHED: Any = {"resync": "100h"}
POLLED: Any = {"mode": "poll", "resync": "20s"}
USUAL_S = READ_DEADLINE_S * 0.8
"""Nothing that works waits for a deadline of what does not."""


def ask(scene: Running, cluster: str, method: str, path: str, body: Any = None) -> Any:
    """A request of somebody else."""
    content_type = "application/merge-patch+json" if method == "PATCH" else "application/json"
    request = Request(method=method, path=path, query={}, body=body, content_type=content_type,
                      accept="application/json", user_agent="kubectl/v1")  # fmt: skip
    answer = scene.box[cluster].request(request)
    scene.box[cluster].run_controllers()
    return answer


def edit(scene: Running, cluster: str, value: str) -> None:
    """Somebody edits the Widget by hand."""
    path = "/apis/example.com/v1/namespaces/demo/widgets/gear"
    assert ask(scene, cluster, "PATCH", path, {"spec": {"value": value}}).status == 200
    assert value_of(scene, cluster) == value


DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
DEFINITION = f"{DEFINITIONS}/widgets.example.com"


def define(scene: Running, cluster: str, scope: str = "Namespaced", *versions: str) -> None:
    assert ask(scene, cluster, "POST", DEFINITIONS, definition(scope, *versions)).status == 201


def undefine(scene: Running, cluster: str) -> None:
    assert ask(scene, cluster, "DELETE", DEFINITION).status == 200


def put_widget(scene: Running, value: str, version: str = "v1", *, clusters: tuple[str, ...] = ("m1", "m2")) -> None:
    chosen = policy("Widget", *clusters, name="gear", preserveResourcesOnDeletion=False)
    chosen["spec"]["resourceSelectors"][0]["apiVersion"] = f"example.com/{version}"
    scene.put(gear=[widget("gear", value, version)], **{"gear-policy": [chosen]})


def value_of(scene: Running, cluster: str) -> str | None:
    found = list(scene.box[cluster].state.store.each(("example.com", "widgets")))
    return found[0]["spec"]["value"] if found else None


def told(scene: Running, code: str = "kind-not-read") -> list[tuple[str, str]]:
    return [(found.cluster, found.message) for found in scene.vitals.snapshot.problems if found.code == code]


GEAR = Identity("example.com", "Widget", "demo", "gear")


def is_of_widgets(request: Request) -> bool:
    return "/widgets" in request.path


@asynccontextmanager
async def with_widgets(tmp_path: Path, drift: Any = WATCHED) -> AsyncIterator[Running]:
    """m1 and m2 define the kind themselves, and have a copy of a Widget and of a ConfigMap."""
    async with running(tmp_path, drift=drift) as scene:
        for name in scene.box.names:
            define(scene, name)
        put_widget(scene, "1")
        await scene.until(lambda: {value_of(scene, name) for name in scene.box.names} == {"1"})
        await scene.quiet()
        yield scene


async def goes_on(scene: Running, value: str, *, is_polled: bool = False) -> None:
    """Check that commits and edits by hand beside the kind are written in the usual time."""
    scene.app(value, "m1", "m2")
    await scene.until(lambda: {scene.value(name) for name in scene.box.names} == {value}, timeout_s=USUAL_S)
    scene.by_hand("m2", "theirs")
    await scene.until(lambda: scene.value("m2") == value, timeout_s=90 if is_polled else USUAL_S)


@pytest.mark.parametrize("drift", [WATCHED, POLLED], ids=["watched", "polled"])
async def test_a_definition_that_is_deleted_stops_nothing_else_and_is_told_until_it_is_back(
    tmp_path: Path, drift: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "reconciler")
    async with with_widgets(tmp_path, drift) as scene:
        undefine(scene, "m2")
        await scene.until(lambda: [cluster for cluster, _ in told(scene)] == ["m2"])
        assert scene.vitals.snapshot.clusters["m2"].is_up
        ((_, message),) = told(scene)
        assert "Widget (example.com/v1)" in message
        assert "CustomResourceDefinition" in message
        await goes_on(scene, "2", is_polled=drift is POLLED)
        define(scene, "m2")
        await scene.until(lambda: value_of(scene, "m2") == "1" and told(scene) == [])
        await scene.quiet()
    lines = [record for record in caplog.records if getattr(record, "event", "") in ("KindNotRead", "KindRead")]
    assert [(line.event, line.cluster, line.obj) for line in lines] == [  # type: ignore[attr-defined]
        ("KindNotRead", "m2", "Widget (example.com/v1)"),
        ("KindRead", "m2", "Widget (example.com/v1)"),
    ]
    assert not [record for record in caplog.records if getattr(record, "event", "") == "ClusterUnreachable"]


FAULTS = {
    "500 of a conversion webhook that fails": Fault(kind=FaultKind.INTERNAL),
    "503 of an extension API server that is down": Fault(kind=FaultKind.UNAVAILABLE, retry_after_s=None),
    "503 with Retry-After": Fault(kind=FaultKind.UNAVAILABLE),
    "429": Fault(kind=FaultKind.THROTTLED),
    "401 of an extension API server": Fault(kind=FaultKind.UNAUTHORIZED),
    "a page of a proxy": Fault(kind=FaultKind.HTML),
    "silence": Fault(kind=FaultKind.HANGING),
    "a broken connection": Fault(kind=FaultKind.RESET),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
async def test_whatever_a_kind_is_answered_with_is_not_taken_for_its_cluster(
    tmp_path: Path, fault: Fault, caplog: pytest.LogCaptureFixture
) -> None:
    async with with_widgets(tmp_path) as scene:
        faults = scene.box.servers["m2"].faults
        faults.order(fault, when=is_of_widgets, times=10**6)
        scene.box.servers["m2"].break_connections()
        put_widget(scene, "2")
        await scene.until(lambda: [cluster for cluster, _ in told(scene)] == ["m2"])
        await scene.until(lambda: value_of(scene, "m1") == "2")
        assert "Widget (example.com/v1)" in told(scene)[0][1]
        assert scene.vitals.snapshot.clusters["m2"].is_up
        (line,) = (record for record in caplog.records if getattr(record, "event", "") == "KindNotRead")
        assert ("FlowSchema" if fault.kind is FaultKind.THROTTLED else "conversion webhook") in line.todo  # type: ignore[attr-defined]
        await goes_on(scene, "2")
        struck = len(faults.struck)
        await scene.quiet()
        assert len(faults.struck) - struck < 30, "it is asked now and then"
        faults.clear()
        await scene.until(lambda: value_of(scene, "m2") == "2" and told(scene) == [])
        edit(scene, "m2", "theirs")
        await scene.until(lambda: value_of(scene, "m2") == "2")


async def test_a_version_that_is_served_no_more_leaves_its_objects_as_they_are_until_it_is_back(tmp_path: Path) -> None:
    def serve(scene: Running, *versions: str) -> None:
        spec = {"spec": definition("Namespaced", *versions)["spec"]}
        assert ask(scene, "m2", "PATCH", DEFINITION, spec).status == 200

    def uid(scene: Running) -> str:
        (found,) = scene.box["m2"].state.store.each(("example.com", "widgets"))
        return str(found["metadata"]["uid"])

    async with with_widgets(tmp_path) as scene:
        before = uid(scene)
        serve(scene, "v2")
        put_widget(scene, "2")
        await scene.until(lambda: [cluster for cluster, _ in told(scene)] == ["m2"])
        assert "it serves version v2, which the store has to name" in told(scene)[0][1]
        await goes_on(scene, "2")
        # What leaves the store is deleted where the kind can be read, and stays where it cannot.
        scene.put(gear=None, **{"gear-policy": None})
        await scene.until(lambda: value_of(scene, "m1") is None)
        await scene.quiet()
        assert (value_of(scene, "m2"), uid(scene)) == ("1", before)
        put_widget(scene, "3")
        await scene.until(lambda: value_of(scene, "m1") == "3")
        serve(scene, "v1", "v2")
        await scene.until(lambda: value_of(scene, "m2") == "3" and told(scene) == [])
        assert uid(scene) == before, "it was not made again"


async def test_a_kind_that_left_with_its_definition_is_told_no_more(tmp_path: Path) -> None:
    async with with_widgets(tmp_path) as scene:
        undefine(scene, "m2")
        await scene.until(lambda: [cluster for cluster, _ in told(scene)] == ["m2"])
        scene.put(gear=[], **{"gear-policy": []})
        await scene.until(lambda: not any(GEAR in rows for rows in scene.journal.ledger().values()))
        assert told(scene) == []


async def test_a_kind_that_left_the_store_may_be_served_again_by_a_definition_that_is_there(tmp_path: Path) -> None:
    async with with_widgets(tmp_path) as scene:
        server = await let_lie(scene.box, "m2")
        server.lie = starting
        put_widget(scene, "2")
        await scene.until(lambda: [cluster for cluster, _ in told(scene)] == ["m2"])
        scene.put(gear=[], **{"gear-policy": []})
        await scene.until(lambda: value_of(scene, "m1") is None)
        assert [cluster for cluster, _ in told(scene)] == ["m2"]
        server.lie = None
        await scene.until(lambda: value_of(scene, "m2") is None and told(scene) == [])


async def test_a_version_that_the_store_names_no_more_is_told_no_more(tmp_path: Path) -> None:
    async with with_widgets(tmp_path) as scene:
        for cluster in ("m1", "m2"):
            spec = {"spec": definition("Namespaced", "v2")["spec"]}
            assert ask(scene, cluster, "PATCH", DEFINITION, spec).status == 200
        put_widget(scene, "2")
        await scene.until(lambda: [cluster for cluster, _ in told(scene)] == ["m1", "m2"])
        put_widget(scene, "1", "v2")
        await scene.until(lambda: told(scene) == [])


async def test_a_kind_that_comes_back_in_another_scope_is_told_and_nothing_is_made_of_it(tmp_path: Path) -> None:
    async with with_widgets(tmp_path) as scene:
        undefine(scene, "m2")
        define(scene, "m2", "Cluster")
        await scene.until(lambda: [cluster for cluster, _ in told(scene, "scope-differs")] == ["m2"])
        assert "Widget (example.com/v1) is served without namespaces" in told(scene, "scope-differs")[0][1]
        await goes_on(scene, "2")
        assert value_of(scene, "m2") is None
        undefine(scene, "m2")
        define(scene, "m2")
        await scene.until(lambda: value_of(scene, "m2") == "1" and told(scene, "scope-differs") == [])


async def test_a_kind_that_is_served_a_moment_later_is_placed_without_a_round_over_everything(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        put_widget(scene, "1")
        await scene.until(lambda: bool(told(scene, "no-cluster-fits") or scene.vitals.snapshot.problems))
        define(scene, "m1")
        await scene.until(lambda: value_of(scene, "m1") == "1")
        define(scene, "m2")
        await scene.until(lambda: value_of(scene, "m2") == "1")
        await goes_on(scene, "2")


DEFINED: dict[str, Any] = {
    "apiVersion": "policy.one.alibabacloud.com/v1alpha1", "kind": "ClusterPropagationPolicy",
    "metadata": {"name": "defined"},
    "spec": {"resourceSelectors": [{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}],
             "placement": {}},
}  # fmt: skip


def starting(request: Request, body: Any) -> Any:
    """An API server that has just started: it does not list kinds of definitions yet."""
    if request.path != "/apis" or request.method != "GET":
        return body
    return {**body, "items": [item for item in body["items"] if item["metadata"]["name"] != "example.com"]}


async def test_a_kind_that_is_not_served_yet_is_not_empty_where_its_definition_is_there(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        scene.put(defined=[definition(), DEFINED])
        put_widget(scene, "1")
        await scene.until(lambda: {value_of(scene, name) for name in scene.box.names} == {"1"})
        await scene.quiet()
        server = await let_lie(scene.box, "m2")
        server.lie = starting
        server.faults.order(Fault(kind=FaultKind.UNKNOWN), when=is_of_widgets, times=10**6)
        put_widget(scene, "2")
        await scene.until(lambda: [cluster for cluster, _ in told(scene, "object-not-read")] == ["m2"])
        assert "is not served yet, although its definition is there" in told(scene, "object-not-read")[0][1]
        await goes_on(scene, "2")
        assert not [asked for asked in server.asked if asked.method == "PATCH" and is_of_widgets(asked)]
        server.lie = None
        server.faults.clear()
        await scene.until(lambda: value_of(scene, "m2") == "2" and told(scene, "object-not-read") == [])
        assert not [
            event for event in scene.journal.events() if event.kind == EventKind.DRIFT and "gear" in event.subject
        ]


async def test_of_a_kind_that_is_throttled_no_api_service_is_blamed(tmp_path: Path) -> None:
    async with with_widgets(tmp_path) as scene:
        server = await let_lie(scene.box, "m2")
        put_widget(scene, "1")
        await scene.until(lambda: {value_of(scene, name) for name in scene.box.names} == {"1"})
        server.faults.order(Fault(kind=FaultKind.UNAVAILABLE, retry_after_s=600), when=is_of_widgets, times=10**6)
        put_widget(scene, "2")
        await scene.until(lambda: [cluster for cluster, _ in told(scene)] == ["m2"])
        assert "it asked for a pause" in told(scene)[0][1]
        assert "apiservice" not in told(scene)[0][1]


async def test_objects_of_another_version_of_their_definition_were_deleted_by_nobody(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        scene.put(defined=[definition(), DEFINED])
        put_widget(scene, "1")
        await scene.until(lambda: {value_of(scene, name) for name in scene.box.names} == {"1"})
        await scene.quiet()
        moved = policy("Widget", "m1", "m2", name="gear")
        moved["spec"]["resourceSelectors"][0]["apiVersion"] = "example.com/v2"
        later = {"gear": [widget("gear", "1", "v2")], "gear-policy": [moved]}
        scene.put(defined=[definition("Namespaced", "v1", "v2"), DEFINED], **later)
        await scene.quiet()
        written = [event.data for event in scene.journal.events() if event.subject.startswith("Widget demo/gear @ ")]
        assert len(written) > 2, "it was written as the other version as well"
        assert "drift" not in {data["cause"] for data in written}


async def test_an_api_that_does_not_answer_keeps_what_is_placed_and_gets_nothing_new(tmp_path: Path) -> None:
    async with with_widgets(tmp_path) as scene:
        server = await let_lie(scene.box, "m2")
        server.lie = stale
        server.faults.order(Fault(kind=FaultKind.UNAVAILABLE, retry_after_s=None), when=is_of_widgets, times=10**6)
        put_widget(scene, "2")
        await scene.until(lambda: [cluster for cluster, _ in told(scene)] == ["m2"])
        assert "kubectl get apiservice v1.example.com" in told(scene)[0][1]
        assert told(scene, "kind-not-served") == [], "it may be served"
        assert [placed.cluster for placed in scene.journal.previous_placements()[GEAR].targets] == ["m1", "m2"]
        chosen = policy("Widget", "m2", name="gear-2")
        chosen["spec"]["resourceSelectors"][0] |= {"apiVersion": "example.com/v1", "name": "gear-2"}
        named = widget("gear", "1")
        named["metadata"]["name"] = "gear-2"
        scene.put(**{"gear-2": [named], "gear-2-policy": [chosen]})
        await scene.until(lambda: bool(told(scene, "no-cluster-fits")))
        assert "m2 gets no answer from the API server of example.com/v1" in told(scene, "no-cluster-fits")[0][1]
        await goes_on(scene, "2")
        server.lie = None
        server.faults.clear()
        await scene.until(lambda: told(scene) == [] and told(scene, "no-cluster-fits") == [])
        await scene.until(lambda: len(list(scene.box["m2"].state.store.each(("example.com", "widgets")))) == 2)


async def test_objects_stay_while_their_definition_cannot_take_another_scope(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        scene.put(defined=[DEFINED], definition=[definition()])
        put_widget(scene, "1")
        await scene.until(lambda: value_of(scene, "m1") == value_of(scene, "m2") == "1")
        bare = widget("gear", "2")
        del bare["metadata"]["namespace"]
        chosen = {"resourceSelectors": [{"apiVersion": "example.com/v1", "kind": "Widget"}], "placement": {}}
        everywhere = {**DEFINED, "metadata": {"name": "gear"}, "spec": {**chosen, "preserveResourcesOnDeletion": False}}
        scene.put(definition=[definition("Cluster")], gear=[bare], **{"gear-policy": [everywhere]})
        await scene.until(lambda: [cluster for cluster, _ in told(scene, "scope-differs")] == ["m1", "m2"])
        await scene.quiet()
        assert value_of(scene, "m1") == value_of(scene, "m2") == "1", "nothing could take its place"
        undefine(scene, "m1")
        await scene.until(lambda: value_of(scene, "m1") == "2")


def is_watch_of_config_maps(request: Request) -> bool:
    return request.path.endswith("/configmaps") and bool(request.query.get("watch"))


async def test_a_kind_that_may_be_listed_and_not_watched_is_told_until_it_may(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        server = scene.box.servers["m2"]
        server.faults.order(Fault(kind=FaultKind.FORBIDDEN), when=is_watch_of_config_maps, times=10**6)
        await server.stop()
        await server.start()
        await scene.until(lambda: [cluster for cluster, _ in told(scene, "right-missing")] == ["m2"])
        assert "ConfigMap may not be watched" in told(scene, "right-missing")[0][1]
        server.faults.clear()
        await scene.until(lambda: told(scene, "right-missing") == [])


async def test_what_the_definition_of_the_store_no_longer_takes_is_told_each_time_a_commit_makes_it_so(
    tmp_path: Path,
) -> None:
    async with running(tmp_path) as scene:
        strict = definition()
        schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "value": {"type": "integer"}}}}}  # fmt: skip
        strict["spec"]["versions"][0]["schema"] = {"openAPIV3Schema": schema}
        scene.put(defined=[DEFINED], definition=[definition()])
        put_widget(scene, "1")
        await scene.until(lambda: value_of(scene, "m1") == value_of(scene, "m2") == "1")

        def has_failed(times: int) -> bool:
            return len(list(scene.journal.events(subject=f"{GEAR} @ m1", kind=EventKind.FAILED))) == times

        for number in (1, 2):
            scene.put(definition=[strict])
            await scene.until(lambda: [cluster for cluster, _ in told(scene, "wrong-type")] == ["m1", "m2"])
            await scene.until(partial(has_failed, number))
            scene.put(definition=[definition()])
            await scene.until(lambda: told(scene, "wrong-type") == [])
