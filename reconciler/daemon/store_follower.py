"""Read the store into force: a fleet that cannot be read, or is another one, never takes the place of the last."""

from __future__ import annotations

import asyncio
import logging

from reconciler.daemon.parts import Parts
from reconciler.daemon.remember import record_source_error
from reconciler.errors import StoreError
from reconciler.model.fleet import Fleet
from reconciler.model.problem import Problem, Severity

log = logging.getLogger("reconciler")


class StoreFollower:
    """Reads when told to; what is wrong with the store is logged once, and shown until it is mended."""

    def __init__(self, parts: Parts) -> None:
        """Nothing is read yet."""
        self._parts = parts
        self._note = ""
        self._errors: tuple[Problem, ...] = ()

    async def read(self) -> Fleet | None:
        """The fleet when the store has moved on; None: what is in force stays."""
        parts, vitals = self._parts, self._parts.vitals
        parts.beat("reading the store")
        try:
            snapshot = await parts.source.read()
        except StoreError as error:
            if vitals.source_error != str(error):
                log.error("the store cannot be read; the last good revision stays in force",
                          extra={"event": "SourceFailed", "error": str(error)})  # fmt: skip
            vitals.source_error = str(error)
            record_source_error(parts.journal, str(error))
            return None
        if vitals.source_error:
            record_source_error(parts.journal, "")
            log.info("the store can be read again", extra={"event": "SourceRecovered"})
        vitals.source_error, vitals.source_read_at = "", parts.clock.now()
        self._say_how_it_is_followed()
        if snapshot is None:
            return None
        parts.beat(f"parsing {len(snapshot.files)} files", len(snapshot.files))
        fleet = await asyncio.to_thread(parts.store.parse, snapshot)
        if self._is_refused(fleet):
            return None
        log.info("the store advanced", extra={"event": "SourceAdvanced", "rev": fleet.revision})
        self._say_what_is_broken(fleet)
        vitals.revision, vitals.is_ready = fleet.revision, True
        parts.agent.commit = fleet.revision
        parts.journal.record_good_blobs(parts.store.good_blobs)
        return fleet

    def _say_how_it_is_followed(self) -> None:
        """The branch is known after the first read only; a note (polling instead of events) is logged once."""
        source = self._parts.source
        self._parts.vitals.source = source.description
        if source.note and source.note != self._note:
            log.warning(source.note, extra={"event": "SourceNote"})
        self._note = source.note

    def _say_what_is_broken(self, fleet: Fleet) -> None:
        """Once for the same errors, with the first of them; `validate` and `status` list them all."""
        errors = tuple(sorted(found for found in fleet.problems if found.severity is Severity.ERROR))
        if errors and errors != self._errors:
            log.warning(f"errors in the store: {len(errors)}; what they concern stays as it is",
                        extra={"event": "StoreBroken", "rev": fleet.revision, "err_code": errors[0].code,
                               "error": str(errors[0])})  # fmt: skip
        elif self._errors and not errors:
            log.info("no errors in the store any more", extra={"event": "StoreMended", "rev": fleet.revision})
        self._errors = errors

    def _is_refused(self, fleet: Fleet) -> bool:
        """Whether the store names no fleet, or another one than the journal."""
        bound, settings = self._parts.journal.fleet, fleet.settings
        if settings.name and bound in ("", settings.name, *settings.previous_names):
            if bound != settings.name:
                self._parts.journal.record_fleet(settings.name)
            self._parts.vitals.fleet = settings.name
            return False
        text = (
            f"the store names fleet {settings.name!r} and the journal belongs to {bound!r}; the last good revision "
            "stays in force"
        )
        if self._parts.vitals.source_error != text:
            log.error(text, extra={"event": "SourceFailed", "rev": fleet.revision})
        self._parts.vitals.source_error = text
        record_source_error(self._parts.journal, text)
        return True


def concerns_everything(before: Fleet | None, after: Fleet) -> bool:
    """Whether everything has to be looked at, not only what is decided otherwise."""
    if before is None or needs_other_members(before, after):
        return True
    # Copies that no decision speaks of were frozen, or are from now on.
    return (before.is_complete, before.frozen) != (after.is_complete, after.frozen)


def needs_other_members(before: Fleet | None, after: Fleet) -> bool:
    """Whether clusters have to be opened or left."""
    return before is None or before.clusters != after.clusters or before.settings != after.settings
