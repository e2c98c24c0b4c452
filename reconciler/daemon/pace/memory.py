"""What rounds hand on to later ones, beside the state: all of it is lost with the process, and may be."""

from __future__ import annotations

from msgspec import Struct, field

from reconciler.daemon.pace.away import Away
from reconciler.daemon.pace.beliefs import Beliefs
from reconciler.daemon.pace.fights import Fights
from reconciler.daemon.pace.healths import Healths
from reconciler.daemon.pace.kind_faults import KindFaults
from reconciler.daemon.pace.lanes import Lanes
from reconciler.daemon.pace.restores import Restores
from reconciler.daemon.pace.unfinished import Unfinished


class Memory(Struct, frozen=True, kw_only=True):
    """What the steps of the control loop share."""

    lanes: Lanes
    beliefs: Beliefs = field(default_factory=Beliefs)
    fights: Fights = field(default_factory=Fights)
    unfinished: Unfinished = field(default_factory=Unfinished)
    away: Away = field(default_factory=Away)
    kind_faults: KindFaults = field(default_factory=KindFaults)
    healths: Healths = field(default_factory=Healths)
    restores: Restores = field(default_factory=Restores)
