"""Which clusters a process applies to, and what it knows of those that another one applies to.

Everybody computes placements from the same commit. Where they rest on what clusters hold, they rest on one and the same
observations for everybody, so that nobody's part differs from what the others take it to be.
Source: design#parts; ADR 21.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from reconciler.adapters.observe.observations_file import ObservationsFiles
from reconciler.engine import Decision
from reconciler.errors import ConfigurationError
from reconciler.model.binding import Tick
from reconciler.model.fleet import Fleet
from reconciler.model.observation import ClusterObservation, Observations
from reconciler.model.problem import Problem
from reconciler.model.refs import Identity
from reconciler.stages.decision import undecided

LOOK_S: Final = 5.0
"""How often it is looked up whether there are other observations."""


def pulling(fleet: Fleet) -> frozenset[str]:
    """The clusters with a process of their own: what is for all clusters leaves them out."""
    return frozenset([name for name, cluster in fleet.clusters.items() if cluster.pulls])


class Reach(Struct, frozen=True, kw_only=True):
    """Which clusters this process applies to. `chosen`: these; empty: all but those with a process of their own.

    `given`: observations that others wrote; None: there are none.
    """

    chosen: frozenset[str] = frozenset()
    given: ObservationsFiles | None = None

    @property
    def is_whole(self) -> bool:
        """Whether this process decides for the fleet: it runs ticks, and its placements are those in force."""
        return not self.chosen

    def own(self, fleet: Fleet) -> frozenset[str]:
        """The clusters of the fleet that this process applies to."""
        if self.chosen:
            return self.chosen & fleet.clusters.keys()
        return frozenset(fleet.clusters.keys() - pulling(fleet))

    def elsewhere(self, fleet: Fleet) -> frozenset[str]:
        """The other clusters of the fleet."""
        return frozenset(fleet.clusters.keys() - self.own(fleet))

    def cut(self, fleet: Fleet) -> Fleet:
        """The fleet without the clusters of others, for what asks each of its clusters and places nothing."""
        own = self.own(fleet)
        return replace(fleet, clusters={name: found for name, found in fleet.clusters.items() if name in own})

    def check(self, fleet: Fleet) -> None:
        """Nothing, when the fleet has what was chosen.

        Raises:
            ConfigurationError: it has no such cluster.
        """
        unknown = ", ".join(sorted(self.chosen - fleet.clusters.keys()))
        if unknown:
            there = ", ".join(sorted(fleet.clusters)) or "none"
            raise ConfigurationError(f"--cluster {unknown}: the store has no such Cluster document; it has {there}")

    @property
    def told(self) -> Observations | None:
        """What others observed; None: nothing is known of it."""
        return self.given.observations if self.given is not None else None

    def refresh(self) -> bool:
        """Look for other observations; whether there are some."""
        return self.given is not None and self.given.refresh()

    def seen_with_given(self, seen: Observations, fleet: Fleet) -> Observations:
        """What was seen of our clusters, with what others tell: of the others, and for a part of a fleet of all.

        What we cannot list in a cluster of ours is told all the same.
        """
        told = self.told
        if told is None:
            return seen
        own = self.own(fleet)
        clusters: dict[str, ClusterObservation] = dict(seen.clusters)
        for name, found in told.clusters.items():
            if name not in own:
                clusters[name] = found
            elif not self.is_whole:
                live = seen.clusters.get(name)
                clusters[name] = found if live is None else replace(found, unlisted=live.unlisted)
        chosen = {name: found for name, found in sorted(clusters.items()) if name in fleet.clusters}
        return replace(seen, clusters=chosen)

    def basis(self, seen: Observations, known: Observations) -> Observations:
        """What a decision rests on: `seen`, with placements and constraints that are in force for everybody.

        `known`: those of our journal. Orders of a person count beside what others tell.
        """
        given = self.told
        if self.is_whole or given is None:
            return replace(seen, previous=known.previous, constraints=known.constraints)
        orders = tuple(found for found in known.constraints if found.tick is Tick.EVICTION)
        return replace(seen, previous=given.previous, constraints=(*given.constraints, *orders))

    def undecided(self, decision: Decision, ledger: Mapping[str, Collection[Identity]]) -> dict[Identity, Problem]:
        """What this process cannot decide, and why."""
        if self.is_whole or self.told is not None:
            return {}
        return undecided(decision, self.own(decision.fleet), ledger)


WHOLE: Final = Reach()
