"""Differences and the ordered set of them."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from msgspec import Struct

from reconciler.model.binding import Reason, TargetCluster
from reconciler.model.content import Content, Revealed
from reconciler.model.problem import NOWHERE, Problem, Source
from reconciler.model.refs import GVK, Identity, PolicyRef
from reconciler.model.rollouts.plan import RolloutPlan
from reconciler.model.tree import JsonObject, Step


class Action(StrEnum):
    """What is done to one object in one cluster."""

    CREATE = "create"
    UPDATE = "update"
    REPLACE = "replace"
    DELETE = "delete"
    RELEASE = "release"
    ADOPT = "adopt"

    @property
    def done(self) -> str:
        """What an object then is: `created`, `updated`, `adopted`."""
        return f"{self}d" if self.endswith("e") else f"{self}ed"


class Cause(StrEnum):
    """Why a change is due."""

    DECLARED = "declared"
    """The store says something new."""
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
    SIDE_EFFECT = "side-effect"
    """The API server, a webhook or a default changes it along with what we change; never a reason to write."""


class FieldOwner(Struct, frozen=True, kw_only=True):
    """Another field manager that holds a field now, with the time of its last write (RFC 3339)."""

    manager: str
    operation: str = ""
    time: str = ""


class Missing:
    """The value of a field that is not there; distinct from null."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "MISSING"


MISSING = Missing()


class FieldChange(Struct, frozen=True, kw_only=True):
    """One field: its path as people write it (`spec.ports[port=80,protocol=TCP].nodePort`), before and after.

    `before` and `after` are JSON values or MISSING; they are canonical, not yet masked.
    """

    path: str
    before: Any
    after: Any
    cause: Cause = Cause.DECLARED
    owner: FieldOwner | None = None


class Engine(StrEnum):
    """What told a difference. Source: design#three-way-diff; design#dry-run; design#offline-diff."""

    THREE_WAY = "T"
    """The comparison of field ownership, schema and live object."""
    SERVER_SIDE = "S"
    """An API server that is asked for a dry run, or has to be."""
    OFFLINE = "O"
    """The comparison of two revisions, without a cluster."""


class Change(Struct, frozen=True, kw_only=True):
    """One difference between what should be and what is, in one cluster.

    `held` says why it is not done now ("waits for m2 healthy"), None when it may be. `manifest` is what is sent by
    create, update, adopt and replace. `uid` and `resource_version` are preconditions where they are set.
    `engine` names what computed the fields: T (three-way), S (server dry run), O (offline).
    """

    action: Action
    cluster: str
    gvk: GVK
    identity: Identity
    cause: Cause
    source: Source = NOWHERE
    held: str | None = None
    fields: tuple[FieldChange, ...] = ()
    manifest: JsonObject | None = None
    before: JsonObject | None = None
    """The object as it is, where one was compared."""
    declared: JsonObject | None = None
    """What the journal keeps where `manifest` also has what others added; None: the same."""
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
    previous_names: tuple[str, ...] = ()
    """Earlier names of the fleet, whose marks count as ours."""
    reason: Reason | None = None
    engine: Engine = Engine.THREE_WAY
    confirm: str = ""
    """Why a person must let it pass, whatever the limits of the guards are; empty: nobody need."""
    after: frozenset[Identity] = frozenset()
    """What has to leave the cluster before: where one of them cannot, this is not done either."""
    is_sealed: bool = False
    """Values of the object are or were encrypted in the store: all of them are masked, as those of a Secret."""
    guarded: bool = False
    """Counts against the deletion guards: an edit of the store caused this deletion or release."""
    stage: str = ""
    """`ROLLOUT/STAGE` whose turn it waits for, or has; empty: it is made everywhere at once."""


class Manifest(Struct, frozen=True, gc=False):
    """A template as rendered for one cluster, marks included.

    `content` is shared with all clusters that get the same; `overrides` name what changed it. There is one for every
    object of the fleet, and none refers back to itself, so the garbage collector need not look at them.
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
        """Where decrypted values stand in the body."""
        return self.content.leaves if isinstance(self.content, Revealed) else ()


class PlacementChange(Struct, frozen=True, kw_only=True):
    """A placement before and after; equal ones are not listed."""

    gvk: GVK
    identity: Identity
    before: tuple[TargetCluster, ...]
    after: tuple[TargetCluster, ...]
    reasons: tuple[Reason, ...] = ()
    overridden: tuple[TargetCluster, ...] = ()
    """Where an override makes another number of replicas of those that are assigned, and which."""


class Unjudged(Struct, frozen=True, kw_only=True):
    """A resource of which a plan does not say what changes, since its placement rests on what is not known.

    `why`: what is lacking. `notes`: what differs between the revisions, a sentence fragment each. `fields`: of its
    template, `policy_fields`: of the policy that governs it in both.
    """

    gvk: GVK
    identity: Identity
    source: Source
    why: str
    notes: tuple[str, ...]
    fields: tuple[FieldChange, ...] = ()
    policy_fields: tuple[FieldChange, ...] = ()


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
    unjudged: tuple[Unjudged, ...] = ()
    problems: tuple[Problem, ...] = ()
    is_complete: bool = True
    held_digest: str = ""
    """Hash of the sorted held changes: what `spec.guards.confirm` must carry to let them through."""
    confirmed: frozenset[tuple[str, Identity]] = frozenset()
    """Copies, by cluster and identity, whose changes the guards would hold, had a person not confirmed them."""
    rollouts: tuple[RolloutPlan, ...] = ()
    """What it does in stages; empty where the store has no Rollout."""
