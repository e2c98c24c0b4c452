from __future__ import annotations

from base64 import b64encode
from typing import Any

import orjson
import pytest

from reconciler.api.fleet import StoreFile
from reconciler.api.problem import Severity
from reconciler.api.refs import Identity
from reconciler.diff.immutable import ALLOW_REPLACE
from reconciler.documents import BRING
from reconciler.fleet import ParsedFile, cluster_documents, parse_file
from reconciler.ownership import TAKE_OVER
from reconciler.templates import (
    DOCUMENTED_ANNOTATIONS,
    HOOK,
    HOOK_DELETE,
    HOOK_FAILURE,
    HOOK_WEIGHT,
    WAVE,
    identities_in,
)
from reconciler.templates.metadata import MAX_ANNOTATIONS_BYTES
from reconciler.templates.rules import MAX_OBJECT_BYTES
from tests.unit.yaml_cases import cases, changed_objects


def _deployment(case: dict[str, Any]) -> dict[str, Any]:
    changes = case.get("deployment", {})
    pod = {"containers": case.get("containers", [{"name": "main", "image": "nginx"}])}
    if "init" in case:
        pod["initContainers"] = case["init"]
    spec = {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": changes.get("labels", {"app": "web"})}, "spec": pod},
        **{name: value for name, value in changes.items() if name != "labels"},
    }
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


def _parse(text: str | bytes, path: str = "f.yaml") -> ParsedFile:
    data = text.encode() if isinstance(text, str) else text
    return parse_file(StoreFile(path=path, blob="1", data=data))


@pytest.mark.parametrize("case", cases("badinput/templates.yaml"))
def test_judges_templates_as_the_table_says(case: dict[str, Any]) -> None:
    is_text = "text" in case
    parsed = _parse(case["text"]) if is_text else _parse(orjson.dumps(_deployment(case)), "f.json")
    found = [f"{p.severity} {p.source.line if is_text else 0} {p.code} {p.path}" for p in sorted(parsed.problems)]
    assert sorted(found) == sorted(case.get("problems", []))
    has_errors = any(problem.severity is Severity.ERROR for problem in parsed.problems)
    assert len(parsed.templates) == (0 if has_errors else 1)
    assert len(parsed.frozen) == (1 if has_errors else 0)


@pytest.mark.parametrize(("body", "problems"), changed_objects())
def test_refuses_values_as_an_api_server_does(body: dict[str, Any], problems: list[str]) -> None:
    found = [f"{p.severity} {p.code} {p.path}" for p in _parse(orjson.dumps(body), "f.json").problems]
    assert sorted(found) == sorted(problems)


def test_puts_namespaced_built_in_kinds_into_default() -> None:
    (template,) = _parse("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n").templates
    assert template.identity == Identity("", "ConfigMap", "default", "a")
    assert template.body["metadata"] == {"name": "a", "namespace": "default"}
    explicit = _parse("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\n").templates[0]
    assert explicit.digest == template.digest


@pytest.mark.parametrize(("namespace", "expected"), [("", ""), ("  namespace: b\n", "b")])
def test_leaves_the_scope_of_unknown_kinds_open(namespace: str, expected: str) -> None:
    (template,) = _parse(f"apiVersion: example.com/v1\nkind: Thing\nmetadata:\n  name: a\n{namespace}").templates
    assert template.identity.namespace == expected


def test_keeps_cluster_scoped_kinds_out_of_namespaces() -> None:
    (template,) = _parse("apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n").templates
    assert template.identity == Identity("", "Namespace", "", "a")


def test_never_repeats_a_value_of_a_secret() -> None:
    canary = "c4n4ry-of-the-mine"
    texts = [
        f"data:\n  a: {canary}!\n",
        f"data: [{canary}]\n",
        f"stringData:\n  a: {{b: {canary}}}\n",
        "stringData:\n  a: 0891827364554\n",
        "stringData:\n  a: 18446744073709551617987\n",
        "data:\n  a: 123456789\n",
        f"data:\n  a: '{canary}\n",
        f'data:\n  a: "\\q{canary}"\n',
        f"data:\n  a: {b64encode(canary.encode()).decode()}x\n",
    ]
    secrets = (canary, "0891827364554", "891827364554", "18446744073709551617987", "123456789",
               b64encode(canary.encode()).decode())  # fmt: skip
    for text in texts:
        parsed = _parse(f"apiVersion: v1\nkind: Secret\nmetadata: {{name: a}}\n{text}")
        assert parsed.problems, text
        for problem in parsed.problems:
            assert not any(secret in str(problem) for secret in secrets), problem


def test_refuses_objects_that_etcd_would_not_take() -> None:
    body = {"apiVersion": "example.com/v1", "kind": "Big", "metadata": {"name": "a"}, "spec": "x" * MAX_OBJECT_BYTES}
    assert [problem.code for problem in _parse(orjson.dumps(body), "f.json").problems] == ["object-too-large"]


def test_refuses_config_maps_beyond_a_mebibyte() -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "é" * 600_000}}
    assert [problem.code for problem in _parse(orjson.dumps(body), "f.json").problems] == ["object-too-large"]


def test_refuses_annotations_that_are_too_large() -> None:
    annotations = {"a": "x" * MAX_ANNOTATIONS_BYTES}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "annotations": annotations}}
    assert [problem.code for problem in _parse(orjson.dumps(body), "f.json").problems] == ["annotations-too-large"]


def test_knows_every_annotation_that_people_may_write_into_templates() -> None:
    assert {
        ALLOW_REPLACE,
        BRING,
        HOOK,
        HOOK_DELETE,
        HOOK_FAILURE,
        HOOK_WEIGHT,
        TAKE_OVER,
        WAVE,
        cluster_documents.CONTEXT_ANNOTATION,
        cluster_documents.ALIAS_ANNOTATION,
    } == DOCUMENTED_ANNOTATIONS


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}, {("", "Pod", "default", "a")}),
        ({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a", "namespace": "x"}}, {("", "Node", "", "a")}),
        (
            {"apiVersion": "e/v1", "kind": "T", "metadata": {"name": "a"}},
            {("e", "T", "", "a"), ("e", "T", "default", "a")},
        ),
        ({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": 5}}, set()),
        ({"apiVersion": "v1", "kind": "Pod", "metadata": {}}, set()),
        ({"apiVersion": "v1", "metadata": {"name": "a"}}, set()),
    ],
)
def test_tells_every_identity_that_a_broken_template_may_have(body: dict[str, Any], told: set[Any]) -> None:
    assert set(identities_in(body)) == told
