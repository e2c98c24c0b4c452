"""State between rounds: the rows of the journal as values."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, NamedTuple

from msgspec import Struct, field

from reconciler.api.clusters import Observations
from reconciler.api.content import JsonObject
from reconciler.api.fleet import Guards, LooseningHold
from reconciler.api.plan import NOT_CONFIRMED, Action, Confirmed
from reconciler.api.policies import Flavor, Suspension
from reconciler.api.problem import NOWHERE, Source
from reconciler.api.refs import GVK, Identity
from reconciler.api.rollout_progress import Record
from reconciler.api.rollouts import FleetWindow


class AppliedRow(Struct, frozen=True, kw_only=True):
    """The last application of one object in one cluster, as the API server acknowledged it.

    `manifest_digest` is of the manifest as sent; `recorded` is that manifest as `ownership.adoption` writes it down (no
    Secret value in it), None if only the marks are known. `uid`: empty if we deleted the object since. `policy`: the
    claim as text (`PropagationPolicy demo/web`), empty if unclaimed. `replicas`: the assigned share.
    """

    cluster: str
    gvk: GVK
    identity: Identity
    uid: str = ""
    manifest_digest: str = ""
    recorded: JsonObject | None = None
    policy: str = ""
    keep: bool = True
    """The active preserveResourcesOnDeletion."""
    flavor: Flavor = Flavor.ACK
    replicas: int | None = None
    dependency: bool = False
    """It followed an owner under propagateDeps."""
    finished: bool = False
    """A Job or Pod that has run to its end."""
    failed: bool = False
    """A hook that was deleted after it failed: it is `finished`, and what waits for it waits."""
    revision: str = ""
    source: Source = NOWHERE
    established: int | None = None
    """The number of replicas when this object was last fully available, 0 without replicas.

    None: it never was. Source: `observations.waiting_moves`."""
    base: int | None = None
    """The target number of replicas at the last moment without pending writes, if not all were available then.

    None: it is established with as many, or there was no such moment. Source: `observations.waiting_moves`."""


class Intent(Struct, frozen=True, kw_only=True):
    """A request that is about to be sent. `uid` is empty for a create."""

    cluster: str
    gvk: GVK
    identity: Identity
    action: Action
    manifest_digest: str = ""
    uid: str = ""
    revision: str = ""


ARRIVES = (Action.CREATE, Action.ADOPT, Action.REPLACE)
"""Actions that make an object exist as ours."""


class IntentEnd(StrEnum):
    """The end of an intent. An intent without an outcome is open: the object must be read first."""

    DONE = "done"
    FAILED = "failed"
    SUPERSEDED = "superseded"
    """Never sent, or overtaken: a later comparison decided again."""


class IntentOutcome(NamedTuple):
    """The end of one intent. `detail` is fit for a user and scrubbed of secrets."""

    intent_id: int
    outcome: IntentEnd
    detail: str = ""


class EvictionRecord(Struct, frozen=True, kw_only=True):
    """A person's order that a resource leaves a cluster. `since` and `until`: RFC 3339 UTC; empty `until`: no end."""

    identity: Identity
    cluster: str
    since: str
    until: str = ""
    who: str = ""
    reason: str = ""


class RecordedLoss(Struct, frozen=True, kw_only=True, gc=False):
    """A copy that an edit of the store has taken out of a cluster, deleted or released. `time`: RFC 3339 UTC."""

    cluster: str
    identity: Identity
    time: str


class GuardsInForce(Struct, frozen=True, kw_only=True):
    """The limits by which a revision is judged: the stricter of its own and those of the revision before.

    Source: design#guards-stricter.
    """

    revision: str
    written: Guards
    """Of the revision itself."""
    active: Guards
    """`confirm` is empty where the confirmation is one of an earlier revision and does not count."""
    since: str
    """Since when the confirmation is written; RFC 3339 UTC."""
    holding: tuple[str, ...] = ()
    """Clusters in which a change is held or confirmed and not made: as long as there is one, looser limits wait."""
    windows: tuple[FleetWindow, ...] = ()
    """Of the revision itself, each with the names of its clusters."""
    former_windows: tuple[FleetWindow, ...] = ()
    """Of the revision before, as long as they count too."""
    suspensions: Mapping[str, Suspension] = field(default_factory=dict)
    """Of the policies of the revision itself, by their subjects."""
    former_suspensions: Mapping[str, Suspension] = field(default_factory=dict)
    """Of the revision before, as long as they count too."""
    approved: Mapping[str, str] = field(default_factory=dict)
    """Since when approvals without `until` are written, RFC 3339 by Rollout, stage and revision."""
    review_confirm: str = ""
    loosening: LooseningHold = LooseningHold.HOLD


