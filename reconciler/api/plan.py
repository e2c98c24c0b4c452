"""Differences and the ordered set of them."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final

from msgspec import Struct

from reconciler.api.binding import Reason, TargetCluster
from reconciler.api.content import Content, ContentWithSecrets, JsonObject, Step
from reconciler.api.problem import NOWHERE, Problem, Source
from reconciler.api.refs import GVK, Copy, Identity, PolicyRef
from reconciler.api.rollout_progress import RolloutPlan


class Action(StrEnum):
    """A change of one object in one cluster."""

    CREATE = "create"
    UPDATE = "update"
    REPLACE = "replace"
    DELETE = "delete"
    RELEASE = "release"
    ADOPT = "adopt"

    @property
    def done(self) -> str:
        """Return its past participle: `created`, `updated`, `adopted`."""
        return f"{self}d" if self.endswith("e") else f"{self}ed"


class Cause(StrEnum):
    """The cause of a change."""

    DECLARED = "declared"
    """The store has a new declaration."""
    REMOVED = "removed"
    """The template or field left the store."""
    DRIFT = "drift"
    """Somebody else changed a field that is ours."""
    PLACEMENT = "placement"
    """The placement moved."""
    OVERRIDE = "override"
    """Only an override changed."""
    ADOPTION = "adoption"
    """An object that was not ours becomes ours."""
    OWNERSHIP = "ownership"
    """Only our marks change: another policy or owner took over."""
    POLICY = "policy"
    """The policy left, or no longer selects the template."""
    DEPENDENCY = "dependency"
    """A dependency is no longer needed."""
    COMPLETED = "completed"
    """A hook has run, and says that it is deleted then; it stays desired, and its run stays recorded."""
    SIDE_EFFECT = "side-effect"
    """The API server, a webhook or a default changes it along with ours; never a reason to write."""


class FieldOwner(Struct, frozen=True, kw_only=True):
    """Another field manager that holds a field now, with the time of its last write (RFC 3339)."""

    manager: str
    operation: str = ""
    time: str = ""


class MissingField:
    """The value of a field that is not there; distinct from null."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "MISSING"


MISSING = MissingField()


class FieldChange(Struct, frozen=True, kw_only=True):
    """One field: its path as people write it (`spec.ports[port=80,protocol=TCP].nodePort`), before and after.

    `before` and `after` are JSON values or MISSING; they are canonical, not yet redacted.
    """

    path: str
    before: Any
    after: Any
    cause: Cause = Cause.DECLARED
    owner: FieldOwner | None = None


class Engine(StrEnum):
    """The engine that found a difference. Source: design#three-way-diff; design#dry-run; design#offline-diff."""

    THREE_WAY = "T"
    """The comparison of field ownership, schema and live object."""
    SERVER_SIDE = "S"
    """An API server that is asked for a dry run, or has to be."""
    OFFLINE = "O"
    """The comparison of two revisions, without a cluster."""


class HeldBy(StrEnum):
    """The actor that must act before a held change is made."""

    GUARD = "guard"
    """A person, who confirms it: it is one of too many deletions, or one that takes data along."""
    MOVE = "move"
    """Nobody: it is made once other copies serve."""
    SUSPENDED = "suspended"
    """A person, who ordered that nothing be written, or a policy that says so."""
    REPLACEMENT = "replacement"
    """A person, who allows that the object is deleted and created."""
    SETTINGS = "settings"
    """Nobody: the store says that drift is left as it is."""
    WINDOW = "window"
    """Nobody: it is made once a window of the fleet opens."""
    STAGE = "stage"
    """Nobody here: it is made with the turn of its cluster in a Rollout."""
    OTHERS = "others"
    """Nobody: it is made once another object has come or left, or the API server accepts it."""


FORMER_COUNTS: Final = (
    "; it was loosened: the former one counts until the next revision, or with the spec.review.confirm of its review"
)
"""The end of a reason: what holds a change is taken away by the revision that follows."""

