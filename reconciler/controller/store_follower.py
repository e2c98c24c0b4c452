"""Read the store into force: a fleet that cannot be read, or is another one, never takes the place of the last.

Source: design#last-good-revision.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import cache
from itertools import groupby
from typing import Final

from reconciler.api.fleet import Fleet, Snapshot
from reconciler.api.ledger import EventKind, ReviewConfirmation
from reconciler.api.problem import Problem, Severity
from reconciler.api.refs import short_revision
from reconciler.containment import INTERNAL_ERROR, TryResult, fault_fields, try_await
from reconciler.controller import timing
from reconciler.controller.loop_state import LoopParts
from reconciler.controller.once.planning import rename_advice
from reconciler.controller.round.episodes import STORE, Episodes
from reconciler.controller.round.record_round import record_source_error
from reconciler.controller.tasks import in_thread
from reconciler.controller.vitals.logs import Transitions
from reconciler.controller.vitals.service_vitals import RoundPhase
from reconciler.errors import StoreError, StoreFault
from reconciler.fleet import LAST_GOOD, why_nameless
from reconciler.lint import HeldDifference, confirmation_of, held_difference, with_confirmation
from reconciler.ownership import fleet_names
from reconciler.planner import with_former_suspensions
from reconciler.report.status.remedies import todo_of
from reconciler.rollouts import refused_without_revisions

log = logging.getLogger("reconciler")
_CONFIRMATIONS_MAX: Final = 10
"""So many confirmations at most are judged one by one: each costs as much as a review."""


class StoreFollower:
    """Reads the store on request; logs its faults once, and shows them until they are fixed.

    A revision that was refused stays refused until another one is read. The active revision is the last accepted one;
    the journal names it, so that a restart goes on with it.
    """

    def __init__(self, parts: LoopParts) -> None:
        self.fleet: Fleet | None = None
        """The last fleet that became active."""
        self._parts = parts
        self.leave_once: Callable[[], Awaitable[bool]] | None = None
        """Has the process that acts next know by which revision this one acts; None: there is none."""
        self._confirmation = ReviewConfirmation()
        """Of the revision that was judged last."""
        self._note = ""
        self._errors: tuple[Problem, ...] = ()
        self._refusal = ""
        self._is_in_force = False
        self._faults = Transitions()
        self._transitions = Transitions()
        self._episodes = Episodes(parts.journal, (EventKind.SOURCE_FAILED, EventKind.STORE_BROKEN))

    async def read(self) -> Fleet | None:
        """Return the fleet when a new one becomes active; None: the active one stays, also after a fault of ours."""
        parts = self._parts
        parts.beat(RoundPhase.READ_STORE)
        read = await try_await(parts.source.read())
        if read.fault is not None:
            return await self._without(self._why_not(read.fault, parts.source.name))
        snapshot = read.value
        parts.vitals.source_read_at = parts.access.clock.now()
        # The branch is known after the first read only; a note (polling instead of events) is logged once.
        source = self._parts.source
        self._parts.vitals.source = source.description
        if source.note and source.note != self._note:
            log.warning(source.note, extra={"event": "SourceNote"})
        self._note = source.note
        if snapshot is not None:
            fleet, self._refusal = await self._judged(snapshot)
            if fleet is not None:
                self._recovered()
                return await self._accept(fleet)
        if self._refusal:
            return await self._without(self._refusal)
        self._recovered()
        return None

    async def changed(self) -> None:
        """Return when the store is to be read again; a server that is followed is asked meanwhile."""
        change = await try_await(self._parts.source.changed())
        if change.fault is not None:
            # Whether it changed is not known then, so it is read.
            text = "the store cannot be watched for a fault of the program; it is read now and then"
            self._transitions.fault("store", change.fault, text, **fault_fields())
            await self._parts.access.clock.sleep(timing.CHECK_S)

    async def at(self, revision: str) -> Fleet | None:
        """Return the fleet of an older revision; None: it cannot be read. A fault of ours is logged once."""
        fleet = await try_await(in_thread(self._fleet_at, revision))
        if fleet.fault is not None:
            message = "an older revision of the store cannot be read for a fault of the program"
            self._transitions.fault(revision, fleet.fault, message, rev=revision, **fault_fields())
        return fleet.value

    def _fleet_at(self, revision: str) -> Fleet | None:
        snapshot = self._parts.source.recall(revision)
        return self._parts.store.fleet_at(snapshot) if snapshot is not None else None

    async def _judged(self, snapshot: Snapshot) -> tuple[Fleet | None, str]:
        """The fleet of a snapshot; None and why: it may not come into force."""
        parts = self._parts
        parts.beat(RoundPhase.PARSE, len(snapshot.files), f"parsing {len(snapshot.files)} files")
        parsed = await try_await(in_thread(parts.store.parse, snapshot))
        if parsed.value is None:
            assert parsed.fault is not None, "what gives nothing has failed"
            return None, self._why_not(
                parsed.fault, f"revision {short_revision(snapshot.revision).removeprefix('dir:')}"
            )
        why = self._why_refused(parsed.value)
        if why:
            parts.store.reject()
            return None, why
        self._confirmation = await self._confirmed(parsed.value, snapshot)
        fleet = with_confirmation(parsed.value, self._confirmation)
        return with_former_suspensions(fleet, parts.journal.losses().guards), ""

    async def _confirmed(self, fleet: Fleet, snapshot: Snapshot) -> ReviewConfirmation:
        known, written = self._parts.journal.confirmation(), fleet.settings.review_confirm
        former = self._parts.journal.revision_in_force
        if former in ("", fleet.revision):
            fresh = ReviewConfirmation(revision=fleet.revision, written=written, expected=written, counts=written)
            return known if known.written == written else fresh
        judged = await try_await(in_thread(self._judged_since, former, known, fleet, snapshot))
        if judged.fault is not None:
            self._why_not(judged.fault, self._parts.source.name)
        unjudged = ReviewConfirmation(revision=fleet.revision, written=written)
        return judged.value or (known if known.written == written else unjudged)

    def _judged_since(
        self, former: str, known: ReviewConfirmation, fleet: Fleet, snapshot: Snapshot
    ) -> ReviewConfirmation:
        """Return the newest confirmation of settings, by all commits since the revision in force. Reads files."""
        source, store, head = self._parts.source, self._parts.store, fleet.settings.review_confirm
        commits = source.commits_since(former, fleet.revision)
        if len(commits) == 1 and head == known.written:
            return known
        older = [source.recall(commit) for commit in (former, *commits[:-1])]
        sides = [(side, store.files_at(side)) if side is not None else None for side in (*older, snapshot)]
        written = [known.written]
        for _, files in filter(None, sides[1:-1]):
            # A commit that breaks the Fleet document leaves it as it was.
            written.append(next((one.review_confirm for file in files for one in file.settings), written[-1]))
        written.append(head)
        if set(written) == {head}:
            return known
        if len(written) < len(sides) or len(list(groupby(written))) > _CONFIRMATIONS_MAX:
            sides, written = [sides[0], sides[-1]], [known.written, head]

        @cache
        def fleet_of(index: int) -> Fleet | None:
            side = sides[index]
            return fleet if side is sides[-1] else store.fleet_at(side[0]) if side is not None else None

        @cache
        def difference(first: int, last: int) -> HeldDifference:
            before, after, fleets = sides[first], sides[last], (fleet_of(first), fleet_of(last))
            if before is None or after is None or fleets[0] is None or fleets[1] is None:
                return HeldDifference(("", ""), loosens=True)
            return held_difference((before, after), (fleets[0], fleets[1]))

        return confirmation_of(fleet.revision, written, difference)

    def _why_not(self, fault: Exception, subject: str) -> str:
        """Return the reason of a failure; log an internal fault with its trace."""
        if isinstance(fault, StoreError) and not isinstance(fault, StoreFault):
            return str(fault)
        cause = fault.__cause__ if isinstance(fault, StoreFault) and isinstance(fault.__cause__, Exception) else fault
        self._faults.fault(subject, cause, "the store cannot be followed for a fault of the program", **fault_fields())
        if isinstance(fault, StoreFault):
            return str(fault)
        return f"{subject}: {INTERNAL_ERROR}: it cannot be read: {type(fault).__name__}; please report it"

    async def _accept(self, fleet: Fleet) -> Fleet:
        parts, vitals, name = self._parts, self._parts.vitals, fleet.settings.name
        log.info("the store advanced", extra={"event": "SourceAdvanced", "rev": fleet.revision})
        self._log_problems(fleet)
        if parts.journal.fleet != name:
            parts.journal.record_fleet(name)
        vitals.fleet, vitals.revision, vitals.is_ready = name, fleet.revision, True
        parts.agent.take_up(name, fleet.revision)
        good_blobs = parts.store.good_blobs
        accepted = await try_await(in_thread(parts.source.accept, fleet.revision, good_blobs))
        if accepted.fault is not None:
            why = self._why_not(accepted.fault, parts.source.name)
            log.warning("the revision in force cannot be kept for a restart",
                        extra={"event": "SourceNotKept", "rev": fleet.revision, "error": why})  # fmt: skip
        if parts.journal.revision_in_force != fleet.revision:
            before = parts.journal.revision_in_force
            data = {"revision": fleet.revision, **({"before": before} if before else {})}
            parts.journal.record_event(EventKind.ADVANCED, STORE, data, parts.access.clock.now())
        parts.journal.record_confirmation(self._confirmation)
        parts.journal.record_in_force(fleet.revision, good_blobs)
        parts.journal.keep_history(fleet.settings.history, parts.access.clock.now())
        if self.leave_once is not None:
            await self.leave_once()  # Before anything is done by it.
        self._is_in_force, self.fleet = True, fleet
        return fleet

    async def _without(self, error: str) -> Fleet | None:
        """Keep the active revision. After a start, activate the former one."""
        vitals = self._parts.vitals
        if vitals.source_error != error:
            stays = "the last good revision stays in force" if self._is_in_force else "nothing of it is followed"
            extra = {"event": "SourceFailed", "error": error, "todo": todo_of(EventKind.SOURCE_FAILED, STORE, {})}
            log.error(f"the store cannot be followed; {stays}", extra=extra)
        vitals.source_error = error
        record_source_error(self._parts.journal, error)
        vitals.status.wake()
        self._episodes.update(EventKind.SOURCE_FAILED, {STORE: {"why": error}}, self._parts.access.clock.now(), over=())
        return None if self._is_in_force else await self._recalled()

    async def _recalled(self) -> Fleet | None:
        parts = self._parts
        revision = parts.journal.revision_in_force
        recalled = await try_await(in_thread(parts.source.recall, revision)) if revision else TryResult(None)
        if recalled.fault is not None:
            self._why_not(recalled.fault, parts.source.name)
        snapshot = recalled.value
        if snapshot is None:
            return None
        fleet, _ = await self._judged(snapshot)
        if fleet is None:
            return None
        log.info("going on with the revision that was in force before",
                 extra={"event": "SourceRecalled", "rev": revision})  # fmt: skip
        return await self._accept(fleet)

    def _recovered(self) -> None:
        vitals = self._parts.vitals
        self._faults = Transitions()
        self._episodes.update(EventKind.SOURCE_FAILED, {}, self._parts.access.clock.now(), over=(STORE,))
        if vitals.source_error:
            record_source_error(self._parts.journal, "")
            log.info("the store can be followed again", extra={"event": "SourceRecovered"})
            vitals.status.wake()
        vitals.source_error = ""

    def _log_problems(self, fleet: Fleet) -> None:
        """Once for the same errors, with the first of them; `validate` and `status` list them all."""
        errors = tuple([problem for problem in fleet.problems if problem.severity is Severity.ERROR])
        # Its author is behind it, also where other commits came in the same moment.
        culprit = self._parts.commits.last_change(fleet.revision, errors[0].source.path) if errors else ""
        held = {STORE: {"why": str(errors[0]), "code": errors[0].code, "revision": culprit,
                        "errors": len(errors)}} if errors else {}  # fmt: skip
        if errors and errors != self._errors:
            commit = self._parts.commits.words(culprit)
            # The last good content of a file stays active, and is maintained in the clusters.
            has_last_good = any(problem.code == LAST_GOOD for problem in fleet.problems)
            effect = "what they concern stays as it is"
            if has_last_good:
                effect = "the last good content of files stays in force, and what else they concern stays as it is"
            log.warning(f"errors in the store: {len(errors)}; {effect}",
                        extra={"event": "StoreBroken", "rev": culprit, "author": commit and commit.author,
                               "err_code": errors[0].code, "error": str(errors[0]),
                               "todo": todo_of(EventKind.STORE_BROKEN, STORE, held[STORE])})  # fmt: skip
        elif self._errors and not errors:
            log.info("no errors in the store any more", extra={"event": "StoreMended", "rev": fleet.revision})
        self._errors = errors
        self._episodes.update(EventKind.STORE_BROKEN, held, self._parts.access.clock.now(), over=(STORE,))

    def _why_refused(self, fleet: Fleet) -> str:
        """Return why the store may not become active; empty: it may.

        It names no fleet, or another one than the journal, or is a directory with Rollouts, which need revisions.
        """
        bound, settings = self._parts.journal.fleet, fleet.settings
        revision = f"revision {short_revision(fleet.revision).removeprefix('dir:')} is refused"
        if settings.name and bound in ("", *fleet_names(settings)):
            refused = refused_without_revisions(fleet.rollouts) if fleet.revision.startswith("dir:") else ()
            return f"{revision}: {'; '.join(map(str, refused))}" if refused else ""
        if not settings.name:
            return f"{revision}: {why_nameless(fleet)}"
        return (
            f"{revision}: it names fleet {settings.name!r} and the journal belongs to {bound!r}; "
            f"{rename_advice(bound, settings.name)}"
        )


def concerns_everything(before: Fleet | None, after: Fleet) -> bool:
    """Return whether everything has to be evaluated, not only rescheduled objects."""
    if before is None or before.settings != after.settings or not before.clusters.keys() <= after.clusters.keys():
        return True
    if any(policy.suspension.former is not None for policy in after.propagation):
        return True  # The round records that this revision was judged, whatever the policy has.
    both = before.clusters.keys() & after.clusters.keys()
    if any(before.clusters[name].pulls != after.clusters[name].pulls for name in both):
        return True
    # Copies that no schedule speaks of were frozen, or are from now on.
    return (before.is_complete, before.frozen) != (after.is_complete, after.frozen)


def needs_other_members(before: Fleet | None, after: Fleet) -> bool:
    """Return whether clusters have to be opened or left."""
    return before is None or before.clusters != after.clusters or before.settings != after.settings
