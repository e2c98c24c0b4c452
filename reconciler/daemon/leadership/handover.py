"""Reads and writes what one leader leaves for the next, beside the Lease."""

from __future__ import annotations

from typing import Final

from reconciler.adapters.kube.client import MemberCluster
from reconciler.daemon.round.hold import NAMESPACE, ensure_namespace
from reconciler.errors import AlreadyExists, ObjectNotFound, WriteConflict
from reconciler.model.observation import LiveObject
from reconciler.model.refs import GVK
from reconciler.stages.leadership import Handover, handover_body, handover_name, read_handover
from reconciler.stages.ownership import field_manager

_CONFIG_MAP: Final = GVK("", "v1", "ConfigMap")


class HandoverFile:
    """One ConfigMap. What this process wrote or read last is what its next write has to find."""

    def __init__(self, member: MemberCluster, fleet: str, shard: str = "") -> None:
        """Nothing is asked yet. `shard`: of which it is; empty: of the fleet."""
        self._member = member
        self._fleet = fleet
        self._name = handover_name(fleet, shard)
        self._live: LiveObject | None = None
        self._written: Handover | None = None

    async def read(self) -> Handover | None:
        """What the last leader left; None: there was none.

        Raises:
            MemberClusterError: it cannot be read.
        """
        try:
            self._live = await self._member.get(_CONFIG_MAP, NAMESPACE, self._name)
        except ObjectNotFound:
            self._live = None
            return None
        return read_handover(self._live.body)

    async def write(self, left: Handover) -> None:
        """Leave this; nothing is written where the same is there.

        Raises:
            WriteConflict, AlreadyExists: somebody else wrote it since it was read.
            MemberClusterError: it cannot be written.
            HandoverTooLarge: it does not fit.
        """
        if left == self._written:
            return
        try:
            await self._write(left)
        except (AlreadyExists, ObjectNotFound, WriteConflict):
            # A person deleted it, or it is what we wrote when the answer was lost.
            found = await self.read()
            if found is not None and (found.journal, found.term) != (left.journal, left.term):
                raise
            await self._write(left)
        self._written = left

    async def _write(self, left: Handover) -> None:
        name, manager = self._name, field_manager(self._fleet)
        body = handover_body(name, NAMESPACE, left)
        if self._live is None:
            await ensure_namespace(self._member, manager)
            self._live = await self._member.create(_CONFIG_MAP, NAMESPACE, name, body, manager=manager)
        else:
            self._live = await self._member.apply(
                *(_CONFIG_MAP, NAMESPACE, name, body),
                manager=manager, force=True, uid=self._live.uid, resource_version=self._live.resource_version,
            )  # fmt: skip
