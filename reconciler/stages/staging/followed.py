"""What a shard makes of what the leader decided about Rollouts: what begins in its clusters, and what stays.

Source: ADR 22: a revision comes in force where the leader says so, and only once the mark of the cluster says so too.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec.structs import replace

from reconciler.model.rollouts.progress import Progress
from reconciler.model.rollouts.record import Record
from reconciler.stages.staging.reported import same

_NOTHING = Record()


def to_begin(
    own: Mapping[str, Record], told: Mapping[str, Record], pending: Mapping[str, Record], clusters: Collection[str]
) -> dict[str, Record]:
    """By cluster what is to begin there. `own`: what is recorded here; `told`: what the leader lets begin, or knows.

    `pending`: what the leader knew to be recorded when it decided. It did not know ours where that is another one: it
    hears of ours then, and decides again.
    """
    found = {}
    for cluster in sorted(pending.keys() & told.keys() & set(clusters)):
        ours = own.get(cluster, _NOTHING)
        if told[cluster].revision and same(pending[cluster], ours) and not same(told[cluster], ours):
            found[cluster] = told[cluster]
    return found


def with_told(own: Mapping[str, Record], told: Mapping[str, Record], clusters: Collection[str]) -> dict[str, Record]:
    """What is recorded here, with what the leader knows of the same beginnings: since when one is completed, say."""
    found = {cluster: own[cluster] for cluster in sorted(clusters) if cluster in own}
    for cluster in sorted(told.keys() & set(clusters)):
        if same(told[cluster], own.get(cluster)):
            found[cluster] = told[cluster]
    return found


def as_told(progress: Progress, own: Mapping[str, Record], clusters: Collection[str]) -> Progress:
    """Where a Rollout stands by the leader's word; what could not begin here yet deletes nothing here.

    `own`: what is recorded of our `clusters`.
    """
    begun = {cluster for cluster in clusters if same(own.get(cluster, _NOTHING), progress.records.get(cluster))}
    elsewhere = {cluster: record for cluster, record in progress.records.items() if cluster not in clusters}
    due = frozenset(cluster for cluster in progress.deletions_due if cluster in begun or cluster not in clusters)
    return replace(progress, records={**elsewhere, **own}, deletions_due=due)


def until_told(progress: Progress, records: Mapping[str, Record]) -> Progress:
    """Where a Rollout stands of which the leader has not told by this revision: nothing of it is due."""
    return replace(progress, changes=(), records=records, deletions_due=frozenset(), placement_due=False, is_done=False)
