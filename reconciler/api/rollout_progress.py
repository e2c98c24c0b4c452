"""The recorded progress of rollouts, and the revision in force in each cluster."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import StrEnum

from msgspec import Struct, field

from reconciler.api.fleet import Fleet
from reconciler.api.problem import Problem
from reconciler.api.refs import Identity, short_revision
from reconciler.api.rollouts import ChangeTime, OnNewCommit, Stage


class EarlierRevision(Struct, frozen=True, kw_only=True):
    """A revision that a cluster had completed. `left_at`: RFC 3339 UTC until which it was in force there."""

    revision: str
    left_at: str


class Record(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The active revision of a cluster, its start and its completion. Times are RFC 3339 UTC.

    `revision` empty: nothing of the rollout was written there yet. `completed_at` empty: in progress. `steady_since`:
    since when the gate has been met without a break; kept by the journal alone. `turn`, `turn_at`: the revision whose
    turn came while the cluster could not be changed, and the time of that. `earlier`: revisions to which it may roll
    back, the one that it left last first.
    """

    revision: str = ""
    begun_at: str = ""
    completed_at: str = ""
    steady_since: str = ""
    turn: str = ""
    turn_at: str = ""
    earlier: tuple[EarlierRevision, ...] = ()


class GateMet(Struct, frozen=True, tag="met"):
    """Every copy is in step with `revision` and meets the gate."""

    revision: str


class GateUnmet(Struct, frozen=True, tag="unmet"):
    """The gate is not met, and why.

    `is_scaling`: copies lack only replicas that placement gave them since they last were well. That is no break.
    `failed`: the revision of which a hook failed; empty: none did.
    """

    why: str
    is_scaling: bool = False
    failed: str = ""


class GateUnknown(Struct, frozen=True, tag="unseen"):
    """The cluster does not report, and why. That is not yet, and never met."""

    why: str


GateStatus = GateMet | GateUnmet | GateUnknown


class ReleaseFacts(Struct, frozen=True, kw_only=True):
    """Other inputs of the active revision.

    `fleets`: the older revisions that can be read. `order`: the revisions of the branch that matter, the oldest first.
    One that is not in it is older than all of them. `missing`: recorded or pinned revisions that the object database
    does not have. `pinned`: commits by the texts of pins; a missing text names no existing commit. `sights`: by Rollout
    and cluster. `away`: clusters that cannot be changed now, suspended or unreachable, with the reason. `closed`:
    clusters that a window of the fleet closes, with RFC 3339 of the end; empty: no end is known. `applied`: objects of
    ours that are in any cluster. `alike`: revisions that stage the same as HEAD.
    """

    fleets: Mapping[str, Fleet] = field(default_factory=dict)
    order: tuple[str, ...] = ()
    missing: frozenset[str] = frozenset()
    pinned: Mapping[str, str] = field(default_factory=dict)
    sights: Mapping[str, Mapping[str, GateStatus]] = field(default_factory=dict)
    away: Mapping[str, str] = field(default_factory=dict)
    closed: Mapping[str, str] = field(default_factory=dict)
    applied: Collection[Identity] = frozenset()
    alike: frozenset[str] = frozenset()


class Begin(Struct, frozen=True, tag="begin"):
    """A revision becomes active in a cluster. To be recorded in the cluster before anything of it is written.

    `is_rollback`: the cluster had completed it, and needs no turn.
    """

    cluster: str
    revision: str
    at: str
    is_rollback: bool = False


class StageSlot(Struct, frozen=True, tag="turn"):
    """A revision's turn came in a cluster that cannot be changed now. To be recorded in the journal."""

    cluster: str
    revision: str
    at: str


class Steady(Struct, frozen=True, tag="steady"):
    """The time of success begins in a cluster; `since` empty: it ended, and will begin again. In the journal alone."""

    cluster: str
    since: str


class Complete(Struct, frozen=True, tag="complete"):
    """A cluster met its gate for long enough."""

    cluster: str
    at: str


RecordChange = Begin | StageSlot | Steady | Complete


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


class StageKind(StrEnum):
    """The state of a stage in one stable word, which machines and metrics read."""

    DONE = "done"
    """Its clusters are done, and nothing holds the next stage up."""
    RUNNING = "running"
    WAITS_FOR_STAGE = "waits-for-stage"
    """An earlier stage is not done."""
    WAITS_FOR_TIME = "waits-for-time"
    """Its clusters are done; the next stage may begin later."""
    WAITS_FOR_APPROVAL = "waits-for-approval"
    """Its clusters are done; the next stage needs an approval."""
    WAITS_FOR_WINDOW = "waits-for-window"
    """Its windows are closed."""
    PAUSED = "paused"
    """More of its clusters failed than it tolerates."""
    PINNED = "pinned"
    """A person set its active revision, which is not the release."""
    SKIPPED = "skipped"
    """It has no cluster that takes part."""
    UNCLEAR = "unclear"
    """Its clusters are not clear. Nothing begins until they are."""


class StageState(Struct, frozen=True):
    """The state of a stage, with what belongs to its kind.

    `done`, `total`: clusters of a running one. `stage`: the earlier one that is waited for. `until`: RFC 3339 before
    which the next stage, or this one's window, does not begin; empty: now, or no opening is known. `entry`: under
    `spec.approvals`, lets the next stage begin; `ended`: when the one that is written ended, empty: there is none.
    `failed`: its clusters that failed. `pinned`: the revision as it is written.
    """

    kind: StageKind
    done: int = 0
    total: int = 0
    stage: str = ""
    until: str = ""
    entry: str = ""
    ended: str = ""
    failed: tuple[str, ...] = ()
    pinned: str = ""

    @property
    def is_over(self) -> bool:
        """Return whether it holds no other stage up."""
        return self.kind in (StageKind.DONE, StageKind.SKIPPED)


