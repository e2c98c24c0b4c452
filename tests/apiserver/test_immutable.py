"""Every row of the table of immutable fields, tried on a real API server: what T wants replaced is refused in place."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler.api.refs import GVK
from reconciler.diff import sendable
from reconciler.diff.immutable import IMMUTABLE
from reconciler.documents import builtin_schema
from reconciler.ownership import matches, parse_path
from tests.apiserver.requests_to import ApiServer, Body, Refused, path_of
from tests.apiserver.trial import MANAGER
from tests.engine_t import three_way
from tests.fakes.gateway_api import DEFINITIONS
from tests.real_clusters import RealCluster
from tests.yaml_text import load_yaml

pytestmark = pytest.mark.apiserver

_CASES = Path(__file__).parent.parent / "cases/diff"
KINDS: dict[str, Body] = {body["kind"]: body for body in load_yaml((_CASES / "kinds.yaml").read_text())}
CASES: list[dict[str, Any]] = load_yaml((_CASES / "immutable.yaml").read_text())

GATEWAY_CLASSES = next(found for found in DEFINITIONS if found["spec"]["names"]["kind"] == "GatewayClass")


def merged(body: Any, change: Any) -> Any:
    """RFC 7396."""
    if not isinstance(change, dict):
        return change
    base = body if isinstance(body, dict) else {}
    return {**base, **{name: merged(base.get(name), value) for name, value in change.items()}}


def name_of(case: dict[str, Any]) -> str:
    """Return what the case is about."""
    return f"{case.get('kind') or case['body']['kind']}: {case.get('at') or 'may change'}"


@pytest.fixture(scope="module")
def namespace(server: ApiServer, real_cluster: RealCluster) -> Iterator[str]:
    """A namespace of this file's own; the custom kinds are gone afterwards, since others look at what is served."""
    classes = path_of(GATEWAY_CLASSES)
    server.apply(classes, GATEWAY_CLASSES, MANAGER)
    server.until_established(classes)
    yield real_cluster.new_namespace("immutable")
    server.remove(path_of(KINDS["CustomResourceDefinition"]))
    server.remove(classes)


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_replaces_exactly_what_cannot_be_changed(server: ApiServer, namespace: str, case: dict[str, Any]) -> None:
    body = case.get("body") or KINDS[case["kind"]]
    number = CASES.index(case)
    named = {"name": body["metadata"]["name"]}
    if body["kind"] != "CustomResourceDefinition":
        named["name"] += str(number)
    if "namespace" in body["metadata"]:
        named["namespace"] = namespace
    body = merged(body, {"metadata": named})
    if case.get("unsuspended"):
        body = merged(body, {"spec": {"suspend": False}})
    schema = builtin_schema(GVK.parse(body["apiVersion"], body["kind"]))
    sent: Any = sendable(body, schema)
    server.apply(path_of(sent), sent, MANAGER)
    if body["kind"] == "CustomResourceDefinition":
        server.until_established(path_of(sent))
    live = server.get(path_of(sent))
    wanted: Any = sendable(merged(sent, case["change"]), schema)
    said = three_way(wanted, live, manager=MANAGER, previous=sent, schema=schema)
    assert said.fields
    if "at" not in case:
        assert said.replace is None
        server.apply(path_of(sent), wanted, MANAGER, dry_run=True)
        return
    assert said.replace in (case["at"], *case.get("others", ()))
    assert said.unsure
    with pytest.raises(Refused) as refused:
        server.apply(path_of(sent), wanted, MANAGER, dry_run=True)
    assert refused.value.status == 422


def test_every_kind_of_the_table_is_tried() -> None:
    tried = {GVK.parse(body["apiVersion"], body["kind"]).group_kind for body in (_body(case) for case in CASES)}
    # A ReplicaSet is a Deployment's own; what an update says of a signing request is dropped without a word.
    assert set(IMMUTABLE) - tried == {("apps", "ReplicaSet"), ("certificates.k8s.io", "CertificateSigningRequest")}
    patterns = {pattern for case in CASES for pattern in _covered(case)}
    assert len(patterns) > 25


def _body(case: dict[str, Any]) -> Body:
    body: Body = case.get("body") or KINDS[case["kind"]]
    return body


def _covered(case: dict[str, Any]) -> list[tuple[str, str]]:
    body = _body(case)
    kind = GVK.parse(body["apiVersion"], body["kind"]).group_kind
    at = parse_path(case.get("at", "none")) or ()
    return [(body["kind"], text) for text in IMMUTABLE.get(kind, ()) if matches(parse_path(text) or ("",), at)]
