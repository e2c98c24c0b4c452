"""One trial of engine T against what a real API server does, with an oracle that shares no comparison with it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from typing import Any

from msgspec import Struct, field

from reconciler.api.plan import MISSING, Cause, FieldChange
from reconciler.api.refs import GVK
from reconciler.diff import Difference, dry_run_changes, sendable
from reconciler.documents import Schema, builtin_schema, schema_of_crd
from reconciler.ownership import FieldPath, parse_path, step_of, takeover_operations, value_at
from reconciler.ownership.managed_fields import managers_of
from tests.apiserver.requests_to import APPLY, JSON_PATCH, ApiServer, Body, Refused
from tests.apiserver.wishes import CRD, WIDGET, Subject
from tests.engine_t import three_way

MANAGER = "fleet-reconciler/test"


class Outcome(Struct):
    """The result of a trial. `faults` is empty when T and the API server agree."""

    seed: int
    kind: str
    faults: list[str] = field(default_factory=list)
    refused: str = ""
    unsure: str = ""
    changes: int = 0
    removals: int = 0
    takeovers: int = 0
    invisible: int = 0
    side_effects: int = 0
    story: list[Any] = field(default_factory=list)


def schema_for(subject: Subject, body: Body) -> Schema:
    """The schema that engine T is given."""
    if subject is WIDGET:
        schema = schema_of_crd(CRD, "v1")
    else:
        schema = builtin_schema(GVK.parse(body["apiVersion"], body["kind"]))
    assert schema is not None
    return schema


def run_trial(server: ApiServer, namespace: str, subject: Subject, seed: int) -> Outcome:
    """Apply a desired state, let others edit, and compare T's word on the next desired state with the apply."""
    rng = Random(f"{subject.name}-{seed}")
    outcome = Outcome(seed, subject.name)
    name = f"{subject.name}-{seed}"
    path = subject.path.format(namespace, name)
    features = subject.features(rng)
    previous = subject.build(namespace, name, features)
    schema = schema_for(subject, previous)
    sent = dict(sendable(previous, schema))
    try:
        server.apply(path, sent, MANAGER)
    except Refused as refused:
        outcome.refused = f"previous: {refused}"
        return outcome
    _let_others_edit(server, path, subject, rng, previous, outcome)
    desired = subject.build(namespace, name, subject.changed(rng, features))
    wanted = dict(sendable(desired, schema))
    live = server.get(path)
    outcome.story += ["previous", sent, "desired", wanted, "live", live]
    said = three_way(wanted, live, manager=MANAGER, previous=sent, schema=schema)
    outcome.changes, outcome.takeovers = len(said.fields), len(said.removed_paths)
    outcome.unsure = said.unsure or ""
    taken = live
    dry: Body = {}
    try:
        if said.removed_paths:
            taken = take_over(server, path, said.removed_paths)
            if ordinary(taken) != ordinary(live):
                outcome.faults.append("taking fields over changed something")
        dry = server.apply(path, wanted, MANAGER, dry_run=True)
        result = server.apply(path, wanted, MANAGER)
    except Refused as refused:
        outcome.refused = str(refused)
        if not said.unsure:
            outcome.faults.append(f"refused, and T was sure: {refused}")
        return outcome
    outcome.story += ["said", said, "result", result]
    judge(outcome, said, taken, result)
    answered = dry_run_changes(taken, dry, manager=MANAGER, schema=schema)
    judge_dry_run(outcome, said, answered, taken, dry)
    again = three_way(wanted, server.get(path), manager=MANAGER, previous=wanted, schema=schema)
    if again != Difference():
        outcome.faults.append(f"not silent after the apply: {again}")
    forgetful = three_way(wanted, server.get(path), manager=MANAGER, schema=schema)
    if forgetful.fields or forgetful.removed_paths:
        outcome.faults.append(f"without the journal not silent after the apply: {forgetful}")
    return outcome


def take_over(server: ApiServer, path: str, paths: tuple[str, ...]) -> Body:
    """Make the places at the paths ours; the object afterwards."""
    for _ in range(20):
        operations = takeover_operations(server.get(path), MANAGER, paths)
        try:
            return server.patch(path, list(operations), MANAGER, JSON_PATCH)
        except Refused as refused:
            # A controller wrote the status in between.
            if refused.status != 409:
                raise
    raise AssertionError("the object never stood still")


def _let_others_edit(server: ApiServer, path: str, subject: Subject, rng: Random, body: Body, outcome: Outcome) -> None:
    for _ in range(rng.randint(0, 4)):
        edit = subject.edits(rng)
        change = edit.body
        if edit.media_type == APPLY:
            change = {"apiVersion": body["apiVersion"], "kind": body["kind"], **change}
        try:
            if edit.media_type == APPLY:
                server.apply(path, change, edit.manager)
            else:
                server.patch(path + edit.subresource, change, edit.manager, edit.media_type)
            outcome.story.append(edit)
        except Refused as refused:
            outcome.story.append((edit, str(refused)))