NEEDS_PERSON: Final = frozenset({HeldBy.GUARD, HeldBy.SUSPENDED, HeldBy.REPLACEMENT})


class Hold(Struct, frozen=True):
    """The reason why a change is not made now, as the end of a sentence about the object ("waits for m2 healthy").

    `order`: the scope of the person's order that suspends it; empty: no order does.
    """

    by: HeldBy
    why: str
    order: str = ""


class Change(Struct, frozen=True, kw_only=True):
    """One difference between the desired and the live object, in one cluster.

    `hold`: why it is not made now; None: it may be made. `manifest`: sent by create, update, adopt and replace, and
    recorded of a hook that is deleted. `uid` and `resource_version`: preconditions, if set. `engine`: the engine that
    computed the fields: T (three-way), S (server dry run), O (offline).
    """

    action: Action
    cluster: str
    gvk: GVK
    identity: Identity
    cause: Cause
    source: Source = NOWHERE
    hold: Hold | None = None
    fields: tuple[FieldChange, ...] = ()
    manifest: JsonObject | None = None
    before: JsonObject | None = None
    """The object as it is, where one was compared."""
    declared: JsonObject | None = None
    """The manifest to record if `manifest` also has fields of others; None: the same."""
    manifest_digest: str = ""
    """Of the manifest as rendered, before fields were yielded to others."""
    uid: str = ""
    resource_version: str = ""
    steady_path: tuple[str, ...] = ()
    """Replicas that `manifest` carries only so that they stay: if another number is there by then, nothing is sent."""
    removed_paths: tuple[str, ...] = ()
    """Fields to be taken away explicitly, since ownership of them moved to another manager."""
    in_the_way: tuple[FieldChange, ...] = ()
    """Entries of others that go as well where the API server refuses ours beside them."""
    predecessors: tuple[str, ...] = ()
    """Field managers whose fields become ours first: those of earlier names of the fleet."""
    reason: Reason | None = None
    engine: Engine = Engine.THREE_WAY
    confirm: str = ""
    """The reason why a person must confirm it, whatever the limits of the guards; empty: nobody need."""
    after: frozenset[Identity] = frozenset()
    """Objects that must leave the cluster before: while one of them cannot, this change waits."""
    is_sealed: bool = False
    """Values of the object are or were encrypted in the store: all of them are redacted, as those of a Secret."""
    guarded: bool = False
    """Counts against the deletion guards: an edit of the store caused this deletion or release."""
    policy_lost: str = ""
    """The policy that no longer claims it, in words: `policy web removed`; empty: none left it."""
    powers: tuple[tuple[str, str], ...] = ()
    """Of a redacted change that makes an object: what it runs and may do, by aspect."""
    stage: str = ""
    """`ROLLOUT/STAGE` whose turn it waits for, or has; empty: it is made everywhere at once."""

    @property
    def copy(self) -> Copy:
        """The object in its cluster."""
        return self.cluster, self.identity

    @property
    def held(self) -> str | None:
        """Return in words why it is not made now; None: it may be made."""
        return self.hold.why if self.hold is not None else None

    @property
    def waits_for_person(self) -> bool:
        """Return whether it is made only after a person has acted."""
        return self.hold is not None and self.hold.by in NEEDS_PERSON


class Manifest(Struct, frozen=True, gc=False):
    """A template as rendered for one cluster, marks included.

    `content` is shared with all clusters with an equal one; `overrides` name the rules that changed it. There is one
    for every object of the fleet, and none refers back to itself, so the garbage collector need not look at them.
    """

    cluster: str
    gvk: GVK
    identity: Identity
    content: Content
    source: Source
    policy: PolicyRef | None
    overrides: tuple[str, ...] = ()
    replicas_yielded: bool = False
    """An autoscaler of the store or of the cluster decides about the replicas there: they are sent at creation, left
    to it afterwards, and never compared."""

    @property
    def body(self) -> JsonObject:
        """The object as it is sent."""
        return self.content.tree or self.content.body()

    @property
    def digest(self) -> str:
        """The digest of the body; of one that was decrypted, that of its ciphertext."""
        return self.content.digest()

    @property
    def leaves(self) -> tuple[tuple[Step, ...], ...]:
        """Return the paths of decrypted values in the body."""
        return self.content.leaves if isinstance(self.content, ContentWithSecrets) else ()


