"""What must be remembered between rounds: the rows of the journal as values."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from msgspec import Struct, field

from reconciler.model.plan import Action
from reconciler.model.policy import Flavor
from reconciler.model.problem import NOWHERE, Source
from reconciler.model.refs import GVK, Identity
from reconciler.model.tree import JsonObject


class AppliedRow(Struct, frozen=True, kw_only=True):
    """What was last applied for one object in one cluster, as the API server acknowledged it.

    `manifest_digest` is of the manifest as sent; `recorded` is that manifest as `stages.recorded` writes it down
    (no Secret value in it), None where only the marks are known. `policy`: the claim as text
    (`PropagationPolicy demo/web`), empty for what no policy claims. `replicas`: the assigned share.
    """

    cluster: str
    gvk: GVK
    identity: Identity
    uid: str = ""
    manifest_digest: str = ""
    recorded: JsonObject | None = None
    policy: str = ""
    keep: bool = True
    """preserveResourcesOnDeletion as it was in force."""
    flavor: Flavor = Flavor.ACK
    replicas: int | None = None
    dependency: bool = False
    """It followed an owner under propagateDeps."""
    finished: bool = False
    """A Job or Pod that has run to its end."""
    revision: str = ""
    source: Source = NOWHERE
    established: int | None = None
    """The replicas with which this object was last seen available while nothing waited for it, 0 for what has none.

    None: it never was. Source: `stages.moves`.
    """


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
"""What is there after such a request and was not, or not as ours, before."""


class IntentEnd(StrEnum):
    """How an intent ended. An intent without an outcome is open: the object must be looked at first."""

    DONE = "done"
    FAILED = "failed"
    SUPERSEDED = "superseded"
    """Never sent, or overtaken: a later look at the object decided anew."""


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


class Loss(Struct, frozen=True, kw_only=True, gc=False):
    """A copy that an edit of the store has taken out of a cluster, deleted or released. `time`: RFC 3339 UTC."""

    cluster: str
    identity: Identity
    time: str


class Losses(Struct, frozen=True, kw_only=True):
    """What the guards count. `held_since`: cluster to the RFC 3339 time since which they hold something there."""

    made: tuple[Loss, ...] = ()
    held_since: Mapping[str, str] = field(default_factory=dict)


class HoldRecord(Struct, frozen=True, kw_only=True):
    """A mark of who holds the fleet in a cluster, as this journal wrote it or, not confirmed, was about to."""

    epoch: int
    token: str
    is_confirmed: bool = True


class Event(Struct, frozen=True, kw_only=True):
    """An entry of the audit trail. `time` is RFC 3339 UTC, `round` the number of the round, 0 outside of one."""

    round: int
    time: str
    kind: str
    """A stable kebab-case name: `applied`, `cluster-unreachable`, `descheduled`."""
    subject: str
    """What it is about, as subjects are written everywhere: `Deployment demo/web @ m1`."""
    data: Mapping[str, Any] = field(default_factory=dict)


class RoundRecord(Struct, frozen=True, kw_only=True):
    """A round that ended with everything read and recorded."""

    number: int
    revision: str
    time: str
    summary: Mapping[str, Any] = field(default_factory=dict)


class SuspensionRecord(Struct, frozen=True, kw_only=True):
    """A person's order to stop writing.

    `scope`: `fleet`, `cluster NAME`, or a subject. `until`: RFC 3339 UTC, empty: until it is resumed.
    """

    scope: str
    reason: str = ""
    who: str = ""
    until: str = ""
