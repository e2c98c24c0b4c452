"""The progress of a revision: the number of clusters in step with it.

It is made of the counts of the state and of nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from msgspec import Struct, field

from reconciler.api.problem import Severity
from reconciler.placement import SHORTFALLS
from reconciler.state.state_tables import ClusterState, FleetState
from reconciler.state.state_values import NEEDS_PERSON, HealthWord, Held, Lag


class RevisionStep(Struct, frozen=True, kw_only=True):
    """The progress of `revision`. `clusters`: of the store, `in_step`: with all objects Synced.

    `away`: the clusters that were not read, sorted. `syncs`, `healths`: objects of all these clusters. `errors`: in the
    documents of the revision. `broken`: unreadable files. `unread`: kinds that cannot be read in a cluster that
    answers, each counted in each cluster. `unplaced`: templates without a placement, or with an incomplete one.
    """

    revision: str
    clusters: int
    in_step: int
    away: tuple[str, ...] = ()
    syncs: Mapping[Lag, int] = field(default_factory=dict)
    healths: Mapping[HealthWord, int] = field(default_factory=dict)
    waiting: int = 0
    """Number of objects with a change held for a person."""
    errors: int = 0
    broken: int = 0
    unread: int = 0
    unplaced: int = 0

    @property
    def is_complete(self) -> bool:
        """Return whether everything was evaluated and is in step. Without a cluster, nothing is.

        A revision with errors, or with unreadable files, is not fully known. An unplaced template is in no cluster that
        could be out of step with it.
        """
        return 0 < self.clusters == self.in_step and not (self.errors or self.broken or self.unread or self.unplaced)


def step_of(state: FleetState) -> RevisionStep:
    """Return the progress of the state's revision.

    Clusters that left the store do not count: nobody reads them.
    """
    assert state.facts is not None, "it was made of something"
    fleet = state.facts.decision.fleet
    syncs: Counter[Lag] = Counter()
    healths: Counter[HealthWord] = Counter()
    counted = [found for found in state.clusters.values() if not found.is_left]
    unread = {found.name: kinds for found in counted if (kinds := state.unread_kinds(found.name))}
    for found in counted:
        syncs.update(found.syncs)
        healths.update(found.healths)
    return RevisionStep(
        revision=fleet.revision,
        clusters=len(counted),
        in_step=sum(_is_in_step(found) and found.name not in unread for found in counted),
        away=tuple(sorted(found.name for found in counted if found.why_away is not None)),
        syncs=dict(syncs),
        healths=dict(healths),
        waiting=sum(map(_waiting, counted)),
        errors=sum(found.severity is Severity.ERROR for found in fleet.problems),
        broken=len({reach.source.path for reach in fleet.frozen}),
        unread=sum(map(len, unread.values())),
        unplaced=sum(found.code in SHORTFALLS for found in state.facts.decision.problems),
    )


def _waiting(cluster: ClusterState) -> int:
    if not cluster.syncs[Lag.HELD]:
        return 0
    return sum(isinstance(found.sync, Held) and found.sync.by in NEEDS_PERSON for found in cluster.kept.values())


def _is_in_step(cluster: ClusterState) -> bool:
    return cluster.why_away is None and cluster.total == cluster.syncs[Lag.SYNCED]
