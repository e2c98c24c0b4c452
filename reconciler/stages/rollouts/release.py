"""The revision that goes over the clusters: HEAD's, or with `queue` the running one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reconciler.model.rollouts.amount import number_of
from reconciler.model.rollouts.layout import Layout
from reconciler.model.rollouts.record import Facts, Record, Sight
from reconciler.model.rollouts.rollout import OnFailure, OnNewCommit, Rollout
from reconciler.stages.observations import instant
from reconciler.stages.rollouts.book import Book
from reconciler.stages.rollouts.gate import has_failed, is_too_late


def release_of_head(head: str, digests: Mapping[str, str], order: Sequence[str]) -> str:
    """Return the release of HEAD: the newest recorded revision that stages the same as HEAD, else HEAD.

    `digests`: of the staged templates at HEAD and at each recorded revision. A commit that leaves them alone is no new
    release, and a revert is the release of before.
    """
    wanted = digests[head]
    alike = {revision for revision, digest in digests.items() if digest == wanted and revision != head}
    return newest(alike, {}, order) or head


def newest(revisions: set[str], begun_at: Mapping[str, str], order: Sequence[str]) -> str:
    """The newest of some revisions, by the branch, then by when it was begun; empty when there are none."""
    place = {revision: index for index, revision in enumerate(order)}

    def rank(revision: str) -> tuple[int, float, str]:
        begun = instant(begun_at.get(revision, ""))
        return (place.get(revision, -1), begun.timestamp() if begun else 0.0, revision)

    return max(revisions, key=rank, default="")


def newest_record(records: Mapping[str, Record], order: Sequence[str]) -> str:
    """The newest revision that is recorded; empty when none is."""
    begun: dict[str, str] = {}
    for record in records.values():
        if record.revision:
            begun[record.revision] = max(begun.get(record.revision, ""), record.begun_at)
    return newest(set(begun), begun, order)


def release_under_way(
    rollout: Rollout,
    layout: Layout,
    head: str,
    apart: frozenset[str],
    sights: Mapping[str, Sight],
    facts: Facts,
    book: Book,
) -> str:
    """Return the revision that goes over the clusters now. `apart`: clusters that are pinned and take no part.

    With `queue` the running one is finished first. It gives way when it cannot be: when its failures pause it, or when
    it is gone; and to an older one, which is a revert.
    """
    if rollout.on_new_commit is OnNewCommit.RESTART:
        return head
    known = {name for stage in layout.stages for name in stage.clusters} - apart
    running = newest_record({name: book[name] for name in known}, facts.order)
    is_revert = head in facts.order and (
        running not in facts.order or facts.order.index(head) < facts.order.index(running)
    )
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
