"""Watches: the change log seen through a selector, one JSON event at a time."""

from __future__ import annotations

from collections.abc import Callable

from reconciler.sim.objects.kinds import Resource
from reconciler.sim.objects.status import Body, Refused
from reconciler.sim.state.store import Event, Store

INITIAL_END = "k8s.io/initial-events-end"


class Watch:
    """A running watch. `poll` returns the events since the last call; after an ERROR it has ended."""

    def __init__(
        self,
        store: Store,
        resource: Resource,
        matches: Callable[[Body], bool],
        render: Callable[[Body], Body],
        *,
        version: int,
        timeout_s: float,
    ) -> None:
        """Start after a version."""
        self.resource = resource
        self.version = version
        self.timeout_s = timeout_s
        self.has_bookmarks = False
        self.ended = False
        self._store = store
        self._matches = matches
        self._render = render
        self._pending: list[Body] = []

    def begin_with(self, bodies: list[Body], *, marks_end: bool) -> None:
        """Send existing objects as ADDED first, and a marked bookmark after them when asked for."""
        self._pending = [{"type": "ADDED", "object": self._render(body)} for body in bodies]
        if marks_end:
            self._pending.append(self.bookmark({INITIAL_END: "true"}))

    def bookmark(self, annotations: Body | None = None) -> Body:
        """A BOOKMARK at the present version."""
        metadata: Body = {"resourceVersion": str(self.version), "creationTimestamp": None}
        if annotations:
            metadata["annotations"] = annotations
        resource = self.resource
        shell = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}
        return {"type": "BOOKMARK", "object": shell}

    def poll(self) -> list[Body]:
        """Events since the last call."""
        events, self._pending = self._pending, []
        try:
            changes = self._store.since(self.version, self.resource)
        except Refused as refused:
            self.ended = True
            return [*events, {"type": "ERROR", "object": refused.body}]
        self.version = self._store.version
        for change in changes:
            kind = self._type_for(change)
            if kind is not None:
                events.append({"type": kind, "object": self._render(change.body)})
        return events

    def _type_for(self, change: Event) -> str | None:
        """An object that enters or leaves the selection looks created or deleted."""
        now = change.type != "DELETED" and self._matches(change.body)
        before = change.previous is not None and self._matches(change.previous)
        if now:
            return "MODIFIED" if before else "ADDED"
        return "DELETED" if before else None
