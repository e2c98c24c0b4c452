"""`schema`: what editors check by agrees with what the parser says."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from reconciler.api.problem import Severity
from reconciler.documents import FLAVORS, OVERRIDE_KINDS, PROPAGATION_KINDS
from reconciler.fleet import KINDS
from reconciler.policy import parse_override_policy, parse_propagation_policy
from reconciler.report import schema_json
from reconciler.report.schema_json import API_VERSIONS, DRAFT
from tests.unit.cli.command_line import run
from tests.unit.policy_cases import cases, document_of
from tests.yaml_text import load_documents, load_yaml

POLICY_CASES = cases(
    *(f"policies/{name}.yaml" for name in ("defaults", "fields", "overrides", "override_pages", "pages", "rules",
                                           "spellings"))
)  # fmt: skip

kind_schema, store_schema = cache(schema_json.kind_schema), cache(schema_json.store_schema)
EXAMPLES = sorted((Path(__file__).parents[3] / "examples/fleet-repo").rglob("*.yaml"))
_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "string": str, "boolean": bool, "integer": int, "array": list, "object": dict, "null": type(None)
}  # fmt: skip
_KNOWN = {"$schema", "$defs", "$ref", "title", "description", "deprecated", "type", "properties", "required", "enum",
          "const", "items", "additionalProperties", "allOf", "anyOf", "not", "if", "then", "pattern", "minimum",
          "maximum"}  # fmt: skip


def faults(schema: Mapping[str, Any], value: Any, root: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """Yield what a validator of the keywords in use finds; an unknown keyword is an error of the schema."""
    assert schema.keys() <= _KNOWN, schema.keys() - _KNOWN
    if "$ref" in schema:
        yield from faults(root["$defs"][schema["$ref"].removeprefix("#/$defs/")], value, root, path)
    if "type" in schema and not _is_of(schema["type"], value):
        yield f"{path}: is no {schema['type']}"
        return
    if ("enum" in schema and value not in schema["enum"]) or ("const" in schema and value != schema["const"]):
        yield f"{path}: {value!r} is not known"
    if "not" in schema and not list(faults(schema["not"], value, root, path)):
        yield f"{path}: not allowed"
    if "pattern" in schema and isinstance(value, str) and not re.search(schema["pattern"], value):
        yield f"{path}: {value!r} does not match"
    if isinstance(value, int) and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        yield f"{path}: {value} is out of range"
    if isinstance(value, list) and "items" in schema:
        for index, item in enumerate(value):
            yield from faults(schema["items"], item, root, f"{path}[{index}]")
    if isinstance(value, dict):
        yield from _mapping_faults(schema, value, root, path)
    yield from _combined_faults(schema, value, root, path)


def _mapping_faults(
    schema: Mapping[str, Any], value: dict[str, Any], root: Mapping[str, Any], path: str
) -> Iterator[str]:
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{path}: {name} is missing"
    for name, below in value.items():
        inner = schema.get("properties", {}).get(name, schema.get("additionalProperties", True))
        if inner is False:
            yield f"{path}.{name}: unknown field"
        elif isinstance(inner, dict):
            yield from faults(inner, below, root, f"{path}.{name}")


def _combined_faults(schema: Mapping[str, Any], value: Any, root: Mapping[str, Any], path: str) -> Iterator[str]:
    for part in schema.get("allOf", ()):
        yield from faults(part, value, root, path)
    if "anyOf" in schema and all(list(faults(part, value, root, path)) for part in schema["anyOf"]):
        yield f"{path}: fits none of the alternatives"
    if "if" in schema and not list(faults(schema["if"], value, root, path)):
        yield from faults(schema["then"], value, root, path)


def _is_of(kind: str | list[str], value: Any) -> bool:
    kinds = [kind] if isinstance(kind, str) else kind
    return any(isinstance(value, _TYPES[name]) and not (name == "integer" and value is True) for name in kinds)


def found(text: str) -> list[str]:
    """The faults of a document by the schema of the whole store."""
    schema = store_schema()
    return list(faults(schema, load_yaml(text), schema))


POLICY = """\
apiVersion: policy.one.alibabacloud.com/v1alpha1
kind: PropagationPolicy
metadata: {{name: web, namespace: demo}}
spec:
  resourceSelectors: [{{apiVersion: apps/v1, kind: Deployment, name: web}}]
  {more}
