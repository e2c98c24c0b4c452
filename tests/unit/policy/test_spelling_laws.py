"""Laws of normalisation: how something is spelled, and in which order it is written, never decides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from reconciler.api.content import Json
from reconciler.api.problem import Document, Problem, Severity
from reconciler.documents import Field, FieldType, Shape
from reconciler.fleet import KINDS
from reconciler.policy import parse_override_policy, parse_propagation_policy

PARSERS: dict[str, Callable[[Document], tuple[Any, tuple[Problem, ...]]]] = {
    "PropagationPolicy": parse_propagation_policy,
    "OverridePolicy": parse_override_policy,
}
GROUPS = st.sampled_from(
    ["policy.one.alibabacloud.com/v1alpha1", "one.alibabacloud.com/v1alpha1", "policy.karmada.io/v1alpha1"]
)


def _values(field: Field) -> st.SearchStrategy[Json]:
    match field.type:
        case FieldType.TEXT if field.values:
            return st.sampled_from(sorted(field.values))
        case FieldType.TEXT:
            return st.sampled_from(["a", "b", "/spec/x", "v1"])
        case FieldType.FLAG:
            return st.booleans()
        case FieldType.INTEGER:
            return st.integers(0, 3)
        case FieldType.TEXTS:
            return st.lists(st.sampled_from(["m1", "m2"]), max_size=2)
        case FieldType.MAP:
            return st.dictionaries(st.sampled_from(["a", "b"]), st.sampled_from(["x", "y"]), max_size=2)
        case FieldType.ANY:
            return st.sampled_from([1, "x", None])
    assert field.shape is not None
    below = _mappings(field.shape)
    return st.lists(below, max_size=2) if field.type is FieldType.OBJECTS else below


@st.composite
def _mappings(draw: st.DrawFn, shape: Shape) -> dict[str, Json]:
    """A mapping of some fields of a shape, each under some spelling, with the required ones always."""
    body = {}
    for field in draw(st.permutations(shape.fields)):
        if not field.refused and (field.required or draw(st.integers(0, 2)) == 0):
            body[draw(st.sampled_from([field.name, *field.spellings]))] = draw(_values(field))
    return body


def _canonical(shape: Shape, body: Json) -> dict[str, Json]:
    """The same mapping with the first spelling of every field and value, in the order of the table."""
    written = {shape.by_spelling[key].name: value for key, value in body.items()}
    respelled = {}
    for field in shape.fields:
        if field.name not in written:
            continue
        value = written[field.name]
        if field.shape is not None and field.type is FieldType.OBJECTS:
            value = [_canonical(field.shape, item) for item in value]
        elif field.shape is not None:
            value = _canonical(field.shape, value)
        elif field.values:
            value = field.values[value]
        respelled[field.name] = value
    return respelled


def _outcome(kind: str, api_version: str, spec: Json) -> tuple[Any, list[tuple[str, Severity]]]:
    body = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "web", "namespace": "demo"}, "spec": spec}
    policy, problems = PARSERS[kind](Document(path="a.yaml", line=1, body=body, locate=lambda steps: 1))
    return (policy and replace(policy, digest="")), sorted((p.code, p.severity) for p in problems)


def _spec_shape(kind: str) -> Shape:
    shape = KINDS[kind].by_spelling["spec"].shape
    assert shape is not None
    return shape


@pytest.mark.parametrize("kind", PARSERS)
@given(data=st.data(), api_version=GROUPS)
def test_spelling_and_order_of_fields_do_not_matter(kind: str, data: st.DataObject, api_version: str) -> None:
    shape = _spec_shape(kind)
    spec = data.draw(_mappings(shape))
    assert _outcome(kind, api_version, spec) == _outcome(kind, api_version, _canonical(shape, spec))


@pytest.mark.parametrize("kind", PARSERS)
@given(data=st.data())
def test_canonical_spelling_is_a_fixed_point(kind: str, data: st.DataObject) -> None:
    shape = _spec_shape(kind)
    once = _canonical(shape, data.draw(_mappings(shape)))
    assert _canonical(shape, once) == once


@pytest.mark.parametrize("kind", PARSERS)
@given(data=st.data(), api_version=GROUPS)
def test_policy_is_given_exactly_when_no_error_is(kind: str, data: st.DataObject, api_version: str) -> None:
    policy, problems = _outcome(kind, api_version, data.draw(_mappings(_spec_shape(kind))))
    assert (policy is None) is any(severity is Severity.ERROR for _, severity in problems)
