"""The table of fields and the parsers say the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import pytest

from reconciler.api.content import Json, JsonObject
from reconciler.api.problem import Document, Problem, Severity
from reconciler.documents import Field, FieldSupport, FieldType, Shape, walk
from reconciler.fleet import KINDS, parse_promotion
from reconciler.fleet.cluster_documents import parse_cluster
from reconciler.fleet.settings import parse_fleet_settings
from reconciler.hydration import parse_render
from reconciler.policy import parse_override_policy, parse_propagation_policy
from reconciler.rollouts import parse_rollout

API_VERSIONS = {
    "Cluster": "cluster.karmada.io/v1alpha1",
    "ManagedCluster": "cluster.open-cluster-management.io/v1",
    "ClusterProfile": "multicluster.x-k8s.io/v1alpha1",
    "Fleet": "fleet.reconciler/v1alpha1",
    "Rollout": "fleet.reconciler/v1alpha1",
    "Render": "fleet.reconciler/v1alpha1",
    "Promotion": "fleet.reconciler/v1alpha1",
}
PARSERS: dict[str, Callable[[Document], tuple[object, tuple[Problem, ...]]]] = {
    "PropagationPolicy": parse_propagation_policy,
    "ClusterPropagationPolicy": parse_propagation_policy,
    "OverridePolicy": parse_override_policy,
    "ClusterOverridePolicy": parse_override_policy,
    "Cluster": parse_cluster,
    "ManagedCluster": parse_cluster,
    "ClusterProfile": parse_cluster,
    "Fleet": parse_fleet_settings,
    "Rollout": parse_rollout,
    "Render": parse_render,
    "Promotion": parse_promotion,
}
_SAME_AS_NAMESPACED = ("ClusterPropagationPolicy", "ClusterOverridePolicy")


class FieldRow(NamedTuple):
    """One row of the reference. `value_notes` are values that are refused or have no effect, with the reason."""

    kind: str
    path: str
    spellings: tuple[str, ...]
    type: str
    required: bool
    default: str
    values: tuple[str, ...]
    status: FieldSupport
    why: str
    meaning: str
    value_notes: tuple[tuple[str, FieldSupport, str], ...]


def field_rows(kind: str) -> Iterator[FieldRow]:
    """Every field of a kind, parents before children, in the order of the tables."""
    for path, field in walk(KINDS[kind]):
        refused = tuple((value, FieldSupport.REFUSED, why) for value, why in sorted(field.refused_values.items()))
        inert = tuple((value, FieldSupport.NO_EFFECT, why) for value, why in sorted(field.inert_values.items()))
        yield FieldRow(
            kind=kind,
            path=path,
            spellings=field.spellings,
            type=field.type.value,
            required=field.required,
            default=field.default,
            values=tuple(dict.fromkeys(value for value in field.values.values() if value)),
            status=field.status,
            why=field.refused or field.no_effect,
            meaning=field.meaning,
            value_notes=refused + inert,
        )


ALL_ROWS = [row for kind in KINDS for row in field_rows(kind) if kind not in _SAME_AS_NAMESPACED]


def _params(rows: Iterable[FieldRow]) -> list[Any]:
    return [pytest.param(row, id=f"{row.kind}-{row.path}") for row in rows]


ROWS = _params(ALL_ROWS)
WRONG: dict[FieldType, Json] = {
    FieldType.TEXT: 7,
    FieldType.FLAG: "yes",
    FieldType.INTEGER: "7",
    FieldType.INTEGER_OR_TEXT: True,
    FieldType.TEXTS: "a",
    FieldType.MAP: {"a": 7},
    FieldType.OBJECT: "a",
    FieldType.OBJECTS: {},
    FieldType.TEXT_OR_OBJECT: 7,
}


def _whole(shape: Shape, spelling: int = 0) -> dict[str, Json]:
    """A mapping with every field of a shape, under the spelling of that number where there are so many."""
    written = {}
    for field in shape.fields:
        names = (field.name, *field.spellings)
        written[names[min(spelling, len(names) - 1)]] = _value(field, spelling)
    return written


def _value(field: Field, spelling: int = 0) -> Json:
    match field.type:
        case FieldType.TEXT:
            return next(iter(field.values), "text")
        case FieldType.FLAG:
            return True
        case FieldType.INTEGER | FieldType.INTEGER_OR_TEXT:
            return 1
        case FieldType.TEXTS:
            return ["a"]
        case FieldType.MAP:
            return {"a": "b"}
        case FieldType.ANY:
            return "x"
    assert field.shape is not None
    below = _whole(field.shape, spelling)
    return [below] if field.type is FieldType.OBJECTS else below


def _problems(kind: str, body: JsonObject) -> tuple[Problem, ...]:
    named = {**body, "apiVersion": API_VERSIONS.get(kind, "policy.karmada.io/v1alpha1"), "kind": kind}
    return PARSERS[kind](Document(path="a.yaml", line=1, body=named, locate=lambda steps: 1))[1]


def _at(body: Json, path: str) -> tuple[Any, str]:
    """The mapping that holds the field of a path, and the field's name."""
    *parents, name = path.replace("[]", ".[]").split(".")
    for step in parents:
        body = body[0] if step == "[]" else body[step]
    return body, name


