"""What the next round has to look at. Events and timers mark, rounds empty it."""

from __future__ import annotations

import asyncio

from msgspec import Struct, field

from reconciler.model.refs import Identity


class Agenda(Struct):
    """`capacity`: nodes and pods have to be read again; what follows from them is a matter of the decision.

    `reload`: somebody waits for the end of the round that does all this.
    """

    everything: bool = True
    identities: set[Identity] = field(default_factory=set)
    store: bool = True
    capacity: bool = False
    reload: bool = False
    wake: asyncio.Event = field(default_factory=asyncio.Event)

    def mark(self, *identities: Identity) -> None:
        """Look at these."""
        self.identities.update(identities)
        self.wake.set()

    def mark_everything(self) -> None:
        """Look at everything: a start, a resync, a cluster that came back."""
        self.everything = True
        self.wake.set()

    def mark_store(self) -> None:
        """Read the store."""
        self.store = True
        self.wake.set()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return not (self.everything or self.identities or self.store or self.capacity)
