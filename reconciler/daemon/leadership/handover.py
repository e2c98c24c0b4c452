"""Reads and writes what one leader leaves for the next, beside the Lease."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

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

    def __init__(self, member: MemberCluster, fleet: str) -> None:
        """Nothing is asked yet."""
        self._member = member
        self._fleet = fleet
        self._live: LiveObject | None = None
        self._written: Handover | None = None

    async def read(self) -> Handover | None:
        """Return the last leader's handover; None: there was none.

        Raises:
            MemberClusterError: it cannot be read.
        """
        try:
            self._live = await self._member.get(_CONFIG_MAP, NAMESPACE, handover_name(self._fleet))
        except ObjectNotFound:
            self._live = None
            return None
        return read_handover(self._live.body)

    async def is_spoiled(self) -> bool:
        """Return whether others changed or deleted the last written handover; it is written again then.

        Raises:
            MemberClusterError: it cannot be read.
        """
        try:
            live = await self._member.get(_CONFIG_MAP, NAMESPACE, handover_name(self._fleet))
        except ObjectNotFound:
            self._written = None
            return True
        if self._live is None or live.resource_version != self._live.resource_version:
            self._written = None
        return self._written is None

    async def write(self, left: Handover, number: Callable[[], int]) -> None:
        """Write the handover, unless an equal one is there. `number`: counts the writes.

        Raises:
            WriteConflict, AlreadyExists: somebody else wrote it since it was read.
            MemberClusterError: it cannot be written.
            HandoverTooLarge: it does not fit.
        """
        if left == self._written:
            return
        numbered = replace(left, number=number())
        before = self._live
        try:
            await self._write(numbered)
        except (AlreadyExists, ObjectNotFound, WriteConflict):
            # A person deleted it or restored an old one, or it is what we wrote when the answer was lost.
            found = await self.read()
            is_same = found is None or (found.journal, found.term) == (left.journal, left.term)
            if found is not None and not is_same and found.term >= left.term:
                self._live = before  # Whoever leads later is not written over at the next attempt either.
                raise
            await self._write(numbered)
        self._written = left

    async def _write(self, left: Handover) -> None:
        name, manager = handover_name(self._fleet), field_manager(self._fleet)
        body = handover_body(self._fleet, NAMESPACE, left)
        if self._live is None:
            await ensure_namespace(self._member, manager)
            self._live = await self._member.create(_CONFIG_MAP, NAMESPACE, name, body, manager=manager)
        else:
            self._live = await self._member.apply(
                *(_CONFIG_MAP, NAMESPACE, name, body),
                manager=manager, force=True, uid=self._live.uid, resource_version=self._live.resource_version,
            )  # fmt: skip
