"""What the processes of a fleet tell each other of its Rollouts, where several apply and one decides."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from reconciler.model.rollouts.progress import Progress
from reconciler.model.rollouts.record import Record, Sight
from reconciler.prepared import prepared


class Report(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A Rollout in a cluster, as the process tells that applies there. `sight` None: nothing is on its way there."""

    record: Record = Record()
    sight: Sight | None = None


Records = Mapping[str, Mapping[str, Record]]
Reports = Mapping[str, Mapping[str, Report]]
"""By Rollout and cluster."""


@prepared
class RolloutAccount(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one process tells. `revision`: HEAD, by which it knows the Rollouts.

    Who decides tells `progress`, by Rollout, and `pending`: where another revision begins than is recorded there, what
    it was told is recorded; it begins only where that is still so.
    Who applies tells `clusters`, with why each cannot be changed now (empty: it can), and how the Rollouts are there.
    """

    revision: str = ""
    progress: Mapping[str, Progress] = field(default_factory=dict)
    pending: Records = field(default_factory=dict)
    clusters: Mapping[str, str] = field(default_factory=dict)
    reports: Reports = field(default_factory=dict)


NO_ROLLOUTS = RolloutAccount()


class ToldRollouts(Struct, frozen=True, kw_only=True):
    """What was read of the others. `accounts`: by shard, of the leader under the empty name.

    `unled`: shards to which nobody applies now. `left`: what the last leader told.
    """

    accounts: Mapping[str, RolloutAccount] = field(default_factory=dict)
    unled: frozenset[str] = frozenset()
    left: RolloutAccount = NO_ROLLOUTS


NOTHING_TOLD = ToldRollouts()
