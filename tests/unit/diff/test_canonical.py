"""Two spellings of one value."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.api.refs import GVK
from reconciler.diff import sendable
from reconciler.diff.canonical import ValueComparison, covered, equal, same_scalar
from reconciler.documents import Format, NodeForm, Schema, SchemaNode, builtin_schema, schema_of_crd

Q, B, T = Format.QUANTITY, Format.BYTES, Format.TIME


@pytest.mark.parametrize(
    ("one", "other", "format_", "is_same"),
    [
        ("1000m", "1", Q, True),
        (1, "1", Q, True),
        (0.5, "500m", Q, True),
        ("1024Mi", "1Gi", Q, True),
        ("1G", "1Gi", Q, False),
        ("x", "y", Q, False),
        ("1000m", "1", Format.PLAIN, False),
        ("dmFs\ndWU=", "dmFsdWU=", B, True),
        ("%", "dmFsdWU=", B, False),
        ("2026-01-01T00:00:00+00:00", "2026-01-01T00:00:00Z", T, True),
        ("2026-01-01T01:00:00+01:00", "2026-01-01T00:00:00Z", T, True),
        ("soon", "later", T, False),
        (True, 1, Format.PLAIN, False),
        (False, 0, Format.PLAIN, False),
        (1.0, 1, Format.PLAIN, True),
        ("80", 80, Format.PLAIN, False),
        (None, "", Format.PLAIN, False),
    ],
)
def test_scalars(one: Any, other: Any, format_: Format, is_same: bool) -> None:
    assert same_scalar(one, other, format_) is is_same
    assert same_scalar(other, one, format_) is is_same


STEP = SchemaNode(
    shape=NodeForm.OBJECT,
    fields={
        "run": SchemaNode(shape=NodeForm.SCALAR),
        "tries": SchemaNode(shape=NodeForm.SCALAR, default=1),
        "x": SchemaNode(shape=NodeForm.SCALAR),
    },
)
STEPS = SchemaNode(shape=NodeForm.LIST, item=STEP, is_atomic=True)


@pytest.mark.parametrize(
    ("wanted", "found", "before", "verdict"),
    [
        ([{"run": "a"}], [{"run": "a"}], None, ValueComparison.EQUAL),
        ([{"run": "a"}], [{"run": "a", "tries": 1}], None, ValueComparison.EQUAL),
        ([{"run": "a"}], [{"run": "a", "tries": 2}], None, ValueComparison.DOUBTFUL),
        ([{"run": "a"}], [{"run": "a", "x": "y"}], [{"run": "a"}], ValueComparison.EQUAL),
        ([{"run": "a"}], [{"run": "a", "x": "y"}], [{"run": "a", "x": "y"}], ValueComparison.DIFFERENT),
        ([{"run": "a"}], [{"run": "b"}], None, ValueComparison.DIFFERENT),
        ([{"run": "a"}], [], None, ValueComparison.DIFFERENT),
        ([{"run": "a", "x": "y"}], [{"run": "a"}], None, ValueComparison.DIFFERENT),
        ([{"run": "a", "x": None}], [{"run": "a"}], None, ValueComparison.EQUAL),
        ([], [], None, ValueComparison.EQUAL),
    ],
)
def test_atomic_values_with_defaults(wanted: Any, found: Any, before: Any, verdict: ValueComparison) -> None:
    assert covered(wanted, found, before, STEPS, keeps_empty=True) is verdict


def test_equality_ignores_the_order_of_sets_only() -> None:
    names = SchemaNode(shape=NodeForm.LIST, item=SchemaNode(shape=NodeForm.SCALAR), is_set=True)
    assert equal(["a", "b"], ["b", "a"], names, keeps_empty=True)
    assert not equal(["a", "b"], ["b", "a"], SchemaNode(shape=NodeForm.LIST, is_atomic=True), keeps_empty=True)
    assert not equal(["a"], ["a", "a"], names, keeps_empty=True)


def test_equality_of_custom_resources_keeps_empty_maps_apart_from_nothing() -> None:
    node = SchemaNode(
        shape=NodeForm.OBJECT, item=SchemaNode(shape=NodeForm.OBJECT, item=SchemaNode(shape=NodeForm.SCALAR))
    )
    assert equal({"a": {}}, {}, node, keeps_empty=False)
    assert not equal({"a": {}}, {}, node, keeps_empty=True)


def test_sends_no_null_that_would_reset_a_field() -> None:
    schema = builtin_schema(GVK("", "v1", "Service"))
    body: dict[str, Any] = {
        "metadata": {"labels": {"a": None}},
        "spec": {"type": None, "ports": [{"port": 1, "nodePort": None}]},
    }
    assert sendable(body, schema) == {"metadata": {"labels": {"a": None}}, "spec": {"ports": [{"port": 1}]}}
    assert body["spec"]["type"] is None, "the argument was written into"


def test_sends_no_zero_that_would_allocate_anew() -> None:
    schema = builtin_schema(GVK("", "v1", "Service"))
    body = {"spec": {"clusterIP": "", "ports": [{"port": 1, "nodePort": 0}, {"port": 2, "nodePort": 30000}]}}
    assert sendable(body, schema) == {"spec": {"ports": [{"port": 1}, {"port": 2, "nodePort": 30000}]}}
    headless = {"spec": {"clusterIP": "None"}}
    assert sendable(headless, schema) is headless


def test_sends_null_where_it_is_a_value_or_nothing_is_known() -> None:
    spec = {"type": "object", "properties": {"mode": {"type": "string", "nullable": True}, "size": {"type": "integer"}}}
    version = {"name": "v1", "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}}
    schema: Schema | None = schema_of_crd({"spec": {"versions": [version]}}, "v1")
    assert sendable({"spec": {"mode": None, "size": None}}, schema) == {"spec": {"mode": None}}
    assert sendable({"spec": {"size": None}}, None) == {"spec": {"size": None}}


@pytest.mark.parametrize("text", ['{"replicas":null}', '\\{"replicas":null}', '":null', '\\":null'])
def test_a_null_inside_a_text_hides_no_null_of_a_field(text: str) -> None:
    schema = builtin_schema(GVK("apps", "v1", "Deployment"))
    kept: dict[str, Any] = {"metadata": {"annotations": {"owner": text, "ends\\": text}}}
    assert sendable(kept, schema) is kept
    assert sendable({**kept, "spec": {"paused": None}}, schema) == {**kept, "spec": {}}
    assert sendable({"metadata": {"labels": {"ends\\": text}, "uid": None}}, schema) == {
        "metadata": {"labels": {"ends\\": text}}
    }