class PlacementChange(Struct, frozen=True, kw_only=True):
    """A placement before and after; equal ones are not listed."""

    gvk: GVK
    identity: Identity
    before: tuple[TargetCluster, ...]
    after: tuple[TargetCluster, ...]
    reasons: tuple[Reason, ...] = ()
    overridden: tuple[TargetCluster, ...] = ()
    """Clusters where an override replaces the assigned number of replicas, with its number."""


class NotEvaluated(Struct, frozen=True, kw_only=True):
    """A resource that a plan cannot evaluate, since its placement depends on unknown facts.

    `why`: the missing facts. `notes`: differences between the revisions, a sentence fragment each. `fields`: of its
    template, `policy_fields`: of the policy that governs it in both.
    """

    gvk: GVK
    identity: Identity
    source: Source
    why: str
    notes: tuple[str, ...]
    fields: tuple[FieldChange, ...] = ()
    policy_fields: tuple[FieldChange, ...] = ()


class Direction(StrEnum):
    """The direction of a change of the settings, as seen from the clusters."""

    LOOSENS = "loosens"
    """More may happen to the clusters, or less is kept equal, than before."""
    CONFIRMS = "confirms"
    """A person lets something pass: a confirmation, an approval."""
    TIGHTENS = "tightens"
    NEUTRAL = "neutral"
    PROMOTES = "promotes"
    """No setting: a field of one folder that takes over what another folder has, or stays on purpose."""


class SettingChange(Struct, frozen=True, kw_only=True):
    """A field of a document that steers the service, between two revisions. Source: design#settings-plan.

    `document`: `Fleet shop`, `Rollout web`, or the path of an ignore file. `path`: empty for a whole document. `before`
    and `after`: JSON values or MISSING, not yet redacted. `meaning`: the consequence for clusters, in words.
    """

    source: Source
    document: str
    path: str
    before: Any
    after: Any
    meaning: str
    direction: Direction
    is_secret: bool = False
    """Its values may be those of a Secret."""
    is_always_held: bool = False
    """A person must confirm it, whatever `spec.review.loosening` says."""
    held: bool = False
    """It waits for a person's confirmation."""


class Confirmed(Struct, frozen=True, kw_only=True):
    """Confirmed changes that are not made yet: action, cluster, object. `digest`: the confirmation of all of them."""

    digest: str = ""
    changes: frozenset[tuple[str, str, Identity]] = frozenset()


NOT_CONFIRMED: Final = Confirmed()


class Plan(Struct, frozen=True, kw_only=True):
    """An ordered set of changes.

    `waves` hold indexes into `changes`; a wave starts when the one before has ended in the same cluster. Held
    changes are in no wave. `is_complete` is False when a cluster could not be read, or something was not judged.
    """

    base: str
    head: str
    changes: tuple[Change, ...] = ()
    waves: tuple[tuple[int, ...], ...] = ()
    placements: tuple[PlacementChange, ...] = ()
    unjudged: tuple[NotEvaluated, ...] = ()
    problems: tuple[Problem, ...] = ()
    is_complete: bool = True
    held_digest: str = ""
    """Hash of the sorted held changes: the value of `spec.guards.confirm` that lets them through."""
    confirmed: frozenset[Copy] = frozenset()
    """Copies, by cluster and identity, whose changes the guards would hold, had a person not confirmed them."""
    left: Confirmed = NOT_CONFIRMED
    """Confirmed changes that are not made yet."""
    rollouts: tuple[RolloutPlan, ...] = ()
    """Its staged changes; empty if the store has no Rollout."""
    settings: tuple[SettingChange, ...] = ()
    """Settings that differ between two revisions; those that loosen come first."""
    settings_digest: str = ""
    """Hash of the settings that are held: the value of `spec.review.confirm` that lets them through."""
