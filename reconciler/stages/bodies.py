"""What is sent of one template, made ready once for all clusters that get the same body."""

from __future__ import annotations

from reconciler.model.tree import JsonObject
from reconciler.stages.canonical import sendable
from reconciler.stages.diff import Wanted, wanted_of
from reconciler.stages.recorded import recorded_form
from reconciler.stages.schema import Schema


class Bodies:
    """The bodies of one kind, ready to be compared. What it remembers never changes an answer.

    `schema` None: the kind is unknown.
    """

    __slots__ = ("_ready", "_record_key", "schema")

    def __init__(self, schema: Schema | None, record_key: bytes = b"") -> None:
        """Start with no body. `record_key`: the journal's key, with which Secret values are hashed."""
        self.schema = schema
        self._record_key = record_key
        # Rendering gives clusters with one outcome the same object. It is kept here, so that its id stays its own.
        self._ready: dict[int, tuple[JsonObject, Wanted]] = {}

    def wanted(self, body: JsonObject) -> Wanted:
        """A rendered body as it is sent and compared."""
        known = self._ready.get(id(body))
        if known is None:
            sent = sendable(body, self.schema)
            known = self._ready[id(body)] = (body, wanted_of(sent, recorded_form(sent, self._record_key)))
        return known[1]
