"""What settling rests on: the decision, the members, and what is known of a kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct, field

from reconciler.model.binding import PreviousPlacement, Tick
from reconciler.model.ledger import AppliedRow
from reconciler.model.observation import ClusterObservation, Member
from reconciler.model.plan import Manifest
from reconciler.model.problem import Problem
from reconciler.model.refs import GVK, Identity
from reconciler.stages.comparison.compare import Stance
from reconciler.stages.decision import Decision
from reconciler.stages.moves import Replicas
from reconciler.stages.schemas import Schema

RenderOne = Callable[[Identity, str, Replicas], tuple[Manifest | None, tuple[Problem, ...]]]
"""(identity, cluster, assigned replicas) to the manifest, or to the problems that prevent it."""


class Scene(Struct, frozen=True, kw_only=True):
    """What settling rests on: the decision, the members, and what is known of a kind."""

    decision: Decision
    members: Mapping[str, Member]
    ledger: Mapping[str, Mapping[Identity, AppliedRow]]
    stance: Stance
    render: RenderOne
    schema_of: Callable[[GVK], Schema | None]
    previous: Mapping[Identity, PreviousPlacement] = field(default_factory=dict)
    """The placements that were recorded last."""
    observed: Mapping[str, ClusterObservation] = field(default_factory=dict)
    released: Mapping[str, Mapping[Identity, str]] = field(default_factory=dict)
    """By cluster the uids of what was released there."""
    closed: Mapping[str, str] = field(default_factory=dict)
    """Why nothing may be written, by the scope of a person's order."""
    now: str = ""
    has_history: bool = True
    only: frozenset[Identity] | None = None
    """Settle these alone; None: everything."""
    are_shared: bool = False
    """Members that got the same hold one and the same object: they stand for real ones."""

    kept: Mapping[Identity, Problem] = field(default_factory=dict)
    """Why objects stay as they are everywhere: they cannot be decrypted, or not be decided about from here."""
    elsewhere: frozenset[str] = frozenset()
    """Clusters of the fleet that another process applies to: they are no members, and nobody looks at them."""

    def placed_elsewhere(self, identity: Identity) -> dict[str, Replicas]:
        """By cluster of another process the replicas that were assigned there last: nothing more is known of it."""
        before = self.previous.get(identity) if self.elsewhere else None
        return {cluster: count for cluster, count in before.targets if cluster in self.elsewhere} if before else {}

    def is_evicted(self, identity: Identity, cluster: str) -> bool:
        """Whether a person took the copy in a cluster away."""
        order = self.decision.ticked.get((identity, cluster))
        return order is not None and order.tick is Tick.EVICTION
