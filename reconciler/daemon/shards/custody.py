"""A cluster goes from one shard to another by its mark: who applied there lets go of it, and only then the next begins.

Where nobody is left who could let go, since the Lease of that shard was given back or has run out, the next one does it
in its place: whoever held that Lease has ended writing before. Source: design#shards; ADR 22.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from reconciler.adapters.clock import within
from reconciler.adapters.kube.client import MemberCluster
from reconciler.containment import awaited
from reconciler.daemon.observing.members import PROMPT_S
from reconciler.daemon.round.hold import NAMESPACE
from reconciler.daemon.round.mark import Mark, holder_name, read_mark
from reconciler.errors import ObjectNotFound
from reconciler.model.fleet import HighAvailability
from reconciler.model.refs import GVK
from reconciler.model.tree import dig
from reconciler.stages.leadership import Lease, Sighting, lease_name, read_lease, sighted, wait_for_lease_s
from reconciler.stages.ownership import field_manager

_CONFIG_MAP: Final = GVK("", "v1", "ConfigMap")
_LEASE: Final = GVK("coordination.k8s.io", "v1", "Lease")


async def let_go(member: MemberCluster, fleet: str, is_due: Callable[[Mark], bool]) -> bool:
    """Write into the mark of a cluster that who wrote it writes nothing there any more; whether it is let go of.

    `is_due`: whether a mark is one that may be let go of.

    Raises:
        MemberClusterError: the mark cannot be read or written; WriteConflict: somebody wrote it meanwhile.
    """
    try:
        live = await member.get(_CONFIG_MAP, NAMESPACE, holder_name(fleet))
    except ObjectNotFound:
        return True
    mark = read_mark(live)
    if mark.is_released:
        return True
    if not is_due(mark):
        return False
    data: dict[str, Any] = dict(dig(live.body, "data") or {})
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": holder_name(fleet), "namespace": NAMESPACE},
        "data": {**data, "released": "true"},
    }
    await member.apply(
        *(_CONFIG_MAP, NAMESPACE, holder_name(fleet), body),
        manager=field_manager(fleet), force=True, uid=live.uid, resource_version=live.resource_version,
    )  # fmt: skip
    return True


def is_without_lease(mark: Mark, journal: str) -> bool:
    """Whether a mark was written with this journal, and under no Lease: only who has the journal wrote by it."""
    return mark.journal == journal and mark.term is None


class Custody:
    """Which shards are led by anybody, as far as this process has seen their Leases, by its own clock."""

    def __init__(
        self, member: MemberCluster, fleet: str, ha: HighAvailability, since_boot_s: Callable[[], float]
    ) -> None:
        """Nothing is seen yet. `member`: the cluster of the Leases."""
        self._member = member
        self._fleet = fleet
        self._duration_s = ha.lease_duration_s
        self._since_boot_s = since_boot_s
        self._seen: dict[str, Sighting] = {}

    async def is_led(self, shard: str) -> bool:
        """Whether somebody may write as this shard (empty: as the leader of the fleet); in doubt somebody may.

        Raises:
            MemberClusterError: its Lease cannot be read.
        """
        try:
            live = await self._member.get(_LEASE, NAMESPACE, lease_name(self._fleet, shard))
        except ObjectNotFound:
            # It may have been deleted a moment ago: whoever holds it may write for as long as it lasts.
            lease, version = Lease(holder="somebody", duration_s=self._duration_s), ""
        else:
            lease, version = read_lease(live.body), live.resource_version
        seen = sighted(self._seen.get(shard), lease, version, self._since_boot_s())
        self._seen[shard] = seen
        return wait_for_lease_s(seen, "", self._duration_s, self._since_boot_s()) > 0

    async def take_from_nobody(
        self, members: Mapping[str, MemberCluster], marks: Mapping[str, Mark], journal: str
    ) -> set[str]:
        """Let go of clusters in the place of shards that nobody leads; the clusters that are free then.

        `marks`: of these clusters, by name, all of them of other shards. `journal`: of this process, which may have had
        them before there was a Lease.
        """
        free: set[str] = set()
        for name, mark in marks.items():
            if not is_without_lease(mark, journal):
                led = await awaited(within(self.is_led(mark.shard), PROMPT_S))
                if led.value is not False or mark.term is None:
                    continue  # Without a Lease nothing says that who wrote it has ended.
            gone = await awaited(within(let_go(members[name], self._fleet, _same_as(mark)), PROMPT_S))
            if gone.value:
                free.add(name)
        return free


def _same_as(mark: Mark) -> Callable[[Mark], bool]:
    """Whether a mark was written with this one: by the same process, which took hold once."""
    return lambda found: (found.journal, found.epoch, found.token) == (mark.journal, mark.epoch, mark.token)
