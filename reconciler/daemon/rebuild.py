"""A lost journal, filled again from the marks that the members' objects carry.

Source: design, "Ownership marks": the marks rebuild objects, placements and keep; timers and exclusions begin anew;
nothing is deleted until one complete round has been recorded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from reconciler.adapters.journal import Journal
from reconciler.adapters.journal_rebuild import rebuild
from reconciler.adapters.kube_client import MemberCluster
from reconciler.adapters.kube_discovery import Discovery
from reconciler.daemon.hold import hold
from reconciler.daemon.look import reach
from reconciler.daemon.session import Access, check_fleet, open_members
from reconciler.errors import BadAnswer, ConfigurationError, KindNotServed, MemberClusterError
from reconciler.model.binding import PreviousPlacement, TargetCluster
from reconciler.model.fleet import Fleet
from reconciler.model.ledger import AppliedRow
from reconciler.model.observation import LiveObject
from reconciler.model.refs import GVK, Identity
from reconciler.stages.marks import FLEET_LABEL
from reconciler.stages.ownership import Standing, ownership_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """What was found. `objects`: how many of ours per cluster; `failed`: clusters that could not be read, and why.

    `set_aside`: where the broken file went; `lost`: what could not be saved of it.
    """

    objects: Mapping[str, int] = field(default_factory=dict)
    placements: int = 0
    failed: Mapping[str, str] = field(default_factory=dict)
    set_aside: Path | None = None
    lost: tuple[str, ...] = ()


async def rebuild_once(fleet: Fleet, access: Access, *, take_over: bool = False) -> Rebuilt:
    """Build the journal anew. With `take_over` it holds the fleet afterwards, whoever did before.

    Raises:
        ConfigurationError: the store does not name the fleet, or what is left of the journal belongs to another one.
        JournalLocked: a daemon or another command writes the journal.
        FleetHeld: another journal holds the fleet, and it is not to be taken over.
    """
    assert access.journal is not None, "a journal is rebuilt somewhere"
    if not fleet.settings.name:
        raise ConfigurationError("the store has no document of kind Fleet with a name; its marks cannot be told apart")
    if not access.journal.exists():
        Journal.open(access.journal).close()
    journal, set_aside, lost = rebuild(access.journal)
    with journal:
        check_fleet(journal, fleet)
        async with open_members(fleet, access) as members:
            reachable, uids = await reach(fleet, members, journal.cluster_uids())
            failed = {name: found for name, found in reachable.items() if isinstance(found, str)}
            present = [found for found in reachable.values() if not isinstance(found, str)]
            if take_over:
                refused = await hold(present, fleet.settings.name, journal, take_over=True)
                failed |= {name: error.message for name, error in refused.items()}
            rows = await _rows_of_all(present, fleet, failed)
    return Rebuilt(
        objects={name: len(found) for name, found in rows.items()},
        placements=placements,
        failed=failed,
        set_aside=set_aside,
        lost=lost,
    )
