"""Every list and mapping of every document of ours, as long as a hostile one: what it costs grows with its length.

A look for each entry among all others took minutes in the longest list that a document can have.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any, Final

import pytest

from reconciler.api.fleet import StoreFile
from reconciler.documents import Field, FieldType, Shape
from reconciler.fleet import KINDS, parse_file

ENTRIES: Final = 4_000
CPU_S, CPU_S_PER_MB = 2.0, 3.0
"""Measured on an idle machine: a quarter of that."""
_LISTS: Final = (FieldType.TEXTS, FieldType.OBJECTS, FieldType.MAP)
_VERSIONS: Final = {
    "Fleet": "fleet.reconciler/v1alpha1", "Rollout": "fleet.reconciler/v1alpha1", "Render": "fleet.reconciler/v1alpha1",
    "Promotion": "fleet.reconciler/v1alpha1",
    "Cluster": "cluster.karmada.io/v1alpha1", "ManagedCluster": "cluster.open-cluster-management.io/v1",
    "ClusterProfile": "multicluster.x-k8s.io/v1alpha1",
}  # fmt: skip


def _lists(shape: Shape, steps: tuple[Field, ...] = ()) -> Iterator[tuple[Field, ...]]:
    for field in shape.fields:
        if field.type in _LISTS:
            yield (*steps, field)
        if field.shape is not None:
            yield from _lists(field.shape, (*steps, field))


def _value(field: Field, number: int) -> Any:
    match field.type:
        case FieldType.FLAG:
            return True
        case FieldType.INTEGER | FieldType.INTEGER_OR_TEXT:
            return 1
        case FieldType.TEXTS:
            return [f"v{number}"]
        case FieldType.MAP:
            return {f"k{number}": "v"}
        case FieldType.OBJECT | FieldType.TEXT_OR_OBJECT:
            return _entry(field.shape, number) if field.shape is not None else {}
        case FieldType.OBJECTS:
            return [_entry(field.shape, number)] if field.shape is not None else []
        case _:
            return next(iter(field.values), f"v{number}")


def _entry(shape: Shape, number: int) -> dict[str, Any]:
    return {field.name: _value(field, number) for field in shape.fields if not field.refused}


def _many(field: Field) -> Any:
    if field.type is FieldType.MAP:
        return {f"k{number}": "v" for number in range(ENTRIES)}
    if field.type is FieldType.TEXTS or field.shape is None:
        return [f"v{number}" for number in range(ENTRIES)]
    # Few values of an entry: a document has at most 300,000.
    return [dict(list(_entry(field.shape, number).items())[:3]) for number in range(ENTRIES)]


def _document(kind: str, steps: tuple[Field, ...]) -> bytes:
    body = _many(steps[-1])
    for index in reversed(range(len(steps))):
        is_list = index < len(steps) - 1 and steps[index].type is FieldType.OBJECTS
        body = {steps[index].name: [body] if is_list else body}
    metadata = {"name": "n", "namespace": "demo"}
    whole = {"apiVersion": _VERSIONS.get(kind, "policy.karmada.io/v1alpha1"), "kind": kind, "metadata": metadata}
    if isinstance(body.get("metadata"), dict):
        body["metadata"] = {**metadata, **body["metadata"]}
    return json.dumps({**whole, **body}).encode()


_EACH: Final = {id(steps[-1]): (kind, steps) for kind, shape in KINDS.items() for steps in _lists(shape)}
"""Kinds share most of their fields."""


@pytest.mark.parametrize("kind", KINDS)
def test_a_list_costs_what_its_length_is(kind: str) -> None:
    for steps in (steps for of, steps in _EACH.values() if of == kind):
        data = _document(kind, steps)
        started_s = time.process_time()
        parsed = parse_file(StoreFile(path="a.json", blob="b", data=data))
        took_s = time.process_time() - started_s
        path = ".".join(field.name for field in steps)
        assert took_s < CPU_S + CPU_S_PER_MB * len(data) / 1e6, path
        assert not [problem for problem in parsed.problems if problem.code == "internal-error"], path