class ReviewConfirmation(Struct, frozen=True, kw_only=True):
    """The `spec.review.confirm` of a revision, beside the one that stands for what the revision changes.

    `expected`: empty where nothing that it changes is held by a review. `counts`: lets pass what the revision loosens;
    empty where something of that is confirmed by nobody.
    """

    revision: str = ""
    written: str = ""
    expected: str = ""
    counts: str = ""


class Losses(Struct, frozen=True, kw_only=True):
    """The counts of the guards. `held_since`: cluster to the RFC 3339 time since which they hold something there."""

    recorded: tuple[RecordedLoss, ...] = ()
    held_since: Mapping[str, str] = field(default_factory=dict)
    confirmed: Confirmed = NOT_CONFIRMED
    guards: GuardsInForce | None = None
    """None: no revision has been judged yet, so that the first one counts alone."""


class HoldRecord(Struct, frozen=True, kw_only=True):
    """A mark of who holds the fleet in a cluster, as this journal wrote it or, not confirmed, was about to."""

    epoch: int
    token: str
    is_confirmed: bool = True


class EventKind(StrEnum):
    """The kind of an event. The names are stable: machines read them."""

    ADVANCED = "advanced"
    """Another revision of the store is active."""
    IN_STEP = "in-step"
    """Every object in every cluster is as in the active revision, for the first time since that became active."""
    SOURCE_FAILED = "source-failed"
    """The store cannot be read or followed."""
    SOURCE_RECOVERED = "source-recovered"
    STORE_BROKEN = "store-broken"
    """Documents of the active revision have errors. The last good content of its files stays active; other objects
    that they concern stay as they are."""
    STORE_MENDED = "store-mended"
    PLACED = "placed"
    """A placement is another one than before."""
    CONSTRAINED = "constrained"
    """A tick has capped or excluded a cluster."""
    FREED = "freed"
    """A constraint of a tick is over."""
    CREATED = "created"
    UPDATED = "updated"
    REPLACED = "replaced"
    DELETED = "deleted"
    RELEASED = "released"
    ADOPTED = "adopted"
    FAILED = "failed"
    """A change was tried and not made; once for each error, not for each attempt."""
    DRIFT = "drift"
    """Someone else changed or deleted our object; `outcome` is the reaction."""
    FIGHT_DETECTED = "fight-detected"
    """Somebody keeps undoing our changes."""
    FIGHT_OVER = "fight-over"
    OBJECT_REFUSED = "object-refused"
    """An object that is not ours is in the way."""
    WAY_IS_FREE = "way-is-free"
    HELD = "held"
    """Changes in a cluster wait for a person to confirm or to allow them."""
    HOLD_OVER = "hold-over"
    FROZEN = "frozen"
    """A broken file keeps objects as they are."""
    FREEZE_OVER = "freeze-over"
    DEGRADED = "degraded"
    """An object is unhealthy."""
    RECOVERED = "recovered"
    """It works again, or is gone."""
    CLUSTER_AWAY = "cluster-away"
    """A cluster cannot be read."""
    CLUSTER_BACK = "cluster-back"
    CLUSTER_WENT_BACK = "cluster-went-back"
    """A cluster is in an earlier state than it was: a backup of its etcd was put back."""
    KIND_UNREAD = "kind-unread"
    """A kind cannot be read in a cluster that answers."""
    KIND_READ = "kind-read"
    SUSPENDED = "suspended"
    RESUMED = "resumed"
    EVICTED = "evicted"
    READMITTED = "readmitted"
    ROLLOUT_BEGUN = "rollout-begun"
    """A revision of a rollout became active in a cluster."""
    ROLLOUT_COMPLETED = "rollout-completed"
    """A cluster met the gate of its stage for long enough."""
    ROLLOUT_DONE = "rollout-done"
    """A revision is completed in every stage."""
    ROLLOUT_PAUSED = "rollout-paused"
    """More clusters of a stage failed than it tolerates: nothing further begins."""
    PAUSE_OVER = "pause-over"
    APPROVAL_AWAITED = "approval-awaited"
    """A stage is done, and waits for a person's approval."""
    APPROVAL_OVER = "approval-over"
    """It is approved, or another revision took its place."""
    PINNED = "pinned"
    """A person set the active revision of a stage or a cluster."""
    UNPINNED = "unpinned"
    ASKED = "asked"
    """A person asked the service to look at everything now."""
    JOURNAL_FULL = "journal-full"
    """The disk of the journal has no room: nothing is applied. Recorded once there is room."""
    JOURNAL_HAS_ROOM = "journal-has-room"
    APPLY = "apply"
    """A person made the clusters equal to the store; the changes follow as events of their own."""
    REBUILT = "rebuilt"
    """The journal was rebuilt from the marks in the clusters."""
    TAKEN_OVER = "taken-over"
    """The same, and the fleet was taken over from the journal that held it."""


