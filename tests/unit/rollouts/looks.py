"""Looks at rollouts as case tables write them: times in minutes, revisions by short names."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import yaml

from reconciler.api.clusters import Cluster
from reconciler.api.problem import Document
from reconciler.api.rollout_progress import (
    Begin,
    Complete,
    EarlierRevision,
    Record,
    RecordChange,
    StageKind,
    StageSlot,
    StageState,
    Steady,
)
from reconciler.api.rollouts import Rollout
from reconciler.rollouts import parse_rollout
from reconciler.yaml import read_yaml

START = datetime(2026, 11, 23, 10, tzinfo=UTC)
REVISIONS = {"old": "aaaaaaa0", "new": "bbbbbbb0", "newer": "ccccccc0", "gone": "eeeeeee0", "away": "fffffff0", "": ""}
ORDER = tuple(REVISIONS[name] for name in ("old", "new", "newer"))
NAMES = {revision: name for name, revision in REVISIONS.items()}


def at(minute: float | None) -> str:
    """RFC 3339 of a minute; empty for none."""
    if minute is None:
        return ""
    return (START + timedelta(minutes=minute)).strftime("%Y-%m-%dT%H:%M:%SZ")


def minute(text: str) -> int | str:
    """The minute of a time; `never` for none."""
    return round((datetime.fromisoformat(text) - START).total_seconds() / 60) if text else "never"


def rollout_of(spec: Mapping[str, Any]) -> Rollout:
    """Return what the parser makes of a spec; there must be no error in it."""
    rollout, problems = parse_rollout(document_of(spec))
    assert rollout is not None, problems
    return rollout


def document_of(spec: Mapping[str, Any]) -> Document:
    body = {
        "apiVersion": "fleet.reconciler/v1alpha1",
        "kind": "Rollout",
        "metadata": {"name": "default"},
        "spec": spec,
    }
    (document,) = read_yaml("rollouts/default.yaml", yaml.safe_dump(body, sort_keys=False).encode()).documents
    return document


def clusters_of(labels: Mapping[str, Mapping[str, str]]) -> dict[str, Cluster]:
    return {name: Cluster(name=name, labels=dict(given)) for name, given in labels.items()}


def record_of_case(given: Any) -> Record:
    """A record: `[revision, begun, done, steady]`, or with names."""
    if isinstance(given, list):
        revision, begun, done, steady = (*given, None, None)[:4]
        given = {"revision": revision, "begun": begun, "done": done, "steady": steady}
    return Record(
        revision=REVISIONS[given["revision"]],
        begun_at=at(given["begun"]),
        completed_at=at(given.get("done")),
        steady_since=at(given.get("steady")),
        turn=REVISIONS[given.get("turn", "")],
        turn_at=at(given.get("turned")),
        earlier=tuple(
            EarlierRevision(revision=REVISIONS[name], left_at=at(left))
            for name, left in given.get("earlier", {}).items()
        ),
    )


def state_text(state: StageState) -> str:
    """A state of a stage in the words of the tables."""
    match state.kind:
        case StageKind.RUNNING:
            return f"running {state.done}/{state.total}"
        case StageKind.WAITS_FOR_STAGE:
            return f"waits for {state.stage}"
        case StageKind.WAITS_FOR_TIME:
            return f"waits until {minute(state.until)}"
        case StageKind.WAITS_FOR_APPROVAL:
            last = f", the last ended at {minute(state.ended)}" if state.ended else ""
            return f"needs {state.entry}{last}" + (f" from {minute(state.until)}" if state.until else "")
        case StageKind.WAITS_FOR_WINDOW:
            return f"window from {minute(state.until)}"
        case StageKind.PAUSED:
            return f"paused by {' '.join(state.failed)}"
        case StageKind.PINNED:
            return f"pinned to {state.pinned}"
        case _:
            return str(state.kind)


def change_text(change: RecordChange) -> str:
    """A change of a record in the words of the tables."""
    match change:
        case Begin(cluster=cluster, revision=revision, is_rollback=is_rollback):
            return f"{'return' if is_rollback else 'begin'} {cluster} {NAMES[revision]}"
        case StageSlot(cluster=cluster, revision=revision):
            return f"turn {cluster} {NAMES[revision]}"
        case Steady(cluster=cluster, since=since):
            return f"steady {cluster} {minute(since)}"
        case Complete(cluster=cluster):
            return f"complete {cluster}"
