"""The words of history: what an event of the audit trail may be. Each is documented in the machine formats."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class EventKind(StrEnum):
    """What happened. The names are stable: machines read them."""

    ADVANCED = "advanced"
    """Another revision of the store is in force."""
    SOURCE_FAILED = "source-failed"
    """The store cannot be read or followed."""
    SOURCE_RECOVERED = "source-recovered"
    STORE_BROKEN = "store-broken"
    """Documents of the revision in force have errors; what they concern stays as it is."""
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
    """Somebody else changed or deleted what is ours; `outcome` says what came of it."""
    FIGHT_DETECTED = "fight-detected"
    """Somebody keeps undoing what we do."""
    FIGHT_OVER = "fight-over"
    OBJECT_REFUSED = "object-refused"
    """An object that is not ours is in the way."""
    WAY_IS_FREE = "way-is-free"
    CLUSTER_AWAY = "cluster-away"
    """A cluster cannot be read."""
    CLUSTER_BACK = "cluster-back"
    SUSPENDED = "suspended"
    RESUMED = "resumed"
    EVICTED = "evicted"
    READMITTED = "readmitted"
    ASKED = "asked"
    """A person asked the service to look at everything now."""
    APPLY = "apply"
    """A person made the clusters equal to the store; the changes follow as events of their own."""
    REBUILT = "rebuilt"
    """The journal was built anew from the marks in the clusters."""
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
"""What persons did. There are few of them, and they are kept for longer than the rest."""

ENDS: Final = {
    EventKind.SOURCE_RECOVERED: EventKind.SOURCE_FAILED,
    EventKind.STORE_MENDED: EventKind.STORE_BROKEN,
    EventKind.FIGHT_OVER: EventKind.FIGHT_DETECTED,
    EventKind.WAY_IS_FREE: EventKind.OBJECT_REFUSED,
    EventKind.CLUSTER_BACK: EventKind.CLUSTER_AWAY,
}
"""What is the end of what."""


class DriftOutcome(StrEnum):
    """What came of a drift."""

    HEALED = "healed"
    """It was set back to what the store says."""
    HELD = "held"
    """It will be, once what holds the change lets it pass."""
    LEFT = "left"
    """It stays: the store says so, or somebody fights for it."""
