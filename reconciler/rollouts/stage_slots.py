"""The clusters of one stage that have their turn now, and the reason of the stage's waiting.

Source: KubeFleet: maxConcurrency and the order inside a stage; Open Cluster Management: maxFailures; Rancher Fleet:
devices that are offline for long (an unreachable cluster has failed at the timeout, and then holds nobody up).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.api.fleet import Fleet
from reconciler.api.refs import is_named_by, short_revision
from reconciler.api.rollout_progress import Begin, StageKind, StageSlot, StageState
from reconciler.api.rollouts import Approval, OnFailure, Rollout, StageLayout, number_of
from reconciler.observations import is_in_force, later
from reconciler.policy import opening
from reconciler.regex import regex
from reconciler.rollouts.gate import has_failed, is_too_late, note_success
from reconciler.rollouts.record_book import RolloutRecords, later_of

_DAY_S: Final = 24 * 3600
_APPROVED_S: Final = 7 * _DAY_S
"""An approval without `until` ends so long after it was first seen."""
_PLAIN_NAME: Final = regex(r"[a-z][a-z0-9-]*[a-z0-9]")
_WORDS_OF_YAML: Final = frozenset({"yes", "no", "on", "off", "true", "false", "null"})
_NUMBER: Final = regex(r"[0-9]+(?:e[0-9]+)?")


class StageInputs(Struct, frozen=True, kw_only=True):
    """The inputs of the turns of all stages. `frozen`: clusters whose revision cannot be read."""

    release: str
    approvals: Sequence[Approval]
    is_removed: bool
    frozen: frozenset[str]
    book: RolloutRecords
    reasons: dict[str, str] = field(default_factory=dict)
    """The reason why a cluster has no turn, once found."""


class StageMembers:
    """The clusters of a stage that take part in it, and how they are beside the release."""

    __slots__ = ("inputs", "layout", "names")

    def __init__(self, inputs: StageInputs, layout: StageLayout, apart: frozenset[str]) -> None:
        """`apart`: those that are pinned by themselves."""
        self.inputs = inputs
        self.layout = layout
        self.names = [name for name in layout.clusters if name not in apart]

    def is_done(self, name: str) -> bool:
        """Return whether it has completed the release."""
        record = self.inputs.book[name]
        return record.revision == self.inputs.release and bool(record.completed_at)

    def has_failed(self, name: str) -> bool:
        """Return whether it did not complete the release in time."""
        inputs, gate = self.inputs, self.layout.stage.gate
        if inputs.book[name].revision == inputs.release:
            return has_failed(name, gate, inputs.book)
        return is_too_late(name, inputs.release, gate, inputs.book)

    def is_flying(self, name: str) -> bool:
        """Return whether the release is in progress there, or its turn has come while it is unreachable."""
        inputs, record = self.inputs, self.inputs.book[name]
        has_turn = record.turn == inputs.release and name in inputs.book.facts.away
        is_begun = record.revision == inputs.release and not record.completed_at
        return (is_begun or has_turn) and not self.has_failed(name)

    def is_disturbed(self, name: str) -> bool:
        """Return whether any revision is in progress there, and has not failed."""
        inputs, record = self.inputs, self.inputs.book[name]
        if record.revision in ("", inputs.release) or record.completed_at:
            return self.is_flying(name)
        return not has_failed(name, self.layout.stage.gate, inputs.book)

    @property
    def failed(self) -> tuple[str, ...]:
        """Return those that did not complete the release in time."""
        return tuple(name for name in self.names if self.has_failed(name))

    @property
    def is_paused(self) -> bool:
        """Return whether more failed than the gate tolerates, and that stops it."""
        gate = self.layout.stage.gate
        allowed = number_of(gate.max_failures, len(self.names), least=0)
        return gate.on_failure is OnFailure.PAUSE and len(self.failed) > allowed

    @property
    def has_room(self) -> bool:
        """Return whether one more of them may begin."""
        limit = number_of(self.layout.stage.max_concurrency, len(self.names), least=1)
        return sum(map(self.is_disturbed, self.names)) < limit and not self.is_paused

    @property
    def is_begun(self) -> bool:
        """Return whether the release has come to each of them, or they failed before it did."""
        release, book = self.inputs.release, self.inputs.book
        return all(book[name].revision == release or self.has_failed(name) for name in self.names)

    @property
    def is_over(self) -> bool:
        """Return whether each of them is done, or failed within tolerance."""
        return all(self.is_done(name) or self.has_failed(name) for name in self.names)


def begin_due(members: StageMembers) -> StageState:
    """Begin the due clusters of a stage, and return its state. Its earlier stages are over."""
    if members.is_paused:
        return StageState(StageKind.PAUSED, failed=members.failed)
    until = _begin(members)
    if members.is_over:
        return StageState(StageKind.DONE)
    if until is not None and not any(members.is_flying(name) for name in members.names):
        return StageState(StageKind.WAITS_FOR_WINDOW, until=until)
    return StageState(StageKind.RUNNING, done=sum(map(members.is_done, members.names)), total=len(members.names))


def _begin(members: StageMembers) -> str | None:
    """Begin as many as may be under way at once; return the end of a closed window, None if it is open."""
    inputs, stage = members.inputs, members.layout.stage
    book, facts = inputs.book, inputs.book.facts
    waiting = [name for name in members.names if book[name].revision != inputs.release and name not in inputs.frozen]
    if not waiting:
        return None
    window = opening(stage.windows, book.now)
    if window.until is not None:
        book.is_past(window.until, f"stage {stage.name}")
    if not window.is_open:
        until = window.until_text
        inputs.reasons.update(dict.fromkeys(waiting, f"its window is closed{_until(until)}"))
        return until
    limit = number_of(stage.max_concurrency, len(members.names), least=1)
    flying = {name for name in members.names if members.is_flying(name)}
    disturbed = {name for name in members.names if members.is_disturbed(name)}
    # Those that an earlier release left on their way come first: they are disturbed already.
    for name in sorted(waiting, key=lambda name: name not in disturbed):
        away = facts.away.get(name)
        if name in facts.closed:
            book.check_at(facts.closed[name], name)
            inputs.reasons[name] = f"a window of the fleet is closed{_until(facts.closed[name])}"
        elif away is not None and book[name].turn == inputs.release:
            inputs.reasons[name] = f"its turn has come, and it is away: {away}"
        elif len(flying) >= limit or (len(disturbed) >= limit and name not in disturbed):
            inputs.reasons[name] = f"{limit} of its stage {'change' if limit > 1 else 'changes'} at once"
        else:
            if away is not None:
                book.note(StageSlot(name, inputs.release, book.text))
                inputs.reasons[name] = f"its turn has come, and it is away: {away}"
            else:
                book.note(Begin(name, inputs.release, book.text))
                note_success(name, stage.gate, book)
            for among, is_among in ((flying, members.is_flying), (disturbed, members.is_disturbed)):
                (among.add if is_among(name) else among.discard)(name)
    return None


def _until(text: str) -> str:
    return f" until {text}" if text else ""


def leave(members: StageMembers) -> StageState:
    """Return the state of a finished stage: its conditions before the next one begins."""
    inputs, after, name = members.inputs, members.layout.stage.after, members.layout.stage.name
    book = inputs.book
    ended = ""
    for cluster in members.names:
        record = book[cluster]
        failed_at = later(record.begun_at or record.turn_at, members.layout.stage.gate.timeout_s)
        ended = later_of(ended, record.completed_at if members.is_done(cluster) else failed_at)
    until = "" if not after.wait_s or book.is_over(ended, after.wait_s, f"stage {name}") else later(ended, after.wait_s)
    approvals = [one for one in inputs.approvals if one.stage == name and is_named_by(inputs.release, one.revision)]
    approval = next((one for one in approvals if is_in_force(one, book.text)), None)
    if after.approval and approval is not None:
        book.check_at(approval.until, f"stage {name}")
    elif after.approval:
        over = max((one.until for one in approvals), default="")
        # The same entry once more would be the one that ended. By the day, so that not every look says another end.
        anew = later(f"{book.text[:10]}T00:00:00Z", _APPROVED_S + _DAY_S) if over else ""
        back = "  # bring the document of the Rollout back first" if inputs.is_removed else ""
        entry = f"- {approval_entry(name, short_revision(inputs.release), anew)}{back}"
        return StageState(StageKind.WAITS_FOR_APPROVAL, entry=entry, until=until, ended=over)
    return StageState(StageKind.WAITS_FOR_TIME if until else StageKind.DONE, until=until)


def approval_entry(stage: str, revision: str, until: str = "") -> str:
    """Return an entry of `spec.approvals` on one line, in which YAML reads texts and nothing else.

    >>> approval_entry("canary", "5f3c9d2"), approval_entry("no", "1234567")
    ('{stage: canary, revision: 5f3c9d2}', '{stage: "no", revision: "1234567"}')
    """
    is_name = _PLAIN_NAME.fullmatch(stage) and stage not in _WORDS_OF_YAML
    name = stage if is_name else f'"{stage}"'
    end = f', until: "{until}"' if until else ""
    written = f'"{revision}"' if _NUMBER.fullmatch(revision) else revision
    return f"{{stage: {name}, revision: {written}{end}}}"


def approved_since(known: Mapping[str, str], fleet: Fleet, now: str) -> dict[str, str]:
    """Return since when approvals without `until` are written. `known`: what was recorded of the revision before."""
    keys = (_approval_key(rollout, one) for rollout in fleet.rollouts for one in rollout.approvals if not one.until)
    return {key: known.get(key, now) for key in keys}


def with_ends(rollout: Rollout, since: Mapping[str, str]) -> Rollout:
    """Return a Rollout whose approvals end. `since`: of `approved_since`. Source: design#confirm."""
    ended = tuple(
        replace(one, until=later(since[key], _APPROVED_S)) if (key := _approval_key(rollout, one)) in since else one
        for one in rollout.approvals
    )
    return replace(rollout, approvals=ended) if ended != rollout.approvals else rollout


def _approval_key(rollout: Rollout, approval: Approval) -> str:
    return f"{rollout.name} {approval.stage} {approval.revision}" if not approval.until else ""
