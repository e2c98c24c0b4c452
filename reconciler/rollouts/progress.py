"""The active revision of each cluster, and its next step: a pure function of records and observations.

Three rules: the target of a cluster is a revision; decisions of persons are in the Rollout; records can be read back
from the clusters. No cluster goes back by itself, and none has a turn before the gates of earlier stages. Source:
KubeFleet, Open Cluster Management, Rancher Fleet, Argo CD RollingSync, Sveltos and Karmada's proposal, and the issues
in which each of them falls short; ADR 18.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from reconciler.api.problem import Problem, error
from reconciler.api.refs import short_revision
from reconciler.api.rollout_progress import (
    Begin,
    ClusterProgress,
    GateMet,
    GateStatus,
    GateUnmet,
    Phase,
    Record,
    ReleaseFacts,
    RolloutProgress,
    StageKind,
    StageProgress,
    StageState,
)
from reconciler.api.rollouts import ChangeTime, Gate, Layout, Rollout, StageLayout
from reconciler.rollouts.gate import NOT_OBSERVED, has_failed_hook, note_success
from reconciler.rollouts.record_book import RolloutRecords
from reconciler.rollouts.release import Pins, begin_pinned, begin_rolled_back, newest, pins_in_force, release_under_way
from reconciler.rollouts.stage_slots import StageInputs, StageMembers, begin_due, leave


def progress(
    rollout: Rollout,
    layout: Layout,
    head: str,
    records: Mapping[str, Record],
    sights: Mapping[str, GateStatus],
    now: str,
    facts: ReleaseFacts,
) -> RolloutProgress:
    """Return the state of a rollout, the active revision of each cluster, and the changed records.

    `head`: the release of HEAD. `records`, `sights`: by cluster; a missing one is unknown. `now`:
    RFC 3339. Called again at the same time with its own records, it changes nothing more.
    """
    known = layout.stage_of
    present = {*known, *layout.outside}
    book = RolloutRecords({name: one for name, one in records.items() if name in present}, now, sights, facts)
    for name, entry in known.items():
        note_success(name, entry.stage.gate, book)
    pins = pins_in_force(rollout, layout, facts)
    begin_pinned(pins, book)
    # A cluster that is pinned itself takes no part in its stage.
    apart = frozenset(name for name, pin in pins.of_clusters.items() if pin.subject.startswith("cluster "))
    release = release_under_way(rollout, layout, head, frozenset(pins.of_clusters), book)
    inputs = StageInputs(
        release=release,
        approvals=rollout.approvals,
        is_removed=rollout.is_removed,
        # Clusters that stay as they are, since a revision is gone: the active one, or that of a pin.
        frozen=frozenset(
            {name for name in known if book[name].revision in facts.missing and name not in pins.of_clusters}
            | {name for name, pin in pins.of_clusters.items() if not pin.revision}
        ),
        book=book,
    )
    if layout.is_sound:
        _join(layout, pins, inputs)
        free = [name for name in known if name not in pins.of_clusters and name not in inputs.frozen]
        begin_rolled_back(rollout, free, release, book)
    states = _states(layout, pins, apart, inputs)
    is_waiting = any(state.kind in (StageKind.WAITS_FOR_STAGE, StageKind.UNCLEAR) for state in states)
    is_done = layout.is_sound and all(state.is_over for state in states)
    stages = tuple(
        StageProgress(name=entry.stage.name, clusters=entry.clusters, state=state)
        for entry, state in zip(layout.stages, states, strict=True)
    )
    return RolloutProgress(
        rollout=rollout.name,
        release=release,
        waiting=head if head != release else "",
        clusters={name: _cluster_progress(name, known.get(name), pins, inputs) for name in sorted(present)},
        stages=stages,
        changes=tuple(book.changes),
        records=book.records,
        look_again=book.next_check_at,
        deletions_due=frozenset(
            name
            for name in known
            if (is_done or rollout.deletions is not ChangeTime.LAST) and book[name].revision == release
        ),
        placement_due=rollout.placement is ChangeTime.NOW or not is_waiting,
        left=tuple(sorted(records.keys() - present)),
        is_done=is_done,
        problems=tuple(sorted({*layout.problems, *pins.problems, *_missing(rollout, inputs)})),
    )


def adopted(layout: Layout, revision: str, now: str) -> dict[str, Record]:
    """Return the first records of a Rollout over existing objects: `revision` is completed everywhere."""
    return {name: Record(revision=revision, begun_at=now, completed_at=now) for name in layout.stage_of}


def _join(layout: Layout, pins: Pins, inputs: StageInputs) -> None:
    """Begin new clusters at the newest proven revision: completed in their stage, else in one after it.

    What only an earlier stage completed may lack an approval, or be taken back for what was seen there. The release
    itself is proven by their own stage alone, so that no gate is left out, and then takes a slot as with a turn.
    """
    book, facts, release = inputs.book, inputs.book.facts, inputs.release
    places = {name: number for number, entry in enumerate(layout.stages) for name in entry.clusters}
    new = [name for name in places if not book[name].revision and name not in pins.of_clusters]
    if not new:
        return
    proven: dict[int, dict[str, str]] = {}
    for name, place in places.items():
        record = book[name]
        if record.completed_at and name not in pins.of_clusters and record.revision not in facts.missing:
            proven.setdefault(place, {})[record.revision] = record.begun_at
    stages = [StageMembers(inputs, entry, frozenset(pins.of_clusters)) for entry in layout.stages]
    for name in new:
        own, members = places[name], stages[places[name]]
        later = {one: at for place, of in proven.items() if place > own for one, at in of.items() if one != release}
        among = proven.get(own) or later
        start = newest(set(among), among, facts.order)
        if start and name not in facts.away and (start != release or members.has_room):
            book.note(Begin(name, start, book.text))
            note_success(name, members.layout.stage.gate, book)


def _states(layout: Layout, pins: Pins, apart: frozenset[str], inputs: StageInputs) -> list[StageState]:
    all_members = [StageMembers(inputs, entry, apart) for entry in layout.stages]
    states: list[StageState] = []
    blocking = ""
    for index, members in enumerate(all_members):
        name = members.layout.stage.name
        pin = pins.of_stages.get(name)
        if not layout.is_sound:
            state = StageState(StageKind.UNCLEAR)
        elif not members.names:
            state = StageState(StageKind.SKIPPED)
        elif pin is not None and pin.revision != inputs.release:
            state = StageState(StageKind.PINNED, pinned=pin.written)
        elif blocking:
            state = StageState(StageKind.WAITS_FOR_STAGE, stage=blocking)
            if members.is_paused:
                state = StageState(StageKind.PAUSED, failed=members.failed)
            elif members.is_over:
                state = StageState(StageKind.DONE)
            for waiting in members.names:
                inputs.reasons.setdefault(waiting, f"the stage {blocking} is not done")
        else:
            state = begin_due(members)
            # The conditions of a release that has come to all of them are not checked again.
            is_left = all(later.is_begun for later in all_members[index + 1 :])
            if state.kind is StageKind.DONE and not is_left:
                state = leave(members)
        if not blocking and not state.is_over:
            blocking = name
        states.append(state)
    return states


def _cluster_progress(name: str, entry: StageLayout | None, pins: Pins, inputs: StageInputs) -> ClusterProgress:
    record, pin = inputs.book[name], pins.of_clusters.get(name)
    if entry is None:
        return ClusterProgress(revision=record.revision, phase=Phase.BEHIND, why="it is in no stage")
    phase, why = _phase(name, entry, inputs)
    if name in inputs.frozen:
        gone = pin.written if pin else record.revision
        phase, why = Phase.FROZEN, f"the revision {short_revision(gone)} is not there; everything stays as it is"
    elif pin is not None:
        phase, why = Phase.PINNED, f"the {pin.subject} is pinned to {pin.written}"
        if record.revision != pin.revision:
            why = f"{why}, and it is away: {inputs.book.facts.away.get(name, '')}"
    return ClusterProgress(revision=record.revision, phase=phase, why=why, stage=entry.stage.name)


def _phase(name: str, entry: StageLayout, inputs: StageInputs) -> tuple[Phase, str]:
    record, gate = inputs.book[name], entry.stage.gate
    members = StageMembers(inputs, StageLayout(entry.stage, (name,)), frozenset())
    if members.is_done(name):
        return Phase.DONE, f"done since {record.completed_at}"
    if has_failed_hook(inputs.release, inputs.book.sights.get(name, NOT_OBSERVED)):
        return Phase.FAILED, _gate_words(name, gate, inputs)
    if members.has_failed(name):
        return Phase.FAILED, f"not within {gate.timeout_s}s: {_gate_words(name, gate, inputs)}"
    if record.revision == inputs.release:
        return Phase.RUNNING, _gate_words(name, gate, inputs)
    return Phase.BEHIND, inputs.reasons.get(name, "its turn has not come")


def _gate_words(name: str, gate: Gate, inputs: StageInputs) -> str:
    record, status = inputs.book[name], inputs.book.sights.get(name, NOT_OBSERVED)
    if record.revision != inputs.release:
        return inputs.book.facts.away.get(name, "it cannot be changed")
    if isinstance(status, GateMet):
        is_of_it = status.revision == record.revision
        return f"meets its gate since {record.steady_since}, for {gate.min_success_s}s" if is_of_it else "it begins"
    return status.why if isinstance(status, GateUnmet) else f"it does not tell: {status.why}"


def yielded(own: RolloutProgress, others: Iterable[RolloutProgress]) -> RolloutProgress:
    """Return the state of a Rollout that has nothing to begin: what it selects goes with the releases of others."""
    # A Rollout with errors may have no stages.
    unfinished = (f"{each.rollout}/{one.name}" for each in others for one in each.stages if not one.state.is_over)
    waits = next(unfinished, "of another Rollout")
    state = StageState(StageKind.WAITS_FOR_STAGE, stage=waits)
    behind = ClusterProgress(revision="", phase=Phase.BEHIND, why=f"the stage {waits} is not done")
    clusters = {name: replace(behind, stage=one.stage) for name, one in own.clusters.items()}
    stages = tuple(replace(one, state=state) for one in own.stages)
    return replace(own, changes=(), records={}, clusters=clusters, stages=stages)


def _missing(rollout: Rollout, inputs: StageInputs) -> list[Problem]:
    revisions = {name: inputs.book[name].revision for name in sorted(inputs.frozen)}
    return [
        error(
            rollout.source, "", "rollout-revision-missing",
            f"the revision {short_revision(revision)} in force there is gone, so that everything stays as it is; bring "
            f"the commit back, or pin it: {name}: {short_revision(inputs.release)} under spec.pin", name,
        )
        for name, revision in revisions.items()
        if revision in inputs.book.facts.missing
    ]  # fmt: skip