ORDERS: Final = frozenset(
    {
        EventKind.SUSPENDED,
        EventKind.RESUMED,
        EventKind.EVICTED,
        EventKind.READMITTED,
        EventKind.ASKED,
        EventKind.APPLY,
        EventKind.REBUILT,
        EventKind.TAKEN_OVER,
    }
)
"""Orders of persons. They are few, and kept for longer than the rest."""

MADE: Final = (
    EventKind.CREATED,
    EventKind.UPDATED,
    EventKind.REPLACED,
    EventKind.DELETED,
    EventKind.RELEASED,
    EventKind.ADOPTED,
    EventKind.DRIFT,
)
"""Events that decide whether an object is ours: other events about it do not change that."""

ENDS: Final = {
    EventKind.SOURCE_RECOVERED: EventKind.SOURCE_FAILED,
    EventKind.STORE_MENDED: EventKind.STORE_BROKEN,
    EventKind.FIGHT_OVER: EventKind.FIGHT_DETECTED,
    EventKind.WAY_IS_FREE: EventKind.OBJECT_REFUSED,
    EventKind.HOLD_OVER: EventKind.HELD,
    EventKind.FREEZE_OVER: EventKind.FROZEN,
    EventKind.RECOVERED: EventKind.DEGRADED,
    EventKind.CLUSTER_BACK: EventKind.CLUSTER_AWAY,
    EventKind.KIND_READ: EventKind.KIND_UNREAD,
    EventKind.PAUSE_OVER: EventKind.ROLLOUT_PAUSED,
    EventKind.APPROVAL_OVER: EventKind.APPROVAL_AWAITED,
    EventKind.UNPINNED: EventKind.PINNED,
    EventKind.JOURNAL_HAS_ROOM: EventKind.JOURNAL_FULL,
}
"""Each end with its beginning."""


class DriftOutcome(StrEnum):
    """The reaction to a drift."""

    HEALED = "healed"
    """It was set back to the state in the store."""
    HELD = "held"
    """It will be, once the hold ends."""
    LEFT = "left"
    """It stays: by the store, or in a write conflict."""


class Event(Struct, frozen=True, kw_only=True):
    """An entry of the audit trail. `time` is RFC 3339 UTC, `round` the number of the round, 0 outside of one."""

    round: int
    time: str
    kind: str
    """One of `EventKind`; journals of before may have others."""
    subject: str
    """Its subject in the common form: `Deployment demo/web @ m1`."""
    data: Mapping[str, Any] = field(default_factory=dict)


class SuspensionRecord(Struct, frozen=True, kw_only=True):
    """A person's order to stop writing.

    `scope`: `fleet`, `cluster NAME`, or a subject. `until`: RFC 3339 UTC, empty: until it is resumed.
    """

    scope: str
    reason: str = ""
    who: str = ""
    until: str = ""


Ledger = Mapping[str, Mapping[Identity, AppliedRow]]
"""By cluster the last apply of each object."""


class JournalSnapshot(Struct, frozen=True, kw_only=True):
    """The state that outlives a round; empty where there is no journal (a pull-request check).

    `has_history`: one complete round has been recorded, before which nothing is deleted. `record_key`: with which
    Secret values were hashed when they were recorded.
    """

    ledger: Ledger = field(default_factory=dict)
    observations: Observations = field(default_factory=Observations)
    """Previous placements and constraints; its clusters are not used."""
    released: Mapping[str, Mapping[Identity, str]] = field(default_factory=dict)
    """By cluster the uids of objects that were released there and may be taken back."""
    cluster_uids: Mapping[str, str] = field(default_factory=dict)
    record_key: bytes = b""
    has_history: bool = True
    suspensions: tuple[SuspensionRecord, ...] = ()
    losses: Losses = field(default_factory=Losses)
    """Counted by the guards beside the deletions that are due."""
    timers: Mapping[str, str] = field(default_factory=dict)
    """Since when applications have been unhealthy, by the names that `scheduler.tick` gives them."""
    rollouts: Mapping[str, Mapping[str, Record]] = field(default_factory=dict)
    """By Rollout and cluster the active record."""
    rollout_documents: Mapping[str, str] = field(default_factory=dict)
    """By Rollout the revision of the document by which it goes on."""
    former: str = ""
    """The revision of the last round."""
    confirmation: ReviewConfirmation = ReviewConfirmation()
    unanswered: tuple[Intent, ...] = ()
    """Requests whose answers never came: their objects have to be looked at."""

    def row(self, cluster: str, identity: Identity) -> AppliedRow | None:
        """Return the last apply of an object in a cluster; None: it was not applied there."""
        rows = self.ledger.get(cluster)
        return rows.get(identity) if rows else None
