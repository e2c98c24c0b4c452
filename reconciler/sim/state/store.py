"""Objects with their versions, and the log of changes that watches read."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

from reconciler.sim.objects.kinds import Resource
from reconciler.sim.objects.status import Body, expired

GroupPlural = tuple[str, str]
Name = tuple[str, str]
"""(namespace, name); the namespace of a cluster-scoped object is empty."""


class Event(NamedTuple):
    """One change. `previous` is None for ADDED; a DELETED body carries the version of the deletion."""

    version: int
    type: str
    kept_as: GroupPlural
    body: Body
    previous: Body | None


class Backup(NamedTuple):
    """All objects of one cluster at one moment."""

    version: int
    objects: dict[GroupPlural, dict[Name, Body]]


def name_of(body: Body) -> Name:
    """(namespace, name) of an object."""
    metadata = body["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


class Store:
    """All objects of one cluster. Bodies are immutable; a write replaces one and gets the next resourceVersion."""

    def __init__(self, *, history_max: int = 20_000) -> None:
        """Begin empty at version 1, which is the oldest a real etcd knows."""
        self.version = 1
        self.oldest = 0
        """Watches may start at this version or later."""
        self.listeners: list[Callable[[Event], None]] = []
        self._objects: dict[GroupPlural, dict[Name, Body]] = {}
        self._history: deque[Event] = deque()
        self._history_max = history_max

    def get(self, kept_as: GroupPlural, namespace: str, name: str) -> Body | None:
        """One object, or None."""
        return self._objects.get(kept_as, {}).get((namespace, name))

    def sorted(self, kept_as: GroupPlural, namespace: str = "") -> list[Body]:
        """Objects of a type, of one namespace or of all, by namespace and name."""
        objects = self._objects.get(kept_as, {})
        return [objects[key] for key in sorted(objects) if not namespace or key[0] == namespace]

    def each(self, kept_as: GroupPlural) -> Iterator[Body]:
        """Objects of a type in no order; safe against writes while iterating."""
        return iter(list(self._objects.get(kept_as, {}).values()))

    def everything(self) -> Iterator[tuple[GroupPlural, Body]]:
        """All objects, by type, namespace and name."""
        for kept_as in sorted(self._objects):
            for body in self.sorted(kept_as):
                yield kept_as, body

    def put(self, kept_as: GroupPlural, body: Body) -> Body:
        """Store an object under the next version and return it as stored."""
        self.version += 1
        stored = {**body, "metadata": {**body["metadata"], "resourceVersion": str(self.version)}}
        objects = self._objects.setdefault(kept_as, {})
        previous = objects.get(name_of(stored))
        objects[name_of(stored)] = stored
        self._log("ADDED" if previous is None else "MODIFIED", kept_as, stored, previous)
        return stored

    def remove(self, kept_as: GroupPlural, namespace: str, name: str) -> None:
        """Delete an object that is there."""
        previous = self._objects[kept_as].pop((namespace, name))
        self.version += 1
        last = {**previous, "metadata": {**previous["metadata"], "resourceVersion": str(self.version)}}
        self._log("DELETED", kept_as, last, previous)

    def since(self, version: int, resource: Resource) -> list[Event]:
        """Changes of a type after a version. Raises Refused (410) when the log no longer reaches back so far."""
        if version < self.oldest:
            raise expired(f"too old resource version: {version} ({self.oldest})")
        events: list[Event] = []
        for event in reversed(self._history):
            if event.version <= version:
                break
            if event.kept_as == resource.group_plural:
                events.append(event)
        return events[::-1]

    def compact(self) -> None:
        """Forget the log, so that older watches and continue tokens meet 410."""
        self._history.clear()
        self.oldest = self.version

    def back_up(self) -> Backup:
        """Return a copy of the present state."""
        return Backup(self.version, {kept_as: dict(objects) for kept_as, objects in self._objects.items()})

    def put_back(self, backup: Backup) -> None:
        """Restore an earlier state, versions too; watches get no events, and the log is cleared."""
        self.version = backup.version
        self._objects = {kept_as: dict(objects) for kept_as, objects in backup.objects.items()}
        self.compact()

    def _log(self, type_: str, kept_as: GroupPlural, body: Body, previous: Body | None) -> None:
        event = Event(self.version, type_, kept_as, body, previous)
        self._history.append(event)
        while len(self._history) > self._history_max:
            self.oldest = self._history.popleft().version
        for listener in self.listeners:
            listener(event)
