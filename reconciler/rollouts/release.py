"""The revision that goes over the clusters: HEAD's, or with `queue` the running one; and pins, which ask no gate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from reconciler.api.problem import Problem, warning
from reconciler.api.rollout_progress import Begin, Record, ReleaseFacts, Sight
from reconciler.api.rollouts import (
    Layout,
    OnFailure,
    OnNewCommit,
    Rollout,
    number_of,
)
from reconciler.observations import instant
from reconciler.rollouts.gate import has_failed, is_too_late
from reconciler.rollouts.record_book import RolloutRecords

_EPOCH = datetime.fromtimestamp(0, UTC)


def release_of_head(head: str, alike: frozenset[str], order: Sequence[str]) -> str:
    """Return the release of HEAD: the newest recorded revision that stages the same as HEAD, else HEAD.

    `alike`: those that do. A commit that leaves the staged templates alone is no new release, and a revert is the
    release of before.
    """
    return newest(alike - {head}, {}, order) or head


def newest(revisions: Set[str], begun_at: Mapping[str, str], order: Sequence[str]) -> str:
    """The newest of some revisions, by the branch, then by when it was begun; empty when there are none."""
    place = {revision: index for index, revision in enumerate(order)}
    begun = {revision: instant(begun_at.get(revision, "")) or _EPOCH for revision in revisions}
    return max(begun, key=lambda revision: (place.get(revision, -1), begun[revision], revision), default="")


def release_under_way(
    rollout: Rollout,
    layout: Layout,
    head: str,
    apart: frozenset[str],
    sights: Mapping[str, Sight],
    facts: ReleaseFacts,
    book: RolloutRecords,
) -> str:
    """Return the revision that goes over the clusters now. `apart`: clusters that are pinned and take no part.

    With `queue` the running one is finished first. It gives way when it cannot be: when its failures pause it, or when
    it is gone; and to an older one, which is a revert.
    """
    if rollout.on_new_commit is OnNewCommit.RESTART:
        return head
    known = {name for stage in layout.stages for name in stage.clusters} - apart
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
    for found in layout.stages:
        members = [name for name in found.clusters if name not in apart]
        gate, late = found.stage.gate, 0
        for name in members:
            record = book[name]
            if record.revision == running and record.completed_at:
                continue
            failed = record.revision == running and has_failed(name, gate, sights, book)
            if failed or is_too_late(name, running, gate, facts.away, book):
                late += 1
            else:
                is_finished = False
        if late > number_of(gate.max_failures, len(members), least=0) and gate.on_failure is OnFailure.PAUSE:
            return head
    return head if is_finished else running


def rollback_revisions(rollout: Rollout, record: Record, now: datetime) -> frozenset[str]:
    """Return the revisions that a cluster had completed, and left within `rollbackWindow`."""
    window = timedelta(seconds=rollout.rollback_window_s)
    left = {found.revision: instant(found.left_at) for found in record.earlier if rollout.rollback_window_s}
    return frozenset(name for name, at in left.items() if at is not None and now - at < window)


def rolls_back(rollout: Rollout, record: Record, facts: ReleaseFacts, now: datetime) -> bool:
    """Return whether HEAD takes a cluster back to what it had completed."""
    is_there = record.revision in facts.alike
    return not is_there and not facts.alike.isdisjoint(rollback_revisions(rollout, record, now))


def begin_rolled_back(
    rollout: Rollout, clusters: Iterable[str], release: str, facts: ReleaseFacts, book: RolloutRecords
) -> None:
    """Begin the release in all of these that roll back to it: no stage, gate, approval or window of a stage counts."""
    for cluster in clusters:
        is_free = cluster not in facts.away and cluster not in facts.closed
        if is_free and release in facts.alike and rolls_back(rollout, book[cluster], facts, book.now):
            book.note(Begin(cluster, release, book.text, is_rollback=True))


class Pin(NamedTuple):
    """The pin of a cluster. `subject`: the cluster or its stage; `revision` empty: it does not exist."""

    subject: str
    written: str
    revision: str

    @property
    def is_of_cluster(self) -> bool:
        """Return whether the cluster itself was pinned; such a cluster takes no part in its stage."""
        return self.subject.startswith("cluster ")


class Pins(NamedTuple):
    """The active pins by cluster and by stage, and their problems."""

    of_clusters: dict[str, Pin]
    of_stages: dict[str, Pin]
    problems: tuple[Problem, ...]


def pins_in_force(rollout: Rollout, layout: Layout, facts: ReleaseFacts) -> Pins:
    """Return the active pins. The pin of a cluster comes before that of its stage."""
    known, of_clusters, of_stages = layout.stage_of, {}, {}
    stages = {found.stage.name for found in layout.stages}
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
    for found in layout.stages:
        of_stage = of_stages.get(found.stage.name)
        if of_stage is not None:
            of_clusters |= {name: of_stage for name in found.clusters if name not in of_clusters}
    return Pins(of_clusters, of_stages, tuple(problems))


def begin_pinned(pins: Pins, facts: ReleaseFacts, book: RolloutRecords) -> None:
    """Make pinned revisions active wherever they are not; in an unreachable cluster, when it is back."""
    for cluster, pin in sorted(pins.of_clusters.items()):
        if pin.revision and book[cluster].revision != pin.revision and cluster not in facts.away:
            book.note(Begin(cluster, pin.revision, book.text))
