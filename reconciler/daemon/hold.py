"""One journal per fleet and cluster: a ConfigMap in every member names who holds it.

Source: design, "Ownership marks": written once; another journal is refused, with who holds it, until
`journal rebuild --takeover`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable

from reconciler.adapters.journal import Journal
from reconciler.adapters.kube_client import MemberCluster
from reconciler.daemon.gather import PROMPT_S
from reconciler.errors import AlreadyExists, FleetHeld, MemberClusterError, ObjectNotFound
from reconciler.model.refs import GVK
from reconciler.model.tree import dig
from reconciler.stages.ownership import field_manager

NAMESPACE = "fleet-system"
_CONFIG_MAP = GVK("", "v1", "ConfigMap")
_NAMESPACE = GVK("", "v1", "Namespace")


def holder_name(fleet: str) -> str:
    """The ConfigMap's name."""
    return f"fleet-{fleet}"


async def hold(
    members: Iterable[MemberCluster], fleet: str, journal: Journal, *, take_over: bool = False
) -> dict[str, MemberClusterError]:
    """Make sure that this journal holds the fleet in every member; per cluster the error that prevented it.

    Raises:
        FleetHeld: another journal holds it somewhere; nothing is written anywhere by the caller then.
    """
    failed: dict[str, MemberClusterError] = {}

    async def one(member: MemberCluster) -> None:
        try:
            await _hold_one(member, fleet, journal.uuid, take_over=take_over)
        except MemberClusterError as error:
            failed[member.name] = error

    await asyncio.gather(*(one(member) for member in members))
    return failed


async def held_by(members: Iterable[MemberCluster], fleet: str, uuid: str) -> dict[str, str]:
    """Per member the other journal that holds the fleet there; only read. A member that cannot be asked is left out."""

    async def one(member: MemberCluster) -> tuple[str, str]:
        try:
            async with asyncio.timeout(PROMPT_S):
                live = await member.get(_CONFIG_MAP, NAMESPACE, holder_name(fleet))
        except (MemberClusterError, TimeoutError):
            return member.name, ""
        holder = dig(live.body, "data", "journal")
        return member.name, "" if holder == uuid else str(holder)

    found = await asyncio.gather(*(one(member) for member in members))
    return {name: holder for name, holder in sorted(found) if holder}


async def refuse_other_journal(members: Iterable[MemberCluster], fleet: str, journal: Journal) -> None:
    """Nothing, when no other journal holds the fleet in any of the members.

    Raises:
        FleetHeld: one does; it is named.
    """
    for name, holder in (await held_by(members, fleet, journal.uuid)).items():
        raise FleetHeld(_refusal(name, fleet, holder))


def _refusal(member: str, fleet: str, holder: object, since: object = None) -> str:
    when = f" since {since}" if since else ""
    return (
        f"{member}: fleet {fleet} is held by journal {holder}{when}; use that journal, or take the fleet over with "
        "'reconciler journal rebuild --takeover'"
    )


async def _hold_one(member: MemberCluster, fleet: str, uuid: str, *, take_over: bool) -> None:
    name = holder_name(fleet)
    try:
        live = await member.get(_CONFIG_MAP, NAMESPACE, name)
    except ObjectNotFound:
        await _write(member, fleet, uuid)
        return
    holder = dig(live.body, "data", "journal")
    if holder == uuid:
        return
    if not take_over:
        raise FleetHeld(_refusal(member.name, fleet, holder, dig(live.body, "metadata", "creationTimestamp")))
    body = _body(fleet, uuid)
    await member.apply(_CONFIG_MAP, NAMESPACE, name, body, manager=field_manager(fleet), force=True, uid=live.uid)


async def _write(member: MemberCluster, fleet: str, uuid: str) -> None:
    manager = field_manager(fleet)
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    with contextlib.suppress(AlreadyExists):
        await member.create(_NAMESPACE, "", NAMESPACE, namespace, manager=manager)
    try:
        await member.create(_CONFIG_MAP, NAMESPACE, holder_name(fleet), _body(fleet, uuid), manager=manager)
    except AlreadyExists:
        # Somebody else was quicker: read who it is.
        await _hold_one(member, fleet, uuid, take_over=False)


def _body(fleet: str, uuid: str) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": holder_name(fleet), "namespace": NAMESPACE},
        "data": {"fleet": fleet, "journal": uuid},
    }
