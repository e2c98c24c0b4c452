"""In-memory caches; safe to lose."""

from __future__ import annotations

from collections.abc import Callable

from reconciler.adapters.clock import Clock
from reconciler.daemon.pace.away import Away
from reconciler.daemon.pace.beliefs import Beliefs
from reconciler.daemon.pace.fights import Fights
from reconciler.daemon.pace.healths import Healths
from reconciler.daemon.pace.kind_faults import KindFaults
from reconciler.daemon.pace.lanes import Lanes
from reconciler.daemon.pace.restores import Restores
from reconciler.daemon.pace.unfinished import Unfinished


class Memory:
    """The shared caches of the control loop's steps."""

    def __init__(self, clock: Clock, wake: Callable[[], None]) -> None:
        """Nothing is known. `wake`: called when a lane ends, or something fares otherwise."""
        self.lanes, self.healths = Lanes(wake), Healths(wake)
        self.beliefs, self.fights, self.restores = Beliefs(), Fights(), Restores()
        self.unfinished = Unfinished(clock)
        self.away, self.kind_faults = Away(clock), KindFaults(clock)
