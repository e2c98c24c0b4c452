"""A lost journal, filled again from the marks that the members' objects carry.

Source: design#lost-journal: the marks rebuild objects, placements and keep, and which revisions rollouts have in force;
timers and exclusions begin anew; nothing is deleted until one complete round has been recorded.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field

from reconciler.api.fleet import Fleet
from reconciler.api.ledger import AppliedRow, Event, EventKind
from reconciler.controller.once.marked_objects import documents_of, placements_of, rows_of_all
from reconciler.controller.once.planning import Access, check_fleet, open_members
from reconciler.controller.reading.read_clusters import answering
from reconciler.controller.round.hold import OwnershipLock
from reconciler.errors import ConfigurationError
from reconciler.fleet import why_nameless
from reconciler.journal.journal_rebuild import rebuild
from reconciler.journal.sqlite_journal import Journal


class RebuiltFromMarks(Struct, frozen=True, kw_only=True):
    """The result. `objects`: number of ours per cluster; `failed`: errors of reading, by cluster.

    `held_by`: per cluster the other owner of the fleet: another journal, or a copy of this one. `set_aside`: the new
    path of the broken file; `lost`: rows that could not be saved.
    """

    objects: Mapping[str, int] = field(default_factory=dict)
    placements: int = 0
    failed: Mapping[str, str] = field(default_factory=dict)
    held_by: Mapping[str, str] = field(default_factory=dict)
    is_stock: bool = False
    """Stock was taken of the named clusters alone; what else the journal knows has stayed."""
    set_aside: Path | None = None
    lost: tuple[str, ...] = ()


async def rebuild_once(fleet: Fleet, access: Access, *, take_over: bool = False) -> RebuiltFromMarks:
    """Build the journal anew. With `take_over` it owns the fleet afterwards, whoever did before.

    If clusters are named and the journal is sound, only these are read, and all else stays recorded.

    Raises:
        ConfigurationError: the store does not name the fleet, or what is left of the journal belongs to another one.
        JournalLocked: a daemon or another command writes the journal.
    """
    if not fleet.settings.name:
        raise ConfigurationError(why_nameless(fleet))
    assert access.journal is not None, "a fleet with a name has a journal"
    if not access.journal.exists():
        Journal.open(access.journal).close()
    journal, set_aside, lost = rebuild(access.journal, keeps_sound=bool(access.clusters))
    is_stock = bool(access.clusters) and set_aside is None
    with journal:
        check_fleet(journal, fleet)
        holder = OwnershipLock(journal, access.clock)
        async with open_members(fleet, access) as members:
            asked = access.cluster_filter.own(fleet)
            reachable, uids = await answering(fleet, members, journal.cluster_uids(), asked)
            met = [member for _, member in sorted(reachable.items()) if not isinstance(member, str)]
            failed = {name: found for name, found in reachable.items() if isinstance(found, str)}
            # Of every cluster before any mark is written.
            unread = await holder.read_back(met, fleet.settings.name)
            failed |= {name: error.message for name, error in unread.items()}
            if take_over:
                refused = await holder.hold(met, fleet.settings.name, take_over=True)
                failed |= {name: error.message for name, error in refused.items()}
            marks = await holder.held_by(met, fleet.settings.name)
            held_by_others = {name: str(mark) for name, mark in marks.items()}
            rows = await rows_of_all(met, fleet, failed)
            if is_stock:
                with journal.transaction(durable=True):
                    take_stock(journal, rows, failed)
                # Runs of hooks that were deleted count as far as the clusters themselves tell of them.
                await holder.read_back(met, fleet.settings.name)
        placements = placements_of(row for found in rows.values() for row in found)
        with journal.transaction(durable=True):
            for name, uid in sorted(uids.items()):
                journal.record_cluster(name, uid)
            if not is_stock:
                journal.record_applied(row for _, found in sorted(rows.items()) for row in found)
                journal.record_bindings(fleet.revision, placements)
                journal.record_rollout_documents(documents_of(journal.rollout_records()))
            found = sum(map(len, rows.values()))
            journal.record_events([_event(access, fleet, found, is_taken=take_over, is_broken=set_aside is not None)])
    return RebuiltFromMarks(
        objects={name: len(found) for name, found in rows.items()},
        placements=len(placements),
        is_stock=is_stock,
        failed=failed,
        held_by=held_by_others,
        set_aside=set_aside,
        lost=lost,
    )


def take_stock(journal: Journal, rows: Mapping[str, Sequence[AppliedRow]], failed: Collection[str]) -> None:
    """Record the objects of these clusters. An earlier record of the same object stays: it has more than its mark.

    `failed`: clusters that were not read whole; nothing of them is deleted.
    """
    for name, found in sorted(rows.items()):
        known = journal.applied(name)
        if name not in failed:
            journal.remove_applied(name, known.keys() - {row.identity for row in found})
        journal.record_applied(row for row in found if row.identity not in known or known[row.identity].uid != row.uid)


def _event(access: Access, fleet: Fleet, objects: int, *, is_taken: bool, is_broken: bool) -> Event:
    """Return the event of the rebuild, with the person, and whether the fleet was taken over."""
    why = "the journal was broken; what history it had is in the file that was set aside" if is_broken else ""
    data = {
        "revision": fleet.revision,
        "who": access.who or "a person",
        "objects": objects,
        **({"why": why} if why else {}),
        **({"clusters": ", ".join(access.clusters)} if access.clusters else {}),
    }
    kind = EventKind.TAKEN_OVER if is_taken else EventKind.REBUILT
    return Event(round=0, time=access.clock.now(), kind=kind, subject="fleet", data=data)
