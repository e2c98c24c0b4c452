"""What the control loop goes by: each step of a round returns what it becomes, and the loop alone takes it over."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from reconciler.adapters.kube.members import Members
from reconciler.daemon.observing.members import Reachable
from reconciler.daemon.observing.reading import Known
from reconciler.daemon.round.failures import Failures
from reconciler.engine import Decision, Round
from reconciler.model.fleet import Fleet
from reconciler.model.observation import Observations
from reconciler.model.refs import GVK
from reconciler.model.rollouts.progress import Progress
from reconciler.stages.schemas import Schema
from reconciler.stages.state import FleetState


class State(Struct, frozen=True, kw_only=True):
    """Values of the last round.

    `fleet`: the store in force, None before the first reading. `decision`: None when it is void. `picture`: the last
    round over everything, with what later rounds changed of it.
    """

    members: Members
    """The clusters as the kubeconfig in force says that they are reached."""
    fleet: Fleet | None = None
    decision: Decision | None = None
    observations: Observations = field(default_factory=Observations)
    known: Known = field(default_factory=Known)
    reachable: Reachable = field(default_factory=dict)
    held_elsewhere: Mapping[str, str] = field(default_factory=dict)
    """Clusters where a copy of the journal holds the fleet, and what to do about it."""
    schemas: Mapping[GVK, Schema] = field(default_factory=dict)
    picture: Round | None = None
    failures: Failures = field(default_factory=dict)
    shown: FleetState | None = None
    """How everything is, as it was told last."""
    rollouts: tuple[Progress, ...] = ()
    """Where Rollouts stand."""

    @property
    def copies(self) -> int:
        """How many copies a round over everything has to do with, at most."""
        bindings = self.decision.bindings.values() if self.decision is not None else ()
        wanted = sum(len(binding.targets) for binding in bindings)
        return wanted + sum(len(rows) for rows in self.known.ledger.values())
