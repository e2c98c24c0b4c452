"""The one ConfigMap beside the Leases in which a process tells something, and which nobody else writes."""

from __future__ import annotations

from typing import Final

from reconciler.adapters.kube.client import MemberCluster
from reconciler.daemon.round.hold import NAMESPACE, ensure_namespace
from reconciler.errors import AlreadyExists, ObjectNotFound, WriteConflict
from reconciler.model.observation import LiveObject
from reconciler.model.refs import GVK
from reconciler.model.tree import JsonObject
from reconciler.stages.ownership import field_manager

CONFIG_MAP: Final = GVK("", "v1", "ConfigMap")


class OwnObject:
    """What was written last is what the next write has to find: whoever took our place is not written over."""

    def __init__(self, member: MemberCluster, fleet: str) -> None:
        """Nothing is asked yet. `member`: the cluster of the Leases."""
        self._member = member
        self._manager = field_manager(fleet)
        self._live: LiveObject | None = None

    async def write(self, name: str, body: JsonObject) -> None:
        """Write it under its name, which is always the same.

        Raises:
            WriteConflict, AlreadyExists, ObjectNotFound: somebody else wrote or deleted it meanwhile.
            MemberClusterError: it cannot be written.
        """
        if self._live is None:
            try:
                self._live = await self._member.get(CONFIG_MAP, NAMESPACE, name)
            except ObjectNotFound:
                await ensure_namespace(self._member, self._manager)
        try:
            if self._live is None:
                self._live = await self._member.create(CONFIG_MAP, NAMESPACE, name, body, manager=self._manager)
            else:
                self._live = await self._member.apply(
                    *(CONFIG_MAP, NAMESPACE, name, body),
                    manager=self._manager, force=True,
                    uid=self._live.uid, resource_version=self._live.resource_version,
                )  # fmt: skip
        except (AlreadyExists, ObjectNotFound, WriteConflict):
            # A person wrote or deleted it, or the answer to our own write was lost: it is looked at before the next.
            self._live = None
            raise

    async def is_spoiled(self, name: str) -> bool:
        """Whether somebody else wrote or deleted it since it was written; it is looked at before the next write then.

        Raises:
            MemberClusterError: it cannot be read.
        """
        try:
            live = await self._member.get(CONFIG_MAP, NAMESPACE, name)
        except ObjectNotFound:
            self._live = None
            return True
        if self._live is None or live.resource_version != self._live.resource_version:
            self._live = None
        return self._live is None
