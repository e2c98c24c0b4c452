"""The log of a start: what is being done, for as long as nothing else is told of the clusters."""

from __future__ import annotations

import logging
from typing import Final

from reconciler.adapters.clock import Clock
from reconciler.daemon.vitals.vitals import Vitals

log = logging.getLogger("reconciler")

_PROGRESS_S: Final = 5.0


async def tell_progress(vitals: Vitals, clock: Clock) -> None:
    """Log every few seconds how far the first round is, until it is over."""
    await clock.sleep(_PROGRESS_S)
    while not vitals.rounds:
        log.info("starting: %s", vitals.phase, extra={"event": "Starting"})
        await clock.sleep(_PROGRESS_S)
