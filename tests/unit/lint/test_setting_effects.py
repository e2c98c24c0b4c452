"""Every field of every document that steers the service is in the table, and a change of it alone is never silent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from reconciler.api.fleet import StoreFile
from reconciler.api.plan import Direction, SettingChange
from reconciler.documents import Field, FieldType, Shape
from reconciler.fleet import KINDS
from reconciler.lint import EFFECTS, setting_changes


def _leaves(shape: Shape, path: tuple[str, ...] = (), row: str = "", inert: str = "") -> Iterator[tuple[Any, ...]]:
    for field in shape.fields:
        steps, name = (*path, field.name), f"{row}.{field.name}" if row else field.name
        why = inert or field.refused or field.no_effect
        yield steps, name, field, why
        if field.shape is not None:
            below = name + ("[]" if field.type is FieldType.OBJECTS else "")
            yield from _leaves(field.shape, steps, below, why)


FIELDS = [(kind, *found) for kind, shape in KINDS.items() for found in _leaves(shape)]
IDENTITY = {"apiVersion", "kind", "metadata.name", "metadata.namespace"}


@pytest.mark.parametrize("kind", KINDS)
def test_each_field_has_a_row(kind: str) -> None:
    lacking = [row for of, _, row, _, why in FIELDS if of == kind and row not in EFFECTS[kind] and not why]
    assert not lacking


def test_no_row_is_of_a_field_that_is_gone() -> None:
    known = {(kind, row) for kind, _, row, _, _ in FIELDS}
    stray = {(kind, row) for kind in KINDS for row in EFFECTS[kind] if row[:1] not in "(" and "annotations[" not in row}
    assert stray <= known


def _value(field: Field, number: int) -> Any:
    legal = [str(value) for value in dict.fromkeys(field.values.values()) if value]
    match field.type:
        case FieldType.FLAG:
            return bool(number)
        case FieldType.INTEGER | FieldType.INTEGER_OR_TEXT:
            return 3 + number
        case FieldType.TEXTS:
            return [f"v{number}"]
        case FieldType.ANY | FieldType.MAP | FieldType.OBJECT:
            return {f"k{number}": f"v{number}"}
        case FieldType.OBJECTS:
            return [{"name": f"v{number}"}]
        case _:
            return legal[number] if len(legal) > 1 else f"v{number}"


def _shapes(kind: str, steps: tuple[str, ...]) -> list[Field]:
    found, shape = [], KINDS[kind]
    for name in steps:
        field = shape.by_spelling[name]
        found.append(field)
        shape = field.shape or shape
    return found


def _body(kind: str, steps: tuple[str, ...], value: Any) -> dict[str, Any]:
    body: Any = value
    for name, field in zip(reversed(steps), reversed(_shapes(kind, steps)), strict=True):
        is_leaf = body is value
        body = {name: [body] if field.type is FieldType.OBJECTS and not is_leaf else body}
    whole: dict[str, Any] = {"apiVersion": "v1", "kind": kind, "metadata": {"name": "n"}}
    whole["apiVersion"] = {
        "Fleet": "fleet.reconciler/v1alpha1", "Rollout": "fleet.reconciler/v1alpha1",
        "Render": "fleet.reconciler/v1alpha1", "Promotion": "fleet.reconciler/v1alpha1",
        "Cluster": "cluster.karmada.io/v1alpha1",
        "ManagedCluster": "cluster.open-cluster-management.io/v1",
        "ClusterProfile": "multicluster.x-k8s.io/v1alpha1",
    }.get(kind, "policy.karmada.io/v1alpha1")  # fmt: skip
    for name, below in body.items():
        whole[name] = {**whole[name], **below} if name == "metadata" and isinstance(below, dict) else below
    return whole


def _changes(before: Any, after: Any) -> tuple[SettingChange, ...]:
    def files(body: Any) -> list[StoreFile]:
        if body is None:
            return []
        return [StoreFile(path="a.yaml", blob=repr(body), data=yaml.safe_dump(body).encode())]

    return setting_changes(files(before), files(after))


@pytest.mark.parametrize("kind", KINDS)
def test_a_change_of_one_field_alone_is_said(kind: str) -> None:
    fields = [found for found in FIELDS if found[0] == kind and found[2] not in IDENTITY and found[2] != "metadata"]
    absent = _body(kind, ("metadata", "name"), "n")
    for _, steps, row, field, _ in fields:
        both = [_body(kind, steps, _value(field, number)) for number in (0, 1)]
        for before, after in (both, (absent, both[1]), (both[1], absent)):
            found = _changes(before, after)
            assert found, row
            assert all(change.meaning and change.source.line for change in found), row


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"suspension": {"dispatchingOnClusters": {"clusterNames": ["a"]}}},
         {"suspension": {"dispatchingOnClusters": {"clusterIds": ["a"]}}}),
        ({"priority": 1}, {"priority": 1, "conflictResolution": None}),
        ({"priority": 1}, {"priority": 1, "resourceSelectors": []}),
    ],
)  # fmt: skip
def test_the_same_in_other_words_is_no_change(before: dict[str, Any], after: dict[str, Any]) -> None:
    def file(spec: dict[str, Any]) -> list[StoreFile]:
        body = {
            "apiVersion": "policy.karmada.io/v1alpha1",
            "kind": "PropagationPolicy",
            "metadata": {"name": "n"},
            "spec": spec,
        }
        return [StoreFile(path="a.yaml", blob=repr(spec), data=yaml.safe_dump(body).encode())]

    assert setting_changes(file(before), file(after)) == ()


ALWAYS = "always"
LOOSER: list[tuple[str, str, Any, Any]] = [
    ("Fleet", "spec.mode", "apply", ALWAYS),
    ("Fleet", "spec.prometheus", "main", ALWAYS),
    ("Fleet", "spec.ha.cluster", "a", ALWAYS),
    ("Fleet", "spec.ha.leaseDuration", "15s", "24h"),
    ("Fleet", "spec.previousNames", ["a"], ["a", "b"]),
    ("Fleet", "spec.guards.maxDeletes", 5, 6),
    ("Fleet", "spec.guards.maxDeletePercent", 5, 6),
    ("Fleet", "spec.guards.window", "1h", "1m"),
    ("Fleet", "spec.descheduling.interval", "2m", "8760h"),
    ("Fleet", "spec.descheduling.unschedulableThreshold", "30s", ALWAYS),
    ("Fleet", "spec.failover.mode", "act", "advise"),
    ("Fleet", "spec.drift.selfHeal", True, False),
    ("Fleet", "spec.drift.mode", "watch", "poll"),
    ("Fleet", "spec.drift.resync", "10m", "8760h"),
    ("Fleet", "spec.history.maxEvents", 1000, 10),
    ("Fleet", "spec.history.maxAge", "720h", "1h"),
    ("Fleet", "spec.placement.partial", False, True),
    ("Fleet", "spec.namespaces.allowed", ["kube-system"], ["kube-public", "kube-system"]),
    ("Fleet", "spec.review.loosening", "hold", "allow"),
    ("Fleet", "spec.secrets.plain", "refuse", "warn"),
    ("Fleet", "spec.windows.drift", "hold", "heal"),
    ("Fleet", "spec.windows.duration", "1h", ALWAYS),
    ("Fleet", "spec.windows.cron", "0 0 1 1 *", ALWAYS),
    ("Fleet", "spec.ignore.paths", ["spec.replicas"], ["spec.replicas", "spec.template"]),
    ("Cluster", "metadata.annotations", {"fleet.reconciler/context": "a"}, ALWAYS),
    ("Cluster", "spec.syncMode", "Push", "Pull"),
    ("ClusterProfile", "metadata.namespace", "a", ALWAYS),
    ("Rollout", "spec.stages.maxConcurrency", 1, 2),
    ("Rollout", "spec.stages.maxConcurrency", "25%", "50%"),
    ("Rollout", "spec.stages.clusters.clusterNames", ["a"], ALWAYS),
    ("Rollout", "spec.stages.gate.healthy", True, False),
    ("Rollout", "spec.stages.gate.minSuccessTime", "1h", "1s"),
    ("Rollout", "spec.stages.gate.timeout", "30m", "8760h"),
    ("Rollout", "spec.stages.gate.maxFailures", 0, 1),
    ("Rollout", "spec.stages.gate.onFailure", "Pause", "Continue"),
    ("Rollout", "spec.stages.gate.metrics.query", "up", ALWAYS),
    ("Rollout", "spec.stages.gate.metrics.for", "1h", "1s"),
    ("Rollout", "spec.stages.gate.conditions.type", "Ready", ALWAYS),
    ("Rollout", "spec.stages.after.wait", "1h", "1s"),
    ("Rollout", "spec.stages.after.approval", True, False),
    ("Rollout", "spec.rollbackWindow", "1h", "8760h"),
    ("Rollout", "spec.deletions", "last", "withStage"),
    ("Rollout", "spec.placement", "last", "now"),
    ("Render", "spec.secrets.age", ["age1a"], ["age1a", "age1b"]),
    ("Render", "spec.placement.conflictResolution", "Abort", "Overwrite"),
    ("Render", "spec.placement.preserveResourcesOnDeletion", True, False),
    ("Render", "spec.placement.takeOver", "Helm", ALWAYS),
]
"""Fields with a stricter value and a looser one; ALWAYS: whatever it becomes, and back."""


@pytest.mark.parametrize(("kind", "path", "strict", "loose"), LOOSER)
def test_a_looser_value_is_held_and_a_stricter_one_is_not(kind: str, path: str, strict: Any, loose: Any) -> None:
    other = loose
    if loose == ALWAYS:
        other = dict.fromkeys(strict, "z") if isinstance(strict, dict) else ["z"] if isinstance(strict, list) else "z"
    sides = [_body(kind, tuple(path.split(".")), value) for value in (strict, other)]
    forward, back = ({one.direction for one in _changes(*each)} for each in (sides, sides[::-1]))
    assert (Direction.LOOSENS in forward, Direction.LOOSENS in back) == (True, loose == ALWAYS)
