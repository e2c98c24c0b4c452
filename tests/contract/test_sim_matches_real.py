"""The same objects, sent to an embedded cluster and to a real one, come back the same."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Iterator
from typing import Any

import pytest

from reconciler.sim.objects.kinds import BUILT_IN, BY_KIND
from reconciler.sim.objects.shapes import Shape, shape_of
from tests.contract.sim_examples import EXAMPLES, path_of
from tests.contract.sim_sides import TABLE, TOLERATION, Reply, Side, comparable, new_space
from tests.real_clusters import wait_until

pytest_plugins = ("tests.contract.sim_fixtures",)
pytestmark = pytest.mark.apiserver


def written(reply: Reply) -> Any:
    """Return the result of a write, without later additions by controllers."""
    body = comparable(reply.body)
    body.pop("status", None)
    body["metadata"].pop("namespace")
    return body


@pytest.fixture
def spaces(sim_side: Side, real_side: Side) -> dict[str, str]:
    return {side.name: new_space(side) for side in (sim_side, real_side)}


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_applied_object_is_defaulted_and_owned_alike(
    sim_side: Side, real_side: Side, spaces: dict[str, str], example: str
) -> None:
    kind_path, body = EXAMPLES[example]
    replies = [
        side.apply(path_of(kind_path, spaces[side.name], body["metadata"]["name"]), body)
        for side in (sim_side, real_side)
    ]
    assert written(replies[0]) == written(replies[1])


@pytest.mark.parametrize("example", EXAMPLES)
def test_a_created_object_is_defaulted_and_owned_alike(
    sim_side: Side, real_side: Side, spaces: dict[str, str], example: str
) -> None:
    kind_path, body = EXAMPLES[example]
    replies = [side.send("POST", path_of(kind_path, spaces[side.name]), body) for side in (sim_side, real_side)]
    assert [reply.status for reply in replies] == [201, 201]
    assert written(replies[0]) == written(replies[1])


WORKLOADS = ["deployment", "stateful set", "job"]


def tolerating(body: Any) -> Any:
    """The workload with pods that run on the node of these tests."""
    template = body["spec"]["template"]
    pod = {**template["spec"], "tolerations": [TOLERATION]}
    return {**body, "spec": {**body["spec"], "template": {**template, "spec": pod}}}


def is_done(body: Any) -> bool:
    status, spec = body.get("status") or {}, body["spec"]
    if body["kind"] == "Job":
        return any(c["type"] == "Complete" for c in status.get("conditions") or ())
    return bool(
        status.get("availableReplicas") == spec["replicas"] and status.get("updatedReplicas") == spec["replicas"]
    )


def wait_until_done(side: Side, path: str) -> None:
    wait_until(lambda: is_done(side.get(path).body), f"{path} on {side.name} to be done")


@pytest.mark.parametrize("example", WORKLOADS)
def test_a_workload_comes_to_rest_with_the_same_status(
    sim_side: Side, real_side: Side, spaces: dict[str, str], example: str
) -> None:
    kind_path, body = EXAMPLES[example]
    found: list[Any] = []
    for side in (sim_side, real_side):
        path = path_of(kind_path, spaces[side.name], body["metadata"]["name"])
        assert side.apply(path, tolerating(body)).status == 201
        wait_until_done(side, path)
        settled = comparable(side.get(path).body)
        settled["metadata"].pop("namespace")
        # When each manager wrote last decides the order of equal operations, and job managers differ in steps.
        settled["metadata"]["managedFields"] = [
            e for e in settled["metadata"]["managedFields"] if e["operation"] == "Apply"
        ]
        found.append(settled)
    assert found[0] == found[1]


@pytest.mark.parametrize("example", EXAMPLES)
def test_a_table_has_the_same_columns_and_cells(
    sim_side: Side, real_side: Side, spaces: dict[str, str], example: str
) -> None:
    kind_path, body = EXAMPLES[example]
    sides = (sim_side, real_side)
    for side in sides:
        side.apply(path_of(kind_path, spaces[side.name], body["metadata"]["name"]), idle(body))

    def printed() -> list[Any]:
        return [table_of(side, path_of(kind_path, spaces[side.name]), body["metadata"]["name"]) for side in sides]

    # What a controller has yet to say of an object is printed, too: a job is suspended once its condition says so.
    with contextlib.suppress(TimeoutError):
        wait_until(lambda: operator.eq(*printed()), f"tables with a {example} to agree")
    sim, real = printed()
    assert sim == real


def table_of(side: Side, path: str, name: str) -> Any:
    """Columns and rows, without what differs from cluster to cluster."""
    table = side.send("GET", path, accept=TABLE, fieldSelector=f"metadata.name={name}").body
    columns = [{key: c[key] for key in ("name", "type", "format", "priority")} for c in table["columnDefinitions"]]
    hidden = {"Age", "Created At", "Cluster-IP", "Port(s)", "Selector"}
    shown = [index for index, column in enumerate(columns) if column["name"] not in hidden]
    return columns, [[row["cells"][index] for index in shown] for row in table["rows"]]


def idle(body: Any) -> Any:
    """A workload without pods, so that nothing moves while it is printed."""
    if body["kind"] in ("Deployment", "StatefulSet"):
        return {**body, "spec": {**body["spec"], "replicas": 0}}
    if body["kind"] == "Job":
        return {**body, "spec": {**body["spec"], "suspend": True}}
    if body["kind"] == "DaemonSet":
        template = body["spec"]["template"]
        nowhere = {**template, "spec": {**template["spec"], "nodeSelector": {"no": "such-node"}}}
        return {**body, "spec": {**body["spec"], "template": nowhere}}
    return body


def documents(side: Side) -> Iterator[tuple[str, dict[str, Any]]]:
    """(kind, schemas of its document) of every built-in kind."""
    for api_version in sorted({resource.api_version for resource in BUILT_IN}):
        prefix = "apis" if "/" in api_version else "api"
        schemas = side.get(f"/openapi/v3/{prefix}/{api_version}").body["components"]["schemas"]
        for schema in schemas.values():
            for gvk in schema.get("x-kubernetes-group-version-kind") or ():
                served = f"{gvk['group']}/{gvk['version']}".lstrip("/")
                if gvk["kind"] in BY_KIND and served == BY_KIND[gvk["kind"]].api_version == api_version:
                    yield gvk["kind"], {"schema": schema, "schemas": schemas}


def differences(shape: Shape, node: Any, schemas: Any, path: str, seen: tuple[str, ...]) -> Iterator[str]:
    """Yield differences between our table of list and map types and a schema."""
    node, name = resolved(node, schemas)
    if name in seen or name.endswith("JSONSchemaProps"):
        return
    seen = (*seen, name) if name else seen
    if node.get("type") == "array":
        kind = node.get("x-kubernetes-list-type", "atomic")
        keys = tuple(node.get("x-kubernetes-list-map-keys") or ())
        if (kind == "set") != shape.is_set or keys != (shape.list_keys if kind == "map" or shape.list_keys else ()):
            yield f"{path}: {kind} {keys}, here {shape.list_keys} set={shape.is_set}"
        if kind == "map":
            yield from differences(shape.item(), node["items"], schemas, f"{path}[]", seen)
        return
    is_atomic = node.get("x-kubernetes-map-type") == "atomic"
    if is_atomic != shape.is_atomic_map and (node.get("properties") or node.get("additionalProperties")):
        yield f"{path}: atomic map {is_atomic}, here {shape.is_atomic_map}"
    if not is_atomic:
        for field, below in (node.get("properties") or {}).items():
            yield from differences(shape.field(field), below, schemas, f"{path}.{field}", seen)


def resolved(node: Any, schemas: Any) -> tuple[Any, str]:
    """A schema node behind its reference; what stands beside the reference wins."""
    reference = node.get("$ref") or next((part["$ref"] for part in node.get("allOf") or () if "$ref" in part), "")
    if not reference:
        return node, ""
    name = reference.rpartition("/")[2]
    own = {key: value for key, value in node.items() if key.startswith("x-kubernetes")}
    return {**schemas[name], **own}, name


# Kinds that nobody declares in a store, or whose odd corners nobody applies.
LEFT_OUT = frozenset(
    {"Endpoints", "Event", "ControllerRevision", "EndpointSlice", "PersistentVolume", "ReplicationController"}
)


def test_lists_and_maps_merge_as_the_schemas_say(real_side: Side) -> None:
    found: dict[str, list[str]] = {}
    checked = 0
    for kind, document in documents(real_side):
        if kind in LEFT_OUT:
            continue
        checked += 1
        lines = list(differences(shape_of(BY_KIND[kind]), document["schema"], document["schemas"], kind, ()))
        declared = [line for line in lines if ".status" not in line]
        if declared:
            found[kind] = declared
    assert checked == len(BUILT_IN) - len(LEFT_OUT)
    assert found == {}
