"""Engine T by its table of cases; the real API server has its say in tests/apiserver."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import orjson
import pytest

from reconciler.api.plan import MISSING, FieldChange
from reconciler.api.refs import GVK
from reconciler.diff.trees import NO_DIFFERENCE
from reconciler.documents import builtin_schema, schema_of_crd
from tests.engine_t import three_way
from tests.unit.ownership_notation import US, managed
from tests.yaml_text import load_yaml

CASES: list[dict[str, Any]] = load_yaml((Path(__file__).parent.parent.parent / "cases/diff/three_way.yaml").read_text())


def written(change: FieldChange) -> str:
    """A change as the cases write it."""

    def value(one: Any) -> str:
        return "-" if one is MISSING else orjson.dumps(one).decode()

    owner = f", {change.owner.manager} {change.owner.operation} {change.owner.time}" if change.owner else ""
    return f"{change.path}: {value(change.before)} -> {value(change.after)} ({change.cause}{owner})"


def body_of(case: dict[str, Any], part: str) -> dict[str, Any]:
    gvk = kind_of(case)
    body = case[part]
    head = {"apiVersion": gvk.api_version, "kind": gvk.kind}
    return {**head, **body, "metadata": {"name": "web", "namespace": "demo", **body.get("metadata", {})}}


def kind_of(case: dict[str, Any]) -> GVK:
    return GVK.parse(*case.get("kind", "apps/v1/Deployment").rsplit("/", 1))


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["name"]))
def test_difference(case: dict[str, Any]) -> None:
    live = body_of(case, "live")
    version = case.get("owned_version", kind_of(case).api_version)
    live["metadata"]["managedFields"] = managed(case.get("owned", {}), version)
    before = orjson.dumps([case, live])
    said = three_way(
        body_of(case, "desired"),
        live,
        manager=US,
        previous=body_of(case, "previous") if "previous" in case else None,
        schema=builtin_schema(kind_of(case)),
        ignored=tuple(case.get("ignored", ())),
    )
    assert [written(change) for change in said.fields] == case["changes"]
    assert list(said.removed_paths) == case.get("removed_paths", [])
    assert [change.path for change in said.in_the_way] == case.get("in_the_way", [])
    assert said.replace == case.get("replace")
    assert bool(said.unsure) == ("unsure" in case), said.unsure
    assert re.search(case.get("unsure", ""), said.unsure or "")
    assert orjson.dumps([case, live]) == before, "an argument was written into"


def secret(**data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": data}


def test_tells_drift_of_a_secret_by_hashes_alone() -> None:
    live = secret(a="ZWRpdGVk", b="b2xk")
    said = three_way(
        secret(a="ZGVjbGFyZWQ=", b="bmV3"),
        live,
        manager=US,
        previous=secret(a="hmac:1", b="hmac:2"),
        recorded=secret(a="hmac:1", b="hmac:3"),
        schema=builtin_schema(GVK("", "v1", "Secret")),
    )
    assert [(change.path, str(change.cause)) for change in said.fields] == [("data.a", "drift"), ("data.b", "declared")]


def test_an_equal_object_is_the_one_value_of_no_difference() -> None:
    body = secret(a="YQ==")
    assert three_way(body, body, manager=US, schema=builtin_schema(GVK("", "v1", "Secret"))) is NO_DIFFERENCE


def test_names_the_manager_that_wrote_last() -> None:
    live = secret(a="eA==")
    live["metadata"]["managedFields"] = managed({"one Update": ["data.a"], "two Update": ["data.a"]}, "v1")
    said = three_way(secret(a="YQ=="), live, manager=US, schema=builtin_schema(GVK("", "v1", "Secret")))
    owner = said.fields[0].owner
    assert owner is not None
    assert owner.manager == "two"


def test_a_custom_kind_may_have_both_of_two_fields() -> None:
    properties = {"type": {"type": "string"}, "rollingUpdate": {"type": "object", "properties": {}}}
    definition = {"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": {
        "type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}}}]}}  # fmt: skip
    body = {"apiVersion": "example.com/v1", "kind": "Ring", "metadata": {"name": "r"}}
    live = {**body, "spec": {"type": "RollingUpdate", "rollingUpdate": {}}}
    said = three_way({**body, "spec": {"type": "Recreate"}}, live, manager=US, schema=schema_of_crd(definition, "v1"))
    assert [change.path for change in said.fields] == ["spec.type"]
    assert said.removed_paths == ()