class StageProgress(Struct, frozen=True, kw_only=True):
    """A stage, its clusters in order, and the reason of its waiting."""

    name: str
    clusters: tuple[str, ...]
    state: StageState


class RolloutProgress(Struct, frozen=True, kw_only=True):
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


class NothingWritten(Struct, frozen=True):
    """Nothing of a template is written in a cluster, and live objects stay as they are. `why`: in words."""

    why: str


_DELETED_LAST = NothingWritten("it is deleted after the last stage")


class Staging(Struct, frozen=True, kw_only=True):
    """The active revisions of staged templates.

    `rollouts`: by template its Rollouts. `in_force`: by Rollout and cluster the recorded revision; empty: nothing of it
    is there yet. `newest`: by Rollout the revision that stages the same as HEAD. `fleets`: the older revisions that can
    be read. `order`: revisions, the oldest first. `tied`: templates that two Rollouts select. `problems`: of the
    selection. `lingering`: by template the clusters that keep it though HEAD does not have it there any more. `early`:
    by dependency the clusters whose revision does not need it yet.
    """

    rollouts: Mapping[Identity, tuple[str, ...]] = field(default_factory=dict)
    in_force: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    newest: Mapping[str, str] = field(default_factory=dict)
    fleets: Mapping[str, Fleet] = field(default_factory=dict)
    order: tuple[str, ...] = ()
    tied: Mapping[Identity, tuple[str, ...]] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    lingering: Mapping[Identity, frozenset[str]] = field(default_factory=dict)
    early: Mapping[Identity, frozenset[str]] = field(default_factory=dict)

    def release_of(self, identity: Identity) -> str:
        """Return the release that brings a template of a Rollout as HEAD has it; empty: it is of none."""
        return next((self.newest[name] for name in self.rollouts.get(identity, ()) if name in self.newest), "")

    def of(self, identity: Identity, cluster: str) -> Fleet | NothingWritten | None:
        """The older revision from which a template is rendered in a cluster; None: as HEAD has it."""
        if identity in self.tied:
            return NothingWritten(f"the Rollouts {' and '.join(self.tied[identity])} both speak for it")
        names = self.rollouts.get(identity)
        if not names:
            return None
        revision = self.revision_of(names, cluster, is_oldest=identity.kind == "CustomResourceDefinition")
        if revision is None:
            # Which revision the cluster had it from is not known any more.
            return _DELETED_LAST if cluster in self.lingering.get(identity, ()) else None
        if not revision:
            return NothingWritten(f"the turn of the cluster in the Rollout {' and '.join(names)} has not come")
        fleet = self.fleets.get(revision)
        if fleet is None:
            return NothingWritten(f"the revision {short_revision(revision)} in force there cannot be read")
        if identity not in fleet.templates or cluster in self.early.get(identity, ()):
            return NothingWritten(f"it comes after the revision {short_revision(revision)}, which is in force there")
        return fleet

    def revision_of(self, names: tuple[str, ...], cluster: str, *, is_oldest: bool = False) -> str | None:
        """Return the newest revision that one of these Rollouts has active in a cluster, or the oldest.

        None: that of HEAD. Empty: nothing is active there yet. A definition goes with the oldest: a newer one would
        take fields from live objects.
        """
        active = [(self.in_force.get(name, {}).get(cluster, ""), self.newest.get(name)) for name in names]
        revisions = [revision for revision, _ in active if revision]
        behind = [revision for revision, head in active if revision and revision != head]
        if not revisions or (len(behind) < len(revisions) and not (is_oldest and behind)):
            return None if revisions else ""
        return (min if is_oldest else max)(behind, key=self._place)

    def _place(self, revision: str) -> tuple[int, str]:
        return self.order.index(revision) if revision in self.order else -1, revision


class StagePlan(Struct, frozen=True, kw_only=True):
    """A stage with its clusters in the order of their turns.

    `at_once`: number of clusters that change at once. `changes`: number of a plan's changes in it, without deletions
    after the last stage. `pinned`: the revision that a person pinned it to, or empty.
    """

    stage: Stage
    clusters: tuple[str, ...]
    at_once: int
    changes: int = 0
    pinned: str = ""


class RolloutPlan(Struct, frozen=True, kw_only=True):
    """The plan of the stages of one Rollout.

    `is_sound` False: the stage of a cluster is ambiguous, and nothing begins. `later_deletions`: number of deletions
    after the last stage. `placements`: number of changed placements of its templates. `progress`: its present state;
    None: unknown, since no cluster was asked. `is_merge`: the plan compares two revisions, and describes the newer one.
    `is_new`: the older one has no Rollout of this name.
    """

    name: str
    stages: tuple[StagePlan, ...]
    is_sound: bool = True
    on_new_commit: OnNewCommit = OnNewCommit.RESTART
    deletions: ChangeTime = ChangeTime.LAST
    placement: ChangeTime = ChangeTime.NOW
    later_deletions: int = 0
    placements: int = 0
    progress: RolloutProgress | None = None
    is_merge: bool = False
    is_new: bool = False

    @property
    def changes(self) -> int:
        """Return the number of changes in its stages."""
        return sum(stage.changes for stage in self.stages) + self.later_deletions

    @property
    def superseded(self) -> str:
        """Return the revision under way that the newer one replaces or waits for; empty: none."""
        now = self.progress
        return now.release if now is not None and self.is_merge and self.changes and not now.is_done else ""
