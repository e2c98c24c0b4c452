"""Our objects, placements, runs of hooks and revisions in force, as the marks of the members' objects tell.

Source: design#lost-journal.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping

from reconciler.api.binding import PreviousPlacement, TargetCluster
from reconciler.api.clusters import LiveObject, Observations
from reconciler.api.fleet import Fleet
from reconciler.api.ledger import AppliedRow, JournalSnapshot
from reconciler.api.refs import GVK, Identity
from reconciler.api.rollout_progress import Record
from reconciler.controller.round.owner_record import hook_rows, marked_row
from reconciler.controller.round.ownership_lock import marks_of
from reconciler.errors import Forbidden, KindFault, MemberClusterError
from reconciler.kube.client import MemberCluster
from reconciler.kube.discovery import Discovery
from reconciler.ownership import fleet_names, our_label, ownership_of
from reconciler.rollouts import records_of_entries
from reconciler.scheduler import RUNS_ONCE


async def journal_in_marks(members: Iterable[MemberCluster], fleet: Fleet, now: str) -> JournalSnapshot:
    """Return as much of a journal as the clusters tell, for a command without one; nothing is written.

    `now`: RFC 3339; no record of a mark is later. A cluster that cannot be read adds nothing. Kinds of which the store
    has nothing are not asked for: an account that may read those of the store is enough.
    """
    members, name = list(members), fleet.settings.name
    marks, rows = await asyncio.gather(marks_of(members, name), rows_of_all(members, fleet, {}, of_store=True))
    rollouts: dict[str, dict[str, Record]] = {}
    for cluster, mark in marks.items():
        for name, record in records_of_entries(mark.entries, now).items():
            rollouts.setdefault(name, {})[cluster] = record
    hooks = {name: {row.identity: row for row in hook_rows(name, mark.entries)} for name, mark in marks.items()}
    return JournalSnapshot(
        ledger={name: {**hooks.get(name, {}), **{row.identity: row for row in rows[name]}} for name in rows},
        observations=Observations(previous=placements_of(row for listed in rows.values() for row in listed)),
        rollouts=rollouts,
        rollout_documents=documents_of(rollouts),
    )


def documents_of(rollouts: Mapping[str, Mapping[str, Record]]) -> dict[str, str]:
    """Return by Rollout the revision of its document, which no mark has: the first one begun, an adopted one last."""
    begun = {name: [one for one in records.values() if one.revision] for name, records in rollouts.items()}
    return {
        name: min(each, key=lambda one: (one.begun_at == one.completed_at, one.begun_at)).revision
        for name, each in begun.items()
        if each
    }


def placements_of(rows: Iterable[AppliedRow]) -> dict[Identity, PreviousPlacement]:
    """Return the placements in the marks, as a round records them: of dependencies and Namespaces as well."""
    targets: dict[Identity, list[TargetCluster]] = {}
    for row in rows:
        targets.setdefault(row.identity, []).append(TargetCluster(cluster=row.cluster, replicas=row.replicas))
    return {
        identity: PreviousPlacement(identity=identity, targets=tuple(sorted(placed, key=lambda target: target.cluster)))
        for identity, placed in sorted(targets.items())
    }


async def rows_of_all(
    members: Iterable[MemberCluster], fleet: Fleet, failed: dict[str, str], *, of_store: bool = False
) -> dict[str, list[AppliedRow]]:
    """Return our objects by cluster, of all kinds or the store's; add clusters not read whole to `failed`."""
    wanted = {template.gvk.group_kind for template in fleet.templates.values()} | {("", "Namespace")}

    async def one(member: MemberCluster) -> tuple[str, list[AppliedRow]]:
        try:
            return member.name, await _rows(member, fleet, failed, wanted if of_store else None)
        except MemberClusterError as error:
            failed[member.name] = error.message
            return member.name, []

    return dict(await asyncio.gather(*(one(member) for member in members)))


async def _rows(
    member: MemberCluster, fleet: Fleet, failed: dict[str, str], wanted: Collection[tuple[str, str]] | None
) -> list[AppliedRow]:
    discovery = await member.discover(refresh=True)
    names = fleet_names(fleet.settings)
    kinds = [gvk for gvk in kinds_to_list(discovery, fleet) if wanted is None or gvk.group_kind in wanted]
    missing = [f"{group_version} does not answer" for group_version in sorted(discovery.stale)]

    async def listed(gvk: GVK) -> tuple[LiveObject, ...]:
        # Whether what runs once has ended stands in its status.
        read = member.list_objects if gvk.group_kind in RUNS_ONCE else member.list_metadata
        try:
            listing = await read(gvk, label_selector=our_label(names))
            missing.extend(f"{identity}: {why}" for identity, why in listing.unread.items())
            return listing.objects
        except Forbidden:
            missing.append(f"{gvk.kind} may not be listed")
            return ()
        except KindFault as error:
            missing.append(error.message)
            return ()

    listings = await asyncio.gather(*(listed(gvk) for gvk in kinds))
    if missing:
        failed[member.name] = "; ".join(missing)
    owners = ((live, ownership_of(live, names).owner) for objects in listings for live in objects)
    rows = [marked_row(member.name, live.gvk, live, owner) for live, owner in owners if owner is not None]
    return sorted(rows, key=lambda row: row.identity)


def kinds_to_list(discovery: Discovery, fleet: Fleet) -> list[GVK]:
    """Every kind that can be listed, once: in the version of the store's templates, else the server's preferred one."""
    written = {template.gvk.group_kind: template.gvk for template in fleet.templates.values()}
    served = discovery.served()
    chosen: dict[tuple[str, str], GVK] = {}
    for gvk in sorted(served, key=lambda gvk: (not discovery.kinds[gvk].is_preferred, gvk)):
        wanted = written.get(gvk.group_kind)
        chosen.setdefault(gvk.group_kind, wanted if wanted is not None and wanted in served else gvk)
    return sorted(chosen.values())
