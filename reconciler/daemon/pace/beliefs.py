"""Synced versions: the last seen version of each copy that is in sync.

An event with exactly that version is an echo of our own write. Per copy only uid and resourceVersion are kept.
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
        """Begin a list: versions of the kind synced from now on may be missing in it."""
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
        """Mark objects that were read and need no change as synced."""
        due = {(change.cluster, change.identity) for change in planned.plan.changes}
        for name, member in snapshot.members.items():
            if isinstance(member, NotRead):
                self.forget(name)
            elif isinstance(member, Read):
                for identity, live in member.objects.items():
                    if (name, identity) not in due:
                        self.confirm(name, identity, live.uid, live.resource_version)

    def take_in_results(self, results: Iterable[Result]) -> None:
        """Mark written objects as synced in the acknowledged version.

        So is an altered one, since that version is no news: it is tried again after its pause.
        """
        for result in results:
            change = result.change
            if (result.error and not result.altered) or change.action in (Action.DELETE, Action.RELEASE):
                self.doubt(change.cluster, change.identity)
            else:
                self.confirm(change.cluster, change.identity, result.uid, result.resource_version)

    def holds(self, cluster: str, live: LiveObject) -> bool:
        """Return whether the object is in its synced version."""
        believed = self._versions.get(cluster, {}).get(live.identity)
        return believed == (live.uid, live.resource_version)

    def doubtful(self, cluster: str, group_kind: tuple[str, str], listed: Iterable[LiveObject]) -> set[Identity]:
        """Return the contradictions of a complete list of a kind: other versions, unknown objects, missing ones.

        An object synced since the list was requested is left out if the list is older; the watch reports the rest.
        """
        seen = {live.identity: live for live in listed}
        believed = self._versions.get(cluster, {})
        gone = {identity for identity in believed if identity[:2] == group_kind and identity not in seen}
        contrary = gone | {identity for identity, live in seen.items() if not self.holds(cluster, live)}
        fresh = self._since_list.get(cluster, {}).pop(group_kind, set())
        # For newer objects the list is the only report: the watch begins behind it.
        return {
            identity
            for identity in contrary
            if identity not in fresh or (identity in seen and self._is_newer(cluster, seen[identity]))
        }

    def _is_newer(self, cluster: str, live: LiveObject) -> bool:
        """Return whether it is later than the synced version. Source: Kubernetes, versions are numbers that grow."""
        _, believed = self._versions.get(cluster, {}).get(live.identity, ("", ""))
        is_number = believed.isdecimal() and live.resource_version.isdecimal()
        return not is_number or int(live.resource_version) > int(believed)
