"""State of the loop; steps return a new one, only the loop stores it."""

from __future__ import annotations

import logging
from collections.abc import Hashable, Mapping
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.adapters.kube.client import MemberCluster
from reconciler.adapters.kube.members import Members
from reconciler.containment import INTERNAL_ERROR, contained
from reconciler.daemon.loop.parts import Parts
from reconciler.daemon.observing.members import Reachable
from reconciler.daemon.observing.observation_news import causes
from reconciler.daemon.round.failures import Failures
from reconciler.daemon.watches.watch_keeper import our_label
from reconciler.engine import Decision, FleetSnapshot, Round
from reconciler.errors import ConfigurationError
from reconciler.interpreters.registry import Registry
from reconciler.model.fleet import Fleet
from reconciler.model.ledger import JournalSnapshot
from reconciler.model.observation import ClusterObservation, Observations
from reconciler.model.refs import GVK
from reconciler.model.rollouts.progress import Progress
from reconciler.stages.schemas import Schema
from reconciler.stages.state import FleetState

log = logging.getLogger("reconciler")

_UNMET: Final = "it is reached in another way now, and has not said who it is yet"


class State(Struct, frozen=True, kw_only=True):
    """Values of the last round.

    `fleet`: the active store, None before the first reading. `decision`: None when void. `picture`: the last round over
    everything, updated by later rounds.
    """

    members: Members
    """The clusters as the kubeconfig in force says that they are reached."""
    access_stamp: Hashable = None
    """Of the files that were read for that."""
    fleet: Fleet | None = None
    decision: Decision | None = None
    observations: Observations = field(default_factory=Observations)
    known: JournalSnapshot = field(default_factory=JournalSnapshot)
    reachable: Reachable = field(default_factory=dict)
    held_elsewhere: Mapping[str, str] = field(default_factory=dict)
    """Clusters that a copy of the journal owns, with the remedy."""
    schemas: Mapping[GVK, Schema] = field(default_factory=dict)
    picture: Round | None = None
    failures: Failures = field(default_factory=dict)
    shown: FleetState | None = None
    """The last reported state."""
    rollouts: tuple[Progress, ...] = ()
    """The state of Rollouts."""

    def snapshot(self, fleet: Fleet, interpreters: Registry, now: str) -> FleetSnapshot:
        """Return what a round is computed from, before the objects of the clusters are read."""
        return FleetSnapshot(
            fleet=fleet, interpreters=interpreters, now=now, observations=self.observations, journal=self.known
        )

    @property
    def identified(self) -> dict[str, tuple[MemberCluster, str]]:
        """Each cluster with the uid of its kube-system, as far as it is recorded."""
        uids = self.known.cluster_uids
        return {name: (member, uids[name]) for name, member in self.members.items() if name in uids}

    @property
    def selector(self) -> str:
        """Return the label selector of our objects; empty before the store was read."""
        return our_label(self.fleet.settings) if self.fleet is not None else ""

    def listed_otherwise(self, before: Mapping[str, ClusterObservation]) -> set[str]:
        """Return clusters with other unlistable kinds than `before`: their reported problems change."""
        seen = self.observations.clusters
        return {name for name, found in seen.items() if name in before and causes(found) != causes(before[name])}

    @property
    def fell_silent(self) -> list[str]:
        """Return clusters that could not be observed since they were identified: each is identified again."""
        seen = self.observations.clusters.values()
        return [found.name for found in seen if not found.reachable and not self._is_away(found.name)]

    def _is_away(self, name: str) -> bool:
        return not isinstance(self.reachable.get(name), MemberCluster)

    @property
    def is_anybody_away(self) -> bool:
        """Return whether a cluster did not answer the last time."""
        return any(isinstance(member, str) for member in self.reachable.values())

    @property
    def copies(self) -> int:
        """Return the maximal number of copies of a round over everything."""
        bindings = self.decision.bindings.values() if self.decision is not None else ()
        wanted = sum(len(binding.targets) for binding in bindings)
        return wanted + sum(len(rows) for rows in self.known.ledger.values())


def reconnected(parts: Parts, state: State, fleet: Fleet) -> tuple[State, frozenset[str]]:
    """The state with clusters reached as the kubeconfig says now, and which of them are reached otherwise.

    Both are as before while the kubeconfig is unusable, which is logged.
    """
    # Whatever is written while they are read is read again.
    state = replace(state, access_stamp=parts.access_stamp())
    read = contained(parts.configs_of, fleet)
    if read.value is not None:
        return exchanged(state, state.members.reached_by(read.value))
    is_told = isinstance(read.fault, ConfigurationError)
    log.error("the kubeconfig cannot be read; the old one stays in force", exc_info=None if is_told else read.fault,
              extra={"event": "ReloadFailed", "error": str(read.fault) if is_told else INTERNAL_ERROR})  # fmt: skip
    return state, frozenset()


def exchanged(state: State, members: Members) -> tuple[State, frozenset[str]]:
    """Return the state with these clusters, and those with another access: they have to be identified first."""
    before = state.members
    other = frozenset(name for name in {*before, *members} if members.get(name) is not before.get(name))
    unmet = dict.fromkeys(other & state.reachable.keys(), _UNMET)
    return replace(state, members=members, reachable={**state.reachable, **unmet}), other
