"""The state of a rollout: the active revision of each cluster, and the condition of each stage."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct, field

from reconciler.model.problem import Problem
from reconciler.model.rollouts.record import Record, RecordChange


class Phase(StrEnum):
    """The phase of a cluster in a release."""

    BEHIND = "behind"
    """Another revision is active, or none; its turn has not come."""
    RUNNING = "running"
    """The release is active and its gate is not passed yet."""
    DONE = "done"
    FAILED = "failed"
    """It did not meet its gate in time."""
    PINNED = "pinned"
    """A person set the active revision."""
    FROZEN = "frozen"
    """The active revision cannot be read any more. Everything stays as it is."""


class ClusterProgress(Struct, frozen=True, kw_only=True):
    """The active revision of a cluster, and why. `revision` empty: nothing of the rollout is written there yet."""

    revision: str
    phase: Phase
    why: str
    stage: str = ""


class StageDone(Struct, frozen=True, tag="done"):
    """Its clusters are done, and nothing holds the next stage up."""


class StageRunning(Struct, frozen=True, tag="running"):
    """So many of its clusters are done."""

    done: int
    total: int


class WaitsForStage(Struct, frozen=True, tag="waits-for-stage"):
    """An earlier stage is not done."""

    stage: str


class WaitsForTime(Struct, frozen=True, tag="waits-for-time"):
    """Its clusters are done; the next stage may begin at this time (RFC 3339)."""

    until: str


class WaitsForApproval(Struct, frozen=True, tag="waits-for-approval"):
    """Its clusters are done; `entry` under `spec.approvals` lets the next stage begin, not before `not_before`."""

    entry: str
    not_before: str = ""


class WaitsForWindow(Struct, frozen=True, tag="waits-for-window"):
    """Its windows are closed; `until` empty: no opening is known."""

    until: str


class Paused(Struct, frozen=True, tag="paused"):
    """More of its clusters failed than it tolerates."""

    failed: tuple[str, ...]


class Pinned(Struct, frozen=True, tag="pinned"):
    """A person set its active revision, which is not the release."""

    revision: str


class Skipped(Struct, frozen=True, tag="skipped"):
    """It has no cluster that takes part."""


class Unclear(Struct, frozen=True, tag="unclear"):
    """Which clusters it has is not clear. Nothing begins until it is."""


StageState = (
    StageDone
    | StageRunning
    | WaitsForStage
    | WaitsForTime
    | WaitsForApproval
    | WaitsForWindow
    | Paused
    | Pinned
    | Skipped
    | Unclear
)


class StageProgress(Struct, frozen=True, kw_only=True):
    """A stage, its clusters in order, and the reason of its waiting."""

    name: str
    clusters: tuple[str, ...]
    state: StageState


class Progress(Struct, frozen=True, kw_only=True):
    """The state of a rollout, and the records to write now.

    `release`: the revision that goes over the clusters. `waiting`: a newer one that waits until it is done, or empty.
    `records`: the records after `changes`. `look_again`: RFC 3339 of the next possible change by time alone; empty:
    none. `deletions_due`: clusters in which objects that the release lacks may be deleted. `placement_due`: whether a
    change of placement is made. `left`: clusters with a record that no stage has any more.
    """

    rollout: str
    release: str
    waiting: str = ""
    clusters: Mapping[str, ClusterProgress] = field(default_factory=dict)
    stages: tuple[StageProgress, ...] = ()
    changes: tuple[RecordChange, ...] = ()
    records: Mapping[str, Record] = field(default_factory=dict)
    look_again: str = ""
    deletions_due: frozenset[str] = frozenset()
    placement_due: bool = True
    left: tuple[str, ...] = ()
    is_done: bool = False
    problems: tuple[Problem, ...] = ()