def _written(path: str) -> str:
    return path.replace("[]", "[0]")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("spelling", [0, 1])
def test_every_field_of_the_table_is_known_to_the_parser(kind: str, spelling: int) -> None:
    problems = _problems(kind, _whole(KINDS[kind], spelling))
    assert not [p for p in problems if p.code in ("unknown-field", "wrong-type", "unknown-value", "value-refused")]


@pytest.mark.parametrize("row", ROWS)
def test_parser_treats_a_field_as_its_status_says(row: FieldRow) -> None:
    if row.path in ("apiVersion", "kind"):
        return
    found = [p for p in _problems(row.kind, _whole(KINDS[row.kind])) if p.path == _written(row.path)]
    codes = {p.code: p for p in found}
    assert ("field-refused" in codes) is (row.status is FieldSupport.REFUSED)
    assert ("field-without-effect" in codes) is (row.status is FieldSupport.NO_EFFECT)
    if row.status is not FieldSupport.SUPPORTED:
        assert row.why in next(iter(codes.values())).message
    if row.status is FieldSupport.NO_EFFECT:
        assert codes["field-without-effect"].severity is not Severity.ERROR


@pytest.mark.parametrize("row", ROWS)
def test_parser_checks_the_type_that_the_table_says(row: FieldRow) -> None:
    body = _whole(KINDS[row.kind])
    if row.path in ("apiVersion", "kind") or row.type == FieldType.ANY:
        return
    parent, name = _at(body, row.path)
    parent[name] = WRONG[FieldType(row.type)]
    problems = _problems(row.kind, body)
    assert [p for p in problems if p.path == _written(row.path) and p.code in ("wrong-type", "field-refused")]


@pytest.mark.parametrize("row", _params(row for row in ALL_ROWS if "object" in row.type))
def test_parser_looks_into_every_mapping(row: FieldRow) -> None:
    body = _whole(KINDS[row.kind])
    parent, name = _at(body, f"{row.path}[].zzz" if row.type == FieldType.OBJECTS else f"{row.path}.zzz")
    parent[name] = 1
    assert [p for p in _problems(row.kind, body) if p.code == "unknown-field" and p.path.endswith(".zzz")]


@pytest.mark.parametrize("row", _params(row for row in ALL_ROWS if row.value_notes))
def test_values_with_a_note_are_treated_as_it_says(row: FieldRow) -> None:
    for value, status, why in row.value_notes:
        body = _whole(KINDS[row.kind])
        parent, name = _at(body, row.path)
        parent[name] = value
        code = "value-refused" if status is FieldSupport.REFUSED else "value-without-effect"
        (problem,) = (p for p in _problems(row.kind, body) if (p.code, p.path) == (code, _written(row.path)))
        assert why in problem.message


def test_rows_are_fit_for_documentation() -> None:
    for row in ALL_ROWS:
        assert row.meaning.endswith("."), row
        assert not row.why.endswith("."), row


def test_cluster_kinds_have_the_fields_of_the_namespaced_ones() -> None:
    assert KINDS["ClusterPropagationPolicy"] is KINDS["PropagationPolicy"]
    assert KINDS["ClusterOverridePolicy"] is KINDS["OverridePolicy"]
