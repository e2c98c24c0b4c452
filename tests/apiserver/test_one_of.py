"""Fields that exclude each other: an API server takes our apply once what T names was taken over, and not before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reconciler.api.refs import GVK
from reconciler.diff import Difference, sendable
from reconciler.documents import builtin_schema
from tests.apiserver.requests_to import STRATEGIC, ApiServer, Body, Refused, path_of
from tests.apiserver.test_immutable import merged
from tests.apiserver.trial import MANAGER, take_over
from tests.engine_t import three_way
from tests.real_clusters import RealCluster
from tests.yaml_text import load_yaml

pytestmark = pytest.mark.apiserver

CASES: list[dict[str, Any]] = load_yaml((Path(__file__).parent.parent / "cases/diff/one_of.yaml").read_text())


@pytest.fixture(scope="module")
def namespace(real_cluster: RealCluster) -> str:
    """A namespace of this file's own."""
    return real_cluster.new_namespace("one-of")


def body_of(case: dict[str, Any], namespace: str) -> Body:
    """The object of a case; a workload's pods and selector are filled in."""
    api_version, _, kind = str(case["kind"]).rpartition("/")
    name = f"c{CASES.index(case)}"
    spec: Body = dict(case.get("spec", {}))
    if "pod" in case:
        labels = {"app": name}
        spec |= {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": case["pod"]}}
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["name"]))
def test_what_is_wanted_takes_the_place_of_what_it_excludes(
    server: ApiServer, namespace: str, case: dict[str, Any]
) -> None:
    before = body_of(case, namespace)
    schema = builtin_schema(GVK.parse(before["apiVersion"], before["kind"]))
    sent: Any = sendable(before, schema)
    path = path_of(sent)
    server.apply(path, sent, MANAGER)
    if "strategic" in case:
        server.patch(path, case["strategic"], "kubectl-edit", STRATEGIC)
    wanted = merged(sent, case.get("wanted", {}))
    with pytest.raises(Refused) as refused:
        server.apply(path, wanted, MANAGER, dry_run=True)
    assert refused.value.status == 422
    said = three_way(wanted, server.get(path), manager=MANAGER, previous=sent, schema=schema)
    assert (list(said.removed_paths), said.unsure) == (case["goes"], None)
    assert {str(change.cause) for change in said.fields} == {"drift" if "strategic" in case else "declared"}
    take_over(server, path, said.removed_paths)
    server.apply(path, wanted, MANAGER)
    live = server.get(path)
    assert three_way(wanted, live, manager=MANAGER, previous=wanted, schema=schema) == Difference()


def test_what_another_tool_declares_is_left_to_it(server: ApiServer, namespace: str) -> None:
    case = CASES[-1]
    body = body_of(case, namespace)
    body["metadata"]["name"] = "declared"
    path, schema = path_of(body), builtin_schema(GVK("policy", "v1", "PodDisruptionBudget"))
    spec = {"maxUnavailable": 1, "selector": body["spec"]["selector"]}
    server.apply(path, {**body, "spec": spec}, "other-tool")
    said = three_way(body, server.get(path), manager=MANAGER, schema=schema)
    assert said.removed_paths == ()
    assert said.unsure == "spec.maxUnavailable stands in the way, and another tool declares it"
