"""Shared parts of the control loop and its steps."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Awaitable, Callable, Collection, Hashable, Mapping

from msgspec import Struct

from reconciler.adapters.clock import Clock
from reconciler.adapters.journal.journal import Journal
from reconciler.adapters.kube.kubeconfig import MemberConfig
from reconciler.adapters.kube.members import Members, UserAgent
from reconciler.adapters.sources.source import StoreSource
from reconciler.daemon import timing
from reconciler.daemon.loop.store_in_force import StoreInForce
from reconciler.daemon.observing.cluster_filter import ClusterFilter
from reconciler.daemon.observing.opening import LaterKeys, Opener, no_keys
from reconciler.daemon.round.hold import Holder
from reconciler.daemon.vitals.histograms import RoundPhase
from reconciler.daemon.vitals.vitals import Vitals
from reconciler.errors import ConfigurationError
from reconciler.interpreters.registry import Registry
from reconciler.model.fleet import Fleet, HighAvailability
from reconciler.model.refs import Identity


def _never(ha: HighAvailability | None) -> bool:
    return False


def _unchanged() -> Hashable:
    return None


async def _tell_nobody() -> None:
    pass


ConfigsOf = Callable[[Fleet], Mapping[str, MemberConfig | ConfigurationError]]
"""Function from a fleet to the access of its members."""


class Parts(Struct, frozen=True, kw_only=True):
    """All of it is open."""

    source: StoreSource
    store: StoreInForce
    journal: Journal
    holder: Holder
    opened: Members
    """The session, with the clusters that the loop begins with; those of now are in its state."""
    configs_of: ConfigsOf
    agent: UserAgent
    clock: Clock
    interpreters: Registry
    vitals: Vitals
    cluster_filter: ClusterFilter = ClusterFilter()
    """The clusters that it applies to."""
    open: Opener = no_keys
    """Decrypts what sops encrypted."""
    is_other_part: Callable[[HighAvailability | None], bool] = _never
    """Returns whether `spec.ha` differs from the options of this process."""
    tell_revision: Callable[[], Awaitable[None]] = _tell_nobody
    """Have the process that acts next know by which revision this one acts from now on."""
    access_stamp: Callable[[], Hashable] = _unchanged
    """Another value once the files were written that say how clusters are reached."""
    later_keys: LaterKeys | None = None
    """Tells what could be decrypted only later; None: all is known at once."""

    def follow_keys(self, mark: Callable[[Collection[Identity]], None]) -> None:
        """Have objects marked, in the loop that runs now, that could be decrypted only after they were asked for."""
        running = asyncio.get_running_loop()

        def told(identities: Collection[Identity]) -> None:
            # It comes from another thread, perhaps when nobody runs any more.
            with contextlib.suppress(RuntimeError):
                running.call_soon_threadsafe(mark, identities)

        if self.later_keys is not None:
            self.later_keys.listen(told)

    def ask_keys_again(self) -> None:
        """Somebody says that keys are there now."""
        if self.later_keys is not None:
            self.later_keys.again()

    def counted(self, phase: RoundPhase, items: int, total: int) -> Callable[[], None]:
        """Begin a phase in which each call is a sign of progress that one more of `total` is done."""
        self.beat(phase, items)
        count = itertools.count(1)

        def progress() -> None:
            self.beat(phase, items, f"{phase.text}, {next(count)} of {total}")

        return progress

    def beat(self, phase: RoundPhase, items: int = 0, text: str = "") -> None:
        """Give a sign of progress. `items`: worked on before the next one. `text`: what is shown; empty: the phase."""
        self.vitals.phase = text or phase.text
        self.vitals.allowance_s = items * timing.ITEM_S
        self.vitals.heartbeat_s = now_s = self.clock.monotonic_s()
        self.vitals.phases.turn(phase, now_s)
