"""Which clusters a process applies to, and what it knows of those that another one applies to.

Everybody computes placements from the same commit. Where they rest on what clusters hold, they rest on one and the same
observations for everybody, so that nobody's part differs from what the others take it to be.
Source: design#parts; ADR 21.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from reconciler.engine import Decision
from reconciler.errors import ConfigurationError
from reconciler.model.binding import Tick
from reconciler.model.fleet import Fleet
from reconciler.model.observation import ClusterObservation, Observations
from reconciler.model.problem import Problem
from reconciler.model.refs import Identity
from reconciler.model.rollouts.told import RolloutAccount, ToldRollouts
from reconciler.stages.decision import undecided
from reconciler.stages.deletion import NOBODY, Others
from reconciler.stages.shards import clusters_of
from reconciler.stages.staging import Reported, reported_of


def pulling(fleet: Fleet) -> frozenset[str]:
    """The clusters with a process of their own: what is for all clusters leaves them out."""
    return frozenset([name for name, cluster in fleet.clusters.items() if cluster.pulls])


class Given(Protocol):
    """What others tell, as it was read last."""

    @property
    def observations(self) -> Observations | None:
        """None: nothing could be read yet."""

    @property
    def look_s(self) -> float:
        """How often it is to be looked up whether there are others."""

    @property
    def fault(self) -> str:
        """Why something cannot be used; empty: all can."""

    @property
    def revision(self) -> str | None:
        """By which the placements in it were decided; None: that does not matter."""

    def refresh(self) -> bool:
        """Take in what was written since; whether there are other observations now."""

    def others(self, revision: str) -> Others:
        """What guards count of the clusters of others, by this revision."""

    def note(self, seen: Observations, *, is_all: bool) -> None:
        """What this process itself saw of its clusters, for whoever wants to know. `is_all`: of all of them."""

    @property
    def rollouts(self) -> ToldRollouts:
        """What others tell of Rollouts."""

    def note_rollouts(self, account: RolloutAccount) -> None:
        """What this process has to tell of Rollouts, recorded by now."""


class Reach(Struct, frozen=True, kw_only=True):
    """Which clusters this process applies to. `chosen`: these; empty: all but those with a process of their own.

    `applies`: it applies to a shard, as soon as it holds the Lease of one. `shard`: to this one.
    `given`: what others tell; None: nobody does.
    """

    chosen: frozenset[str] = frozenset()
    applies: bool = False
    shard: str = ""
    given: Given | None = None

    @property
    def is_whole(self) -> bool:
        """Whether this process decides for the fleet: it runs ticks, and its placements are those in force."""
        return not (self.chosen or self.applies)

    def own(self, fleet: Fleet) -> frozenset[str]:
        """The clusters of the fleet that this process applies to."""
        if self.applies:
            return clusters_of(self.shard, fleet) if self.shard else frozenset()
        if self.chosen:
            return self.chosen & fleet.clusters.keys()
        if fleet.settings.ha is not None and fleet.settings.ha.shards:
            return frozenset()
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

        What is denied to us in a cluster of ours is told all the same.
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
                clusters[name] = found if live is None else replace(found, denied=live.denied)
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
        if self.is_whole or self._is_told_of(decision.fleet.revision):
            return {}
        return undecided(decision, self.own(decision.fleet), ledger, by_leader=self.applies)

    def others(self, revision: str) -> Others:
        """What the guards count of the clusters of others."""
        return self.given.others(revision) if self.given is not None else NOBODY

    def reported(self, fleet: Fleet) -> Reported | None:
        """What those tell of Rollouts that apply to shards, where this process decides; None: nobody does."""
        is_sharded = fleet.settings.ha is not None and bool(fleet.settings.ha.shards)
        if not (self.is_whole and is_sharded and self.given is not None):
            return None
        told = self.given.rollouts
        return reported_of(fleet, told.accounts, told.unled)

    @property
    def directions(self) -> RolloutAccount | None:
        """What the leader tells of Rollouts, where this process applies to a shard; None: nothing yet."""
        return self.given.rollouts.accounts.get("") if self.applies and self.given is not None else None

    def _is_told_of(self, revision: str) -> bool:
        """Whether what others tell rests on this revision: by another one they may have placed everything otherwise."""
        return self.told is not None and self.given is not None and self.given.revision in (None, revision)


WHOLE: Final = Reach()
