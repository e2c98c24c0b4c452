"""The bodies to send of one template, prepared once for all clusters with an equal body."""

from __future__ import annotations

from reconciler.model.tree import JsonObject, Step
from reconciler.stages.diff.canonical import sendable
from reconciler.stages.diff.three_way import Desired, Difference, desired_of
from reconciler.stages.ownership import hashed_leaves, recorded_form
from reconciler.stages.schemas import Schema


class Bodies:
    """The bodies of one kind, prepared for comparing. Its caches never change a result.

    `schema` None: the kind is unknown.
    """

    __slots__ = ("_differences", "_ready", "_record_key", "are_shared", "schema")

    def __init__(self, schema: Schema | None, record_key: bytes = b"", *, are_shared: bool = False) -> None:
        """Start with no body.

        `record_key`: the journal's key for hashes of Secret values. `are_shared`: members with equal live bodies share
        one object, so that a difference found in one of them is that of all.
        """
        self.are_shared = are_shared
        self.schema = schema
        self._record_key = record_key
        # Rendering gives clusters with one outcome the same object. It is kept here, so that its id stays its own.
        self._ready: dict[int, tuple[JsonObject, Desired]] = {}
        self._differences: dict[
            tuple[int, int, int, tuple[str, ...]], tuple[tuple[JsonObject | None, ...], Difference]
        ] = {}

    def wanted(self, body: JsonObject, leaves: tuple[tuple[Step, ...], ...] = ()) -> Desired:
        """Return a rendered body as it is sent and compared. `leaves`: the paths of decrypted values."""
        known = self._ready.get(id(body))
        if known is None:
            sent = sendable(body, self.schema)
            known = self._ready[id(body)] = (body, desired_of(sent, self.recorded(sent, leaves)))
        return known[1]

    def recorded(self, sent: JsonObject, leaves: tuple[tuple[Step, ...], ...] = ()) -> JsonObject:
        """A body that is sent, as the journal may keep it."""
        hidden = hashed_leaves(sent, leaves, self._record_key) if leaves else sent
        return recorded_form(hidden, self._record_key)

    def known_difference(
        self, wanted: Desired, live: JsonObject, recorded: JsonObject | None, left: tuple[str, ...]
    ) -> Difference | None:
        """Return the difference of these objects, if it was kept. `left`: paths that are left to others."""
        known = self._differences.get((id(wanted.body), id(live), id(recorded), left))
        return known[1] if known is not None else None

    def keep_difference(
        self,
        wanted: Desired,
        live: JsonObject,
        recorded: JsonObject | None,
        left: tuple[str, ...],
        found: Difference,
    ) -> None:
        """Keep the difference of these objects, for other clusters that hold the same ones."""
        # They are kept with it, so that their ids stay their own.
        self._differences[id(wanted.body), id(live), id(recorded), left] = ((wanted.body, live, recorded), found)
