"""The revision that goes over the clusters: HEAD's, or with `queue` the running one; and pins, which ask no gate.

A release under way keeps the document with which it began. Source: design#rollouts-stricter, as design#guards-stricter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from msgspec.structs import replace

from reconciler.api.clusters import Cluster
from reconciler.api.fleet import Fleet, LooseningHold
from reconciler.api.policies import ClusterAffinity
from reconciler.api.problem import Problem, warning
from reconciler.api.refs import short_revision
from reconciler.api.rollout_progress import Begin, Record, ReleaseFacts
from reconciler.api.rollouts import (
    Amount,
    ChangeTime,
    Gate,
    Layout,
    OnFailure,
    OnNewCommit,
    Rollout,
    Stage,
    Window,
    WindowKind,
    number_of,
)
from reconciler.incremental import by_key
from reconciler.observations import instant
from reconciler.placement import bare
from reconciler.rollouts.gate import has_failed, is_too_late
from reconciler.rollouts.layout import lay_out
from reconciler.rollouts.record_book import RolloutRecords

_EPOCH = datetime.fromtimestamp(0, UTC)


def newest(revisions: Set[str], begun_at: Mapping[str, str], order: Sequence[str]) -> str:
    """Return the newest of some revisions, by the branch, then by when it was begun; empty when there are none."""
    place = {revision: index for index, revision in enumerate(order)}
    begun = {revision: instant(begun_at.get(revision, "")) or _EPOCH for revision in revisions}
    return max(begun, key=lambda revision: (place.get(revision, -1), begun[revision], revision), default="")


def release_under_way(rollout: Rollout, layout: Layout, head: str, apart: frozenset[str], book: RolloutRecords) -> str:
    """Return the revision that goes over the clusters now. `apart`: clusters that are pinned and take no part.

    With `queue` the running one is finished first. It gives way when it cannot be: when its failures pause it, or when
    it is gone; and to an older one, which is a revert.
    """
    if rollout.on_new_commit is OnNewCommit.RESTART:
        return head
    facts, known = book.facts, {name for stage in layout.stages for name in stage.clusters} - apart
    begun: dict[str, str] = {}
    for record in (book[name] for name in known if book[name].revision):
        begun[record.revision] = max(begun.get(record.revision, ""), record.begun_at)
    running = newest(begun.keys(), begun, facts.order)
    place = {revision: index for index, revision in enumerate(facts.order)}
    is_revert = head in place and place[head] < place.get(running, len(place))
    is_revert |= any(rolls_back(rollout, book[name], facts, book.now) for name in known)
    if running in ("", head) or running in facts.missing or is_revert:
        return head
    is_finished = True
    for entry in layout.stages:
        members = [name for name in entry.clusters if name not in apart]
        gate, late = entry.stage.gate, 0
        for name in members:
            record = book[name]
            if record.revision == running and record.completed_at:
                continue
            failed = record.revision == running and has_failed(name, gate, book)
            if failed or is_too_late(name, running, gate, book):
                late += 1
            else:
                is_finished = False
        if late > number_of(gate.max_failures, len(members), least=0) and gate.on_failure is OnFailure.PAUSE:
            return head
    return head if is_finished else running


def rollback_revisions(rollout: Rollout, record: Record, now: datetime) -> frozenset[str]:
    """Return the revisions that a cluster had completed, and left within `rollbackWindow`."""
    window = timedelta(seconds=rollout.rollback_window_s)
    left = {release.revision: instant(release.left_at) for release in record.earlier if rollout.rollback_window_s}
    return frozenset(name for name, at in left.items() if at is not None and now - at < window)


def rolls_back(rollout: Rollout, record: Record, facts: ReleaseFacts, now: datetime) -> bool:
    """Return whether HEAD takes a cluster back to what it had completed."""
    return record.revision not in facts.alike and bool(facts.alike & rollback_revisions(rollout, record, now))


def begin_rolled_back(rollout: Rollout, clusters: Iterable[str], release: str, book: RolloutRecords) -> None:
    """Begin the release in all of these that roll back to it: no stage, gate, approval or window of a stage counts."""
    facts = book.facts
    for cluster in clusters:
        is_free = cluster not in facts.away and cluster not in facts.closed
        if is_free and release in facts.alike and rolls_back(rollout, book[cluster], facts, book.now):
            book.note(Begin(cluster, release, book.text, is_rollback=True))


class Pin(NamedTuple):
    """The pin of a cluster. `subject`: the cluster or its stage; `revision` empty: it does not exist."""

    subject: str
    written: str
    revision: str


class Pins(NamedTuple):
    """The active pins by cluster and by stage, and their problems."""

    of_clusters: dict[str, Pin]
    of_stages: dict[str, Pin]
    problems: tuple[Problem, ...]


def pins_in_force(rollout: Rollout, layout: Layout, facts: ReleaseFacts) -> Pins:
    """Return the active pins. The pin of a cluster comes before that of its stage."""
    known, of_clusters, of_stages = layout.stage_of, {}, {}
    stages = {entry.stage.name for entry in layout.stages}
    problems = []
    for subject, written in rollout.pins.items():
        revision = facts.pinned.get(written, "")
        pin = Pin(f"{'stage' if subject in stages else 'cluster'} {subject}", written, revision)
        if revision in facts.missing:
            pin = pin._replace(revision="")
        if subject in stages:
            of_stages[subject] = pin
        elif subject in known:
            of_clusters[subject] = pin
        else:
            message = f"{subject} is neither a stage nor a cluster"
            problems.append(warning(rollout.source, "spec.pin", "rollout-pin-unknown", message))
            continue
        if pin.revision:
            message = f"the {pin.subject} is pinned to {written}"
            problems.append(warning(rollout.source, "spec.pin", "rollout-pinned", message))
        else:
            message = f"the {pin.subject} is pinned to {written}, which is not there; it stays as it is"
            code = "rollout-revision-missing"
            problems.append(Problem(source=rollout.source, path="spec.pin", code=code, message=message))
    for entry in layout.stages:
        of_stage = of_stages.get(entry.stage.name)
        if of_stage is not None:
            of_clusters |= {name: of_stage for name in entry.clusters if name not in of_clusters}
    return Pins(of_clusters, of_stages, tuple(problems))


def begin_pinned(pins: Pins, book: RolloutRecords) -> None:
    """Make pinned revisions active wherever they are not; in an unreachable cluster, when it is back."""
    for cluster, pin in sorted(pins.of_clusters.items()):
        if pin.revision and book[cluster].revision != pin.revision and cluster not in book.facts.away:
            book.note(Begin(cluster, pin.revision, book.text))


_OF_ROLLOUT: Final = frozenset(
    {"approvals", "pins", "on_new_commit", "deletions", "placement", "rollback_window_s", "stages"}
)
_OF_STAGE: Final = frozenset({"max_concurrency", "after", "gate", "windows"})
_OF_GATE: Final = frozenset(
    {"healthy", "checks", "metrics", "min_success_s", "timeout_s", "max_failures", "on_failure"}
)


def rollout_documents(head: Fleet, written_in: Mapping[str, Fleet]) -> dict[str, Rollout]:
    """Return the active Rollouts by name while releases are under way. `written_in`: the fleet of each document.

    One that HEAD removes or loosens stays but for approvals, pins and `onNewCommit`; a new one takes nothing of others.
    A new `spec.review.confirm` lets HEAD's pass, as does `spec.review.loosening: allow` unless removed.
    """
    rollouts = {rollout.name: rollout for rollout in head.rollouts}
    confirmed = head.settings.review_confirm
    for name, fleet in written_in.items():
        before = next((each for each in fleet.rollouts if each.name == name), None)
        is_confirmed = bool(confirmed) and confirmed != fleet.settings.review_confirm
        after = rollouts.get(name)
        is_same = before is after and fleet.clusters == head.clusters
        if head.revision == fleet.revision or is_confirmed or is_same:
            continue
        is_held = LooseningHold.HOLD in (fleet.settings.loosening, head.settings.loosening)
        if after is None and before is not None:
            rollouts[name] = replace(before, is_removed=True)
        elif before is None and after is not None and is_held:
            rollouts[name] = replace(after, is_yielding=True)
        elif before is not None and after is not None and is_held:
            stages = _stages_kept(before, fleet.clusters, head.clusters)
            if stages is not before.stages or is_looser(before, after):
                of_head = {field: getattr(after, field) for field in ("approvals", "pins", "on_new_commit", "source")}
                rollouts[name] = replace(before, stages=stages, **of_head)
    return rollouts


def _stages_kept(rollout: Rollout, then: Mapping[str, Cluster], now: Mapping[str, Cluster]) -> tuple[Stage, ...]:
    """Return the stages; with their clusters of then, if labels take one of these to another stage now."""
    was, homes = (
        {name: entry.stage.name for name, entry in lay_out(rollout, clusters).stage_of.items()}
        for clusters in (then, now)
    )
    staying = {name: stage for name, stage in was.items() if name in now}
    if staying.items() <= homes.items():
        return rollout.stages
    homes |= staying
    stages = []
    for stage in rollout.stages:
        names = tuple(name for name, home in homes.items() if home == stage.name)
        clusters = ClusterAffinity(cluster_names=names) if names else ClusterAffinity(exclude=tuple(now))
        stages.append(replace(stage, clusters=clusters))
    return tuple(stages)


def kept_problem(old: Rollout, head: Fleet, revision: str) -> Problem:
    """Return what is said of a Rollout whose document in HEAD is not in force yet. `revision`: of the one that is."""
    is_removed = all(each.name != old.name for each in head.rollouts)
    gone = ", and is approved only once its document is back" if is_removed else ""
    message = (
        f"Rollout {old.name} came while releases of others are under way; what these select continues with them until "
        "they are completed"
        if old.is_yielding
        else f"Rollout {old.name} was {'removed' if is_removed else 'loosened'} while its release is under way; it "
        f"goes on as {short_revision(revision)} has it until the release is completed{gone}"
    )
    message += (
        "; to let it pass now, revert the change and make it again with the spec.review.confirm that its review names"
    )
    return warning(old.source, "", "rollout-kept-in-force", message)


def is_looser(before: Rollout, after: Rollout) -> bool:
    """Return whether a change of a Rollout loosens it, or cannot be compared."""
    return (
        (before.deletions, after.deletions) == (ChangeTime.LAST, ChangeTime.WITH_STAGE)
        or (before.placement, after.placement) == (ChangeTime.LAST, ChangeTime.NOW)
        or after.rollback_window_s > before.rollback_window_s
        or len(before.stages) != len(after.stages)
        or _differs(before, after, _OF_ROLLOUT)
        or any(_is_looser_stage(*pair) for pair in zip(before.stages, after.stages, strict=True))
    )


def _differs(before: object, after: object, compared: frozenset[str]) -> bool:
    """Return whether a field differs that no rule here compares, such as names and clusters."""
    old, new = ({name: value for name, value in bare(one).items() if name not in compared} for one in (before, after))
    return bool(old != new)


def _is_looser_stage(before: Stage, after: Stage) -> bool:
    return (
        _differs(before, after, _OF_STAGE)
        or _is_more(before.max_concurrency, after.max_concurrency)
        or after.after.wait_s < before.after.wait_s
        or (before.after.approval and not after.after.approval)
        or _is_looser_gate(before.gate, after.gate)
        or _are_looser_windows(before.windows, after.windows)
    )


def _is_looser_gate(before: Gate, after: Gate) -> bool:
    """Return whether something may pass earlier, which a shorter time until a failure does where clusters may fail."""
    may_fail = after.on_failure is OnFailure.CONTINUE or after.max_failures != Amount(0)
    return (
        _differs(before, after, _OF_GATE)
        or (before.healthy and not after.healthy)
        or any(check not in bare(after.checks) for check in bare(before.checks))
        or any(metric not in bare(after.metrics) for metric in bare(before.metrics))
        or after.min_success_s < before.min_success_s
        or (after.timeout_s < before.timeout_s and may_fail)
        or _is_more(before.max_failures, after.max_failures)
        or (before.on_failure, after.on_failure) == (OnFailure.PAUSE, OnFailure.CONTINUE)
    )


def _is_more(before: Amount, after: Amount) -> bool:
    """Return whether more clusters are meant; of a number and a share nobody knows."""
    return before.is_percent is not after.is_percent or after.number > before.number


def _are_looser_windows(before: tuple[Window, ...], after: tuple[Window, ...]) -> bool:
    """Return whether a closed time may be open now: a deny window went, or an allow window came or was the last."""
    was, is_now = (by_key((one.kind, bare(one)) for one in side) for side in (before, after))
    allowed, allowed_now = (side.get(WindowKind.ALLOW, []) for side in (was, is_now))
    is_wider = bool(allowed) and (not allowed_now or any(window not in allowed for window in allowed_now))
    denied, denied_now = (side.get(WindowKind.DENY, []) for side in (was, is_now))
    return is_wider or any(window not in denied_now for window in denied)
