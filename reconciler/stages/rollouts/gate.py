"""The gate of a cluster: since when it is met, for long enough, and in time.

Source: Karmada's proposal of staged rollouts: any flap starts minSuccessTime again; Open Cluster Management: a soak
that did not begin anew with an update.
"""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.model.rollouts.record import Complete, Met, Sight, Steady, Unseen
from reconciler.model.rollouts.rollout import Gate
from reconciler.stages.rollouts.book import Book, later_of

UNTOLD = Unseen("nothing is known of it yet")


def settle(cluster: str, gate: Gate, sights: Mapping[str, Sight], book: Book) -> None:
    """Note in the book when the time of success of a cluster begins or breaks off, and when it is complete."""
    record, sight = book[cluster], sights.get(cluster, UNTOLD)
    if not record.revision or record.completed_at:
        return
    if not (isinstance(sight, Met) and sight.revision == record.revision):
        if record.steady_since:
            book.note(Steady(cluster, ""))
        return
    told = later_of(sight.since, record.steady_since) or book.text
    since = later_of(told, record.begun_at)
    if since != record.steady_since:
        book.note(Steady(cluster, since))
    if book.is_over(since, gate.min_success_s, cluster):
        book.note(Complete(cluster, book.text))


def has_failed(cluster: str, gate: Gate, sights: Mapping[str, Sight], book: Book) -> bool:
    """Return whether a cluster missed the deadline of its gate. One that meets it now has not failed."""
    record, sight = book[cluster], sights.get(cluster, UNTOLD)
    if not record.revision or record.completed_at:
        return False
    if isinstance(sight, Met) and sight.revision == record.revision:
        return False
    return book.is_over(record.begun_at, gate.timeout_s, cluster)


def is_too_late(cluster: str, revision: str, gate: Gate, away: Mapping[str, str], book: Book) -> bool:
    """Return whether a cluster that cannot be changed has failed by the age of its turn."""
    record = book[cluster]
    return record.turn == revision and cluster in away and book.is_over(record.turn_at, gate.timeout_s, cluster)
