"""The inputs of the fleet's state: results of rounds, and observations between them.

The words of state: those of Argo CD, since people know them, each with the reason that makes it useful. Source: Argo
CD, "Resource Health" and the sync statuses of an Application.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import ClassVar, Final, NamedTuple

from msgspec import Struct, field

from reconciler.api.clusters import Member, NotRead, Read, Unlisted
from reconciler.api.ledger import JournalSnapshot
from reconciler.api.plan import Change, HeldBy, Manifest
from reconciler.api.problem import Problem
from reconciler.api.refs import Copy, Identity, listed
from reconciler.scheduler import Schedule

THE_SERVER: Final = "the server"
"""The name for an admission webhook or policy that changes a write and appears in no field manager."""
_FIELDS_MAX: Final = 3


class Sync(StrEnum):
    """The relation of an object to the store."""

    SYNCED = "Synced"
    OUT_OF_SYNC = "OutOfSync"
    UNKNOWN = "Unknown"


class Lag(StrEnum):
    """Sync with the reason of being out of sync: the unit of counts."""

    SYNCED = "synced"
    PENDING = "pending"
    HELD = "held"
    FAILED = "failed"
    FOUGHT = "fought"
    REFUSED = "refused"
    FROZEN = "frozen"
    UNKNOWN = "unknown"
    LEFT = "left"


class HealthWord(StrEnum):
    """The health of an object by itself, whether or not it is in sync."""

    HEALTHY = "Healthy"
    PROGRESSING = "Progressing"
    DEGRADED = "Degraded"
    MISSING = "Missing"
    UNKNOWN = "Unknown"


class Synced(Struct, frozen=True):
    """It is ours and equals the desired state."""

    lag: ClassVar[Lag] = Lag.SYNCED
    sync: ClassVar[Sync] = Sync.SYNCED
    is_evaluated: ClassVar[bool] = True
    why: ClassVar[str] = ""


class Pending(Struct, frozen=True):
    """It is about to be changed, or is being written, deleted or read. In the last two cases it is not evaluated."""

    why: str
    is_evaluated: bool = True
    lag: ClassVar[Lag] = Lag.PENDING
    sync: ClassVar[Sync] = Sync.OUT_OF_SYNC


class Held(Struct, frozen=True):
    """A change of it waits. The fields are those of `Hold`."""

    by: HeldBy
    why: str
    order: str = ""
    lag: ClassVar[Lag] = Lag.HELD
    sync: ClassVar[Sync] = Sync.OUT_OF_SYNC

    @property
    def is_evaluated(self) -> bool:
        """Return False if it is not even rendered before the turn of its cluster in a Rollout."""
        return self.by is not HeldBy.STAGE


class Failed(Struct, frozen=True):
    """A change of it failed, or cannot be computed (then it is not evaluated).

    `is_altered`: the cluster altered it. `todo`: the remedy, if any. `revision`: of the first failure. `fault`: of the
    program.
    """

    why: str
    is_evaluated: bool = True
    is_altered: bool = False
    todo: str = ""
    revision: str = ""
    code: str = ""
    fault: Problem | None = None
    lag: ClassVar[Lag] = Lag.FAILED
    sync: ClassVar[Sync] = Sync.OUT_OF_SYNC


class Fought(Struct, frozen=True):
    """Somebody undoes our changes: left alone until a time. `managers`: who, if known; `fields`: paths, if known."""

    managers: tuple[str, ...]
    until: str
    fields: tuple[str, ...] = ()
    lag: ClassVar[Lag] = Lag.FOUGHT
    sync: ClassVar[Sync] = Sync.OUT_OF_SYNC
    is_evaluated: ClassVar[bool] = False

    @property
    def changes(self) -> str:
        """Return `our changes of spec.replicas`."""
        return f"our changes of {listed(self.fields, _FIELDS_MAX)}" if self.fields else "our changes"

    @property
    def why(self) -> str:
        """Return the opponents and the end of the back-off."""
        who = ", ".join(self.managers) or "somebody"
        return f"{who} keeps undoing {self.changes}; it is left alone until {self.until}"


class Refused(Struct, frozen=True):
    """An object that is not ours is in the way. `code`: of the problem that says what to do."""

    code: str
    why: str
    lag: ClassVar[Lag] = Lag.REFUSED
    sync: ClassVar[Sync] = Sync.OUT_OF_SYNC
    is_evaluated: ClassVar[bool] = True


class NotKnown(Struct, frozen=True):
    """It was not read. `last_contact`: when its cluster was last read (RFC 3339), empty: never."""

    why: str
    last_contact: str
    lag: ClassVar[Lag] = Lag.UNKNOWN
    sync: ClassVar[Sync] = Sync.UNKNOWN
    is_evaluated: ClassVar[bool] = False


class Left(Struct, frozen=True):
    """A copy of ours in a cluster that the store no longer has a document of: nobody looks at it."""

    last_contact: str
    lag: ClassVar[Lag] = Lag.LEFT
    sync: ClassVar[Sync] = Sync.UNKNOWN
    is_evaluated: ClassVar[bool] = False
    why: ClassVar[str] = "the store has no Cluster document for it any more; what was applied there is left as it is"


LookedAt = Synced | Pending | Held | Failed | Fought | Refused | NotKnown
"""The state from a comparison of a copy."""


class Frozen(Struct, frozen=True):
    """A broken file may speak of it, so it is left as it is. `by`: which file; `last`: as it was seen last, if ever."""

    by: str
    last: LookedAt | None
    lag: ClassVar[Lag] = Lag.FROZEN
    sync: ClassVar[Sync] = Sync.UNKNOWN
    is_evaluated: ClassVar[bool] = False

    @property
    def why(self) -> str:
        """Return the reason, and the last known state."""
        if self.last is None:
            return f"frozen: {self.by}; how it was before is not known"
        known = f"{self.last.lag}, {self.last.why}" if self.last.why else f"{self.last.lag}"
        return f"frozen: {self.by}; last known: {known}"


SyncState = LookedAt | Left | Frozen
"""Each has `is_evaluated`: whether it comes from a comparison of the copy with its desired state."""


class Healthy(Struct, frozen=True):
    """It works."""

    word: ClassVar[HealthWord] = HealthWord.HEALTHY
    why: ClassVar[str] = ""


class Progressing(Struct, frozen=True):
    """It makes progress, or waits for something that comes by itself.

    `unmade`: why more pods cannot be made. `lacks_pods_of`: uid of an object that events may explain. `reason`:
    Kubernetes' word for a fault of its pods; empty: none. `is_observed`: a controller has seen its newest spec.
    """

    why: str
    unmade: str = ""
    lacks_pods_of: str = ""
    reason: str = ""
    is_observed: bool = True
    is_a_count: ClassVar[bool] = False
    word: ClassVar[HealthWord] = HealthWord.PROGRESSING


class Degraded(Struct, frozen=True):
    """It does not work. As Progressing. `is_over`: it ended and failed. `is_a_count`: pods lack, perhaps starting."""

    why: str
    unmade: str = ""
    lacks_pods_of: str = ""
    reason: str = ""
    is_over: bool = False
    is_a_count: bool = False
    is_observed: ClassVar[bool] = True
    word: ClassVar[HealthWord] = HealthWord.DEGRADED


class Missing(Struct, frozen=True):
    """It is wanted and not there."""

    word: ClassVar[HealthWord] = HealthWord.MISSING
    why: ClassVar[str] = "it is not there"


class UnknownHealth(Struct, frozen=True):
    """Unknown."""

    why: str
    word: ClassVar[HealthWord] = HealthWord.UNKNOWN


HealthState = Healthy | Progressing | Degraded | Missing | UnknownHealth


class ObjectState(NamedTuple):
    """One object in one cluster. `is_wanted`: there is a manifest of it in force."""

    sync: SyncState
    health: HealthState
    is_wanted: bool = True


SYNCED: Final = Synced()
HEALTHY: Final = Healthy()
MISSING: Final = Missing()
NOMINAL: Final = ObjectState(SYNCED, HEALTHY)
"""The state of nearly every object: counted alone."""

Changes = Mapping[Copy, tuple[Change, ...]]

_ASKED_FIRST = "it was not asked yet"


class StateFacts(Struct, frozen=True, kw_only=True):
    """The facts after a round. `changes`: pending. `health`: of unhealthy copies. `last_contact`: RFC 3339."""

    schedule: Schedule
    manifests: Mapping[str, Mapping[Identity, Manifest]]
    members: Mapping[str, Member]
    changes: Changes = field(default_factory=dict)
    problems: Mapping[Identity, tuple[Problem, ...]] = field(default_factory=dict)
    failures: Mapping[Copy, Failed] = field(default_factory=dict)
    health: Mapping[str, Mapping[Identity, HealthState]] = field(default_factory=dict)
    fights: Mapping[Copy, Fought] = field(default_factory=dict)
    journal: JournalSnapshot = field(default_factory=JournalSnapshot)
    last_contact: Mapping[str, str] = field(default_factory=dict)
    frozen: Mapping[Copy, str] = field(default_factory=dict)
    """The reasons why undesired copies stay: a broken file may want them."""
    unlisted: Mapping[str, tuple[Unlisted, ...]] = field(default_factory=dict)
    """By cluster the kinds that cannot be read there."""
    held_digest: str = ""
    """Lets pass what the guards hold; empty: they hold nothing."""
    held_by: Mapping[Copy, str] = field(default_factory=dict)
    """By copy that waits for a person the revision with which that began."""
    left_with: Mapping[Identity, str] = field(default_factory=dict)
    """By object that goes after the last stage of its Rollout the first release that lacks it."""
    elsewhere: frozenset[str] = frozenset()
    """Clusters of the store that belong to another process: nothing is reported about them."""

    def why_away(self, cluster: str) -> str | None:
        """Return why a cluster of the store is unknown; None: it was read."""
        member = self.members.get(cluster)
        if isinstance(member, Read):
            return None
        return member.why if isinstance(member, NotRead) else _ASKED_FIRST

    def why_frozen(self, cluster: str, identity: Identity) -> str | None:
        """Return the reason of a broken file that keeps a copy as it is; None: none does. Its facts are older."""
        reach = self.schedule.claims.frozen.get(identity)
        return reach.why if reach is not None else self.frozen.get((cluster, identity))

    def is_left(self, cluster: str) -> bool:
        """Return whether the store has no document of the cluster."""
        return cluster not in self.schedule.fleet.clusters
