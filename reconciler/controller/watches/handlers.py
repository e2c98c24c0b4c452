"""The handlers of what watches and polls see, cluster by cluster."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping

from reconciler.api.clusters import LiveObject
from reconciler.api.refs import GVK, Identity
from reconciler.errors import MemberClusterError
from reconciler.kube.client import MemberCluster
from reconciler.kube.watch_stream import WatchEvent


class WatchHandler:
    """Does nothing; a subclass says what it wants to know."""

    def asked(self, cluster: str, gvk: GVK) -> None:
        """A list is asked for."""

    def as_of(self, cluster: str, gvk: GVK, version: str) -> None:
        """A list is as of this version."""

    def listed(self, cluster: str, gvk: GVK, objects: tuple[LiveObject, ...]) -> None:
        """A list is complete."""

    def unlisted(self, cluster: str, gvk: GVK) -> None:
        """A kind cannot be listed in a cluster that answers."""

    def seen(self, cluster: str, event: WatchEvent) -> None:
        """An object came, changed or went, or was read in full."""

    def trouble(self, cluster: str, error: MemberClusterError) -> None:
        """A cluster does not answer."""

    def ended_early(self, cluster: str) -> None:
        """A watch ended before its time, or failed."""


class PollHandler(WatchHandler, ABC):
    """Compares with what was seen before, too."""

    @abstractmethod
    async def is_as_known(self, member: MemberCluster) -> bool:
        """Return whether a cluster has its recorded identity, and nobody else owns the fleet in it."""

    @abstractmethod
    def is_served_as_known(self, cluster: str, served: Collection[GVK], silent: Collection[str]) -> bool:
        """Return whether a cluster serves the same as before. `silent`: group versions without an answer."""

    @abstractmethod
    def doubted(self, cluster: str) -> None:
        """Everything in a cluster has to be looked at."""

    @abstractmethod
    def answered(self, cluster: str) -> None:
        """A cluster was listed to the end."""

    @abstractmethod
    def polled(self, cluster: str, gvk: GVK, objects: tuple[LiveObject, ...]) -> Collection[Identity]:
        """Return the objects of a complete metadata list to read in full."""

    @abstractmethod
    def missed(self, cluster: str, identity: Identity) -> None:
        """An object was read by name, and is not there."""

    @abstractmethod
    def applied(self, cluster: str) -> Mapping[Identity, GVK]:
        """Return the applied objects of a cluster."""

    @abstractmethod
    def unhealthy(self) -> Iterable[tuple[str, Identity]]:
        """Yield applied, unhealthy copies in reachable clusters."""

    @abstractmethod
    def hurried(self) -> Collection[str]:
        """The clusters in which a gate of a Rollout is being judged."""
