"""What the control loop believes of each copy: that it is as wanted, in the version that was last seen.

An event that shows exactly that version is an echo of our own write. Per copy only uid and resourceVersion are kept.
"""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.daemon.round.act import Result
from reconciler.engine import FleetSnapshot, Round
from reconciler.model.observation import LiveObject, NotRead, Read
from reconciler.model.plan import Action
from reconciler.model.refs import Identity


class Beliefs:
    """(cluster, identity) to the version that was found as wanted."""

    def __init__(self) -> None:
        """Nothing is believed at first."""
        self._versions: dict[str, dict[Identity, tuple[str, str]]] = {}
        self._since_list: dict[str, dict[tuple[str, str], set[Identity]]] = {}

    def list_begins(self, cluster: str, group_kind: tuple[str, str]) -> None:
        """What is confirmed of the kind from now on, the list that is asked for now need not show."""
        self._since_list.setdefault(cluster, {})[group_kind] = set()

    def confirm(self, cluster: str, identity: Identity, uid: str, resource_version: str) -> None:
        """The copy is as wanted in this version."""
        self._versions.setdefault(cluster, {})[identity] = (uid, resource_version)
        fresh = self._since_list.get(cluster, {}).get(identity[:2])
        if fresh is not None:
            fresh.add(identity)

    def doubt(self, cluster: str, identity: Identity) -> None:
        """Nothing is believed of the copy any more."""
        self._versions.get(cluster, {}).pop(identity, None)

    def forget(self, cluster: str) -> None:
        """Nothing is believed of a cluster any more."""
        self._versions.pop(cluster, None)
        self._since_list.pop(cluster, None)

    def take_in(self, planned: Round, snapshot: FleetSnapshot) -> None:
        """What was read and needs no change is as wanted."""
        due = {(change.cluster, change.identity) for change in planned.plan.changes}
        for name, member in snapshot.members.items():
            if isinstance(member, NotRead):
                self.forget(name)
            elif isinstance(member, Read):
                for identity, live in member.objects.items():
                    if (name, identity) not in due:
                        self.confirm(name, identity, live.uid, live.resource_version)

    def take_in_results(self, results: Iterable[Result]) -> None:
        """What was just written is as wanted in the version that was acknowledged.

        What the cluster made something else of is no more news in that version: it is tried again after its pause.
        """
        for result in results:
            change = result.change
            if (result.error and not result.altered) or change.action in (Action.DELETE, Action.RELEASE):
                self.doubt(change.cluster, change.identity)
            else:
                self.confirm(change.cluster, change.identity, result.uid, result.resource_version)

    def holds(self, cluster: str, live: LiveObject) -> bool:
        """Whether the object is in the version that is believed to be as wanted."""
        believed = self._versions.get(cluster, {}).get(live.identity)
        return believed == (live.uid, live.resource_version)

    def doubtful(self, cluster: str, group_kind: tuple[str, str], listed: Iterable[LiveObject]) -> set[Identity]:
        """What a complete list of a kind contradicts: other versions, objects unknown to us, and missing ones.

        What was confirmed since the list was asked for is left out where the list is older; the watch tells the rest.
        """
        seen = {live.identity: live for live in listed}
        believed = self._versions.get(cluster, {})
        gone = {identity for identity in believed if identity[:2] == group_kind and identity not in seen}
        contrary = gone | {identity for identity, live in seen.items() if not self.holds(cluster, live)}
        fresh = self._since_list.get(cluster, {}).pop(group_kind, set())
        # Newer than what was confirmed, the list is all that tells of it: the watch begins behind it.
        return {
            identity
            for identity in contrary
            if identity not in fresh or (identity in seen and self._is_newer(cluster, seen[identity]))
        }

    def _is_newer(self, cluster: str, live: LiveObject) -> bool:
        """Whether it is in a later version than believed. Source: Kubernetes, versions are numbers that grow."""
        _, believed = self._versions.get(cluster, {}).get(live.identity, ("", ""))
        is_number = believed.isdecimal() and live.resource_version.isdecimal()
        return not is_number or int(live.resource_version) > int(believed)
