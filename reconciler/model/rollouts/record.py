"""The record of one cluster in one rollout, and observations of it."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field


class Record(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The active revision of a cluster, its start and its completion. Times are RFC 3339 UTC.

    `revision` empty: nothing of the rollout was written there yet. `completed_at` empty: in progress. `steady_since`:
    since when the gate has been met without a break; kept by the journal alone. `turn`, `turn_at`: the revision whose
    turn came while the cluster could not be changed, and the time of that.
    """

    revision: str = ""
    begun_at: str = ""
    completed_at: str = ""
    steady_since: str = ""
    turn: str = ""
    turn_at: str = ""


class Met(Struct, frozen=True, tag="met"):
    """Every copy is in step with `revision` and meets the gate. `since`: RFC 3339; empty: unknown.

    A later `since` than the recorded one proves a break between two looks.
    """

    revision: str
    since: str = ""


class Unmet(Struct, frozen=True, tag="unmet"):
    """The gate is not met, and why."""

    why: str


class Unseen(Struct, frozen=True, tag="unseen"):
    """The cluster does not report, and why. That is not yet, and never met."""

    why: str


Sight = Met | Unmet | Unseen


class Facts(Struct, frozen=True, kw_only=True):
    """Other inputs of the active revision.

    `order`: the revisions of the branch that matter, the oldest first. One that is not in it is older than all of them.
    `missing`: recorded or pinned revisions that the object database does not have. `pinned`: commits by the texts of
    pins; a missing text names no existing commit. `away`: clusters that cannot be changed now, suspended or
    unreachable, with the reason. `closed`: clusters that a window of the fleet closes, with RFC 3339 of the end; empty:
    no end is known.
    """

    order: tuple[str, ...] = ()
    missing: frozenset[str] = frozenset()
    pinned: Mapping[str, str] = field(default_factory=dict)
    away: Mapping[str, str] = field(default_factory=dict)
    closed: Mapping[str, str] = field(default_factory=dict)


class Begin(Struct, frozen=True, tag="begin"):
    """A revision becomes active in a cluster. To be recorded in the cluster before anything of it is written."""

    cluster: str
    revision: str
    at: str


class Turn(Struct, frozen=True, tag="turn"):
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


RecordChange = Begin | Turn | Steady | Complete
