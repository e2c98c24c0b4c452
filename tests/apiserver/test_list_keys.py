"""An entry of a map list whose key was edited by hand is set back; one that was added beside ours stays."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from reconciler.api.refs import GVK
from reconciler.diff import Difference, sendable
from reconciler.documents import builtin_schema, schema_of_crd
from tests.apiserver.requests_to import JSON_PATCH, ApiServer, Body, path_of
from tests.apiserver.trial import MANAGER, take_over
from tests.engine_t import three_way
from tests.fakes.gateway_api import DEFINITIONS
from tests.real_clusters import RealCluster
from tests.yaml_text import load_yaml

pytestmark = pytest.mark.apiserver

CASES: list[dict[str, Any]] = load_yaml((Path(__file__).parent.parent / "cases/diff/list_keys.yaml").read_text())
GATEWAYS = next(found for found in DEFINITIONS if found["spec"]["names"]["kind"] == "Gateway")
SEEDS = 6


@pytest.fixture(scope="module")
def namespace(server: ApiServer, real_cluster: RealCluster) -> Iterator[str]:
    """A namespace of this file's own; the custom kind is gone afterwards, since others look at what is served."""
    gateways = path_of(GATEWAYS)
    server.apply(gateways, GATEWAYS, MANAGER)
    server.until_established(gateways)
    yield real_cluster.new_namespace("list-keys")
    server.remove(gateways)


def body_of(case: dict[str, Any], name: str, namespace: str) -> Body:
    """The object of a case; a workload's pods and selector are filled in."""
    api_version, _, kind = str(case["kind"]).rpartition("/")
    spec: Body = copy.deepcopy(case.get("spec", {}))
    if "pod" in case:
        labels = {"app": name}
        pod = {"metadata": {"labels": labels}, "spec": copy.deepcopy(case["pod"])}
        spec |= {"selector": {"matchLabels": labels}, "template": pod}
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


def at(body: Any, pointer: str) -> Any:
    """The value at a JSON pointer."""
    for step in pointer.removeprefix("/").split("/"):
        body = body[int(step)] if isinstance(body, list) else body[step]
    return body


def keys_of(body: Body, case: dict[str, Any]) -> list[list[Any]]:
    return [[entry.get(name) for name in case["keys"]] for entry in at(body, case["list"])]


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["name"]))
def test_an_entry_under_another_key_is_set_back_and_one_beside_it_stays(
    server: ApiServer, namespace: str, case: dict[str, Any], seed: int
) -> None:
    rng = Random(f"{case['name']}-{seed}")
    body = body_of(case, f"c{CASES.index(case)}-{seed}", namespace)
    gvk = GVK.parse(body["apiVersion"], body["kind"])
    schema = builtin_schema(gvk) or schema_of_crd(GATEWAYS, gvk.version)
    assert schema is not None
    sent: Any = sendable(body, schema)
    path = path_of(sent)
    server.apply(path, sent, MANAGER)
    ours = keys_of(sent, case)
    is_added = "added" in case and rng.random() < 0.6
    if is_added:
        addition = {"op": "add", "path": f"{case['list']}/{rng.choice(['0', '-'])}", "value": case["added"]}
        server.patch(path, [addition], "kubectl-edit", JSON_PATCH)
    number = rng.randrange(len(ours))
    edit = list(renaming(server.get(path), case, ours[number]))
    server.patch(path, edit, rng.choice(["kubectl-edit", "lens"]), JSON_PATCH)
    live = server.get(path)
    assert ours[number] not in keys_of(live, case)
    said = three_way(sent, live, manager=MANAGER, previous=sent, schema=schema)
    assert len(said.removed_paths) == 1
    assert {str(change.cause) for change in said.fields} == {"drift"}
    assert (said.unsure, said.in_the_way) == (None, ())
    take_over(server, path, said.removed_paths)
    server.apply(path, sent, MANAGER)
    healed = server.get(path)
    added = [[case["added"].get(name) for name in case["keys"]]] if is_added else []
    assert sorted(map(str, keys_of(healed, case))) == sorted(map(str, [*ours, *added]))
    assert three_way(sent, healed, manager=MANAGER, previous=sent, schema=schema) == Difference()


def renaming(live: Body, case: dict[str, Any], key: list[Any]) -> Iterator[Body]:
    """The operations of a person who edits the key of an entry in place."""
    index = keys_of(live, case).index(key)
    for name, value in case["edit"].items():
        yield {"op": "replace", "path": f"{case['list']}/{index}/{name}", "value": value}
