"""What the control loop believes of each copy: that it is as wanted, in the version that was last seen.

An event that shows exactly that version is an echo of our own write. Per copy only uid and resourceVersion are kept.
"""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.model.observation import LiveObject
from reconciler.model.refs import Identity


class Beliefs:
    """(cluster, identity) to the version that was found as wanted."""

    def __init__(self) -> None:
        """Nothing is believed at first."""
        self._versions: dict[str, dict[Identity, tuple[str, str]]] = {}

    def confirm(self, cluster: str, identity: Identity, uid: str, resource_version: str) -> None:
        """The copy is as wanted in this version."""
        self._versions.setdefault(cluster, {})[identity] = (uid, resource_version)

    def doubt(self, cluster: str, identity: Identity) -> None:
        """Nothing is believed of the copy any more."""
        self._versions.get(cluster, {}).pop(identity, None)

    def forget(self, cluster: str) -> None:
        """Nothing is believed of a cluster any more."""
        self._versions.pop(cluster, None)

    def holds(self, cluster: str, live: LiveObject) -> bool:
        """Whether the object is in the version that is believed to be as wanted."""
        believed = self._versions.get(cluster, {}).get(live.identity)
        return believed == (live.uid, live.resource_version)

    def doubtful(self, cluster: str, group_kind: tuple[str, str], listed: Iterable[LiveObject]) -> set[Identity]:
        """What a complete list of a kind contradicts: other versions, objects unknown to us, and missing ones."""
        seen = {live.identity: live for live in listed}
        believed = self._versions.get(cluster, {})
        gone = {identity for identity in believed if identity[:2] == group_kind and identity not in seen}
        return gone | {identity for identity, live in seen.items() if not self.holds(cluster, live)}