"""


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_every_example_fits(path: Path) -> None:
    schema = store_schema()
    documents = [document for document in load_documents(path.read_text()) if document]
    assert documents
    assert [fault for document in documents for fault in faults(schema, document, schema)] == []


@pytest.mark.parametrize(
    ("more", "fault"),
    [
        ("placement: {clusterAffinty: {}}", ".spec.placement.clusterAffinty: unknown field"),
        ("priority: high", ".spec.priority: is no ['integer', 'null']"),
        ("priority: 3000000000", ".spec.priority: 3000000000 is out of range"),
        ("conflictResolution: Maybe", ".spec.conflictResolution: 'Maybe' is not known"),
        ("activationPreference: Eager", ".spec.activationPreference: 'Eager' is not known"),
        ("dependentOverrides: [1]", ".spec.dependentOverrides[0]: is no string"),
        ("placement: {spreadConstraints: [{minGroups: x}]}", ".spec.placement.spreadConstraints[0].minGroups: is no"),
        ("propagateDeps: 'yes'", ".spec.propagateDeps: is no"),
    ],
    ids=lambda value: value,
)
def test_a_mistake_is_found_where_it_stands(more: str, fault: str) -> None:
    assert [text[: len(fault)] for text in found(POLICY.format(more=more))] == [fault]


@pytest.mark.parametrize(
    "more",
    [
        "placement: {clusterAffinity: {clusterIds: [m1], excludeClusters: [m2]}}",
        "conflictResolution: overwrite",
        "failover: {application: {purgeMode: directly}}",
        "association: true",
        "placement:",
        "prune: null",
    ],
)
def test_every_spelling_of_the_parser_is_accepted(more: str) -> None:
    assert found(POLICY.format(more=more)) == []


def test_a_required_field_and_a_wrong_version_are_found() -> None:
    assert found("{apiVersion: one.alibabacloud.com/v1, kind: OverridePolicy, metadata: {name: x}, spec: {}}") == [
        ".apiVersion: 'one.alibabacloud.com/v1' is not known"
    ]
    assert found("{apiVersion: fleet.reconciler/v1alpha1, kind: Fleet, spec: {}}") == [": metadata is missing"]


def test_other_kinds_pass_the_schema_of_the_store() -> None:
    assert found("{apiVersion: v1, kind: ConfigMap, data: {a: 1}}") == []
    assert found("{apiVersion: apps.kruise.io/v1, kind: Fleet, anything: 1}") == []


def test_every_kind_has_a_schema_of_its_own_for_all_its_groups() -> None:
    assert KINDS.keys() == API_VERSIONS.keys()
    for kind in KINDS:
        schema = kind_schema(kind)
        assert schema["$schema"] == DRAFT
        assert schema["properties"]["kind"] == {"const": kind}
        assert schema["properties"]["apiVersion"]["enum"] == list(API_VERSIONS[kind])


def test_editors_show_meaning_default_and_what_has_no_effect() -> None:
    spec = kind_schema("PropagationPolicy")["properties"]["spec"]["properties"]
    assert spec["priority"]["description"] == "The larger one wins among policies of one scope. Default: 0."
    cluster = spec["failover"]["properties"]["cluster"]
    assert cluster["deprecated"] is True
    assert "Without effect: a NoExecute taint" in cluster["description"]
    assert spec["conflictResolution"]["enum"][:2] == ["Abort", "Overwrite"]
    assert spec["prune"]["type"] == ["boolean", "null"]
    assert spec["placement"]["properties"]["clusterAffinity"]["properties"]["clusterIds"]["description"] == (
        "Another spelling of clusterNames."
    )


def test_the_command_prints_one_kind_or_all() -> None:
    assert json.loads(run("schema").out) == store_schema()
    assert json.loads(run("schema", "overridepolicy").out) == kind_schema("OverridePolicy")


STRUCTURE = {
    *("unknown-field", "wrong-type", "unknown-value", "field-required", "field-refused", "value-refused"),
    "number-out-of-range",
}
"""Problem codes that an editor can find as well: what the tables of fields say."""


@pytest.mark.parametrize("case", POLICY_CASES)
def test_the_parser_and_the_schema_agree_on_every_case(case: Mapping[str, Any]) -> None:
    document = document_of(case, case.get("kind", "OverridePolicy" if "overriders" in case else "PropagationPolicy"))
    kind, api_version = document.body.get("kind"), document.body.get("apiVersion")
    if kind not in PROPAGATION_KINDS | OVERRIDE_KINDS or api_version not in FLAVORS:
        pytest.skip("the document is of no kind that has a schema")
    parse = parse_propagation_policy if kind in PROPAGATION_KINDS else parse_override_policy
    codes = {problem.code for problem in parse(document)[1] if problem.severity is Severity.ERROR}
    schema = kind_schema(str(kind))
    shown = list(faults(schema, document.body, schema))
    if codes & STRUCTURE:
        assert shown, codes
    elif not codes:
        assert shown == []