def judge(outcome: Outcome, said: Difference, live: Body, result: Body) -> None:
    """Compare what T said with what the apply did to fields that were or are ours."""
    actual = set(actual_changes(live, result)) | set(order_changes(live, result))
    paths = {change.path: parse_path(change.path) for change in said.fields}
    for text, parsed in paths.items():
        if parsed is None:
            outcome.faults.append(f"path cannot be read: {text}")
    told = [path for path in paths.values() if path is not None]
    for path in sorted(actual, key=repr):
        if not any(_related(path, known) for known in told):
            outcome.faults.append(f"changed but not said: {path}")
    for change in said.fields:
        path = paths[change.path] or ()
        before, after = value_at(live, path), value_at(result, path)
        outcome.removals += change.cause is Cause.REMOVED
        if not any(_related(path, known) for known in actual):
            if change.after is MISSING and _same(before, after) and not managers_of(result, path):
                # What left us stands there as a default.
                outcome.invisible += 1
            else:
                outcome.faults.append(f"said but not changed: {change}")


def judge_dry_run(
    outcome: Outcome, said: Difference, answered: tuple[FieldChange, ...], live: Body, result: Body
) -> None:
    """Compare what engine S reads from a dry run with T's word and with the values."""
    told = [parse_path(change.path) or () for change in said.fields]
    for change in answered:
        path = parse_path(change.path) or ()
        is_said = any(_related(path, known) for known in told)
        if change.cause is Cause.SIDE_EFFECT:
            outcome.side_effects += 1
        elif not is_said:
            outcome.faults.append(f"the dry run changes what T did not say: {change}")
        if not isinstance(change.after, list) and not _same(value_at(result, path), change.after):
            outcome.faults.append(f"the dry run's answer was misread: {change}")
    shown = [parse_path(change.path) or () for change in answered if change.cause is not Cause.SIDE_EFFECT]
    for change, path in zip(said.fields, told, strict=True):
        is_visible = not _same(value_at(live, path), value_at(result, path))
        if is_visible and not any(_related(path, known) for known in shown):
            outcome.faults.append(f"T said what the dry run calls a side effect: {change}")


def ordinary(body: Body) -> Body:
    """The object without what every write changes and what controllers add."""
    left = {name: value for name, value in body["metadata"].items() if name not in ("managedFields", "resourceVersion")}
    annotations = dict(left.get("annotations") or {})
    annotations.pop("deployment.kubernetes.io/revision", None)
    return {**body, "metadata": {**left, "annotations": annotations}, "status": None}


def _same(before: Any, after: Any) -> bool:
    return before is after or bool(before == after)


def _related(one: FieldPath, other: FieldPath) -> bool:
    shorter = min(len(one), len(other))
    return one[:shorter] == other[:shorter]


def ours(body: Body) -> list[Body]:
    """FieldsV1 of what we applied."""
    return [
        entry["fieldsV1"]
        for entry in body["metadata"].get("managedFields", [])
        if entry["manager"] == MANAGER and entry["operation"] == "Apply"
    ]


def actual_changes(live: Body, result: Body) -> Iterator[FieldPath]:
    """Paths of fields that are ours before or after, and whose values differ."""
    for fields in (*ours(live), *ours(result)):
        yield from _differing(fields, live, result, ())


def _differing(fields: Body, before: Any, after: Any, path: FieldPath) -> Iterator[FieldPath]:
    for raw, inner in fields.items():
        if raw == ".":
            continue
        one, other = _at(before, raw), _at(after, raw)
        step = step_of(raw)
        assert step is not None, raw
        here = (*path, step)
        if not inner or set(inner) == {"."}:
            if not _same(one, other) or (isinstance(one, bool) != isinstance(other, bool)):
                yield here
            continue
        if "." in inner and (one is MISSING) != (other is MISSING):
            yield here
        yield from _differing(inner, one, other, here)


def _at(tree: Any, raw: str) -> Any:
    kind, _, rest = raw.partition(":")
    if tree is MISSING:
        return MISSING
    if kind == "f":
        return tree.get(rest, MISSING) if isinstance(tree, dict) else MISSING
    if not isinstance(tree, list):
        return MISSING
    key = json.loads(rest)
    if kind == "v":
        return key if key in tree else MISSING
    for item in tree:
        if all(item.get(name, "TCP" if name == "protocol" else None) == value for name, value in key.items()):
            return item
    return MISSING


def order_changes(live: Body, result: Body) -> Iterator[FieldPath]:
    """Map lists whose items that we apply stand in another order than before."""
    for fields in ours(result):
        yield from _reordered(fields, live, result, ())


def _reordered(fields: Body, before: Any, after: Any, path: FieldPath) -> Iterator[FieldPath]:
    keys = [raw for raw in fields if raw.startswith("k:")]
    if keys and isinstance(before, list) and isinstance(after, list):
        found = [(raw, _at(before, raw), _at(after, raw)) for raw in keys]
        both = [(raw, b, a) for raw, b, a in found if b is not MISSING and a is not MISSING]
        was = [raw for raw, b, _ in sorted(both, key=lambda x: before.index(x[1]))]
        now = [raw for raw, _, a in sorted(both, key=lambda x: after.index(x[2]))]
        if was != now:
            yield path
    for raw, inner in fields.items():
        step = step_of(raw) if raw != "." else None
        if step is not None:
            one, other = _at(before, raw), _at(after, raw)
            if one is not MISSING and other is not MISSING:
                yield from _reordered(inner, one, other, (*path, step))
