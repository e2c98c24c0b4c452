"""What the last decision rested on, so that the next one is worked out only where an input differs.

Source: design#incremental: a commit that touches one file recomputes only what depends on it, and a full
recomputation is the same code with everything marked dirty. Unchanged inputs are recognised by being the same objects,
or else equal ones; it never changes a decision.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from msgspec import Struct

from reconciler.model.binding import Binding, Constraint
from reconciler.model.fleet import Fleet, Template
from reconciler.model.observation import Observations
from reconciler.model.policy import PropagationPolicy
from reconciler.model.refs import Identity
from reconciler.stages.claims import ClaimTables, TemplateIndex
from reconciler.stages.dependencies import Autoscaling, CompanionTables, LinkTables, NamespaceTables
from reconciler.stages.incremental import changed_keys, patched
from reconciler.stages.overrides import ReplicaOverrides, of_replicas
from reconciler.stages.placement import PlaceMemo, concerned_by, constraints_in_force, essentials, obstacles


class Inputs(NamedTuple):
    """Everything that a decision rests on."""

    fleet: Fleet
    observations: Observations
    now: str
    copies: Mapping[Identity, Collection[str]]
    fresh: bool


class Edits(Struct, frozen=True, kw_only=True):
    """What differs from the last decision.

    `templates` came, went or changed. `judged`: those and what policies that differ select. `known`: their previous
    placement or the constraints on them changed. `copied`: other clusters hold copies of them.
    """

    templates: Collection[Identity]
    judged: Collection[Identity]
    known: Collection[Identity] = ()
    copied: Collection[Identity] = ()
    has_definitions: bool = True
    """Whether definitions of custom kinds are among the templates."""


class DecideMemo:
    """The last decision, in the pieces from which the next one is made."""

    def __init__(self) -> None:
        """Start with nothing decided."""
        self._forget()

        self.touched: Collection[Identity] | None = None
        """What may differ between the last decision and the one before it; None: everything."""

    def _forget(self) -> None:
        self._inputs: Inputs | None = None
        self._next: Inputs | None = None
        self._is_anew = True
        self._in_force: Mapping[Identity, tuple[Constraint, ...]] = {}
        self._obstacles: Mapping[Identity, object] = {}
        self._essentials: Mapping[str, object] = {}
        self._index: TemplateIndex | None = None
        self._bound: Mapping[Identity, Binding] = {}
        self._governing: Mapping[Identity, PropagationPolicy] = {}
        self.claims = ClaimTables()
        self.places = PlaceMemo()
        self.links = LinkTables()
        self.spaces = NamespaceTables()
        self.company = CompanionTables()
        self.autoscaling = Autoscaling()
        self._replica_overrides: tuple[Fleet, ReplicaOverrides] | None = None
        self.policies: Mapping[Identity, PropagationPolicy] = {}
        self.held: Mapping[Identity, frozenset[str]] = {}
        self.definitions: Mapping[tuple[str, str], Identity] = {}

    @property
    def constrained(self) -> Collection[Identity]:
        """The templates on which a constraint is in force."""
        return self._in_force.keys()

    def begin(self, inputs: Inputs) -> Edits:
        """What differs from the last decision; everything, when anything does that concerns all templates."""
        before = self._inputs
        in_force = constraints_in_force(inputs.observations.constraints, inputs.now)
        if before is None or not _alike(before, inputs):
            self._forget()
            self._is_anew = True
            self._in_force, self._next = in_force, inputs
            self._obstacles = obstacles(inputs.observations, in_force)
            return Edits(templates=inputs.fleet.templates.keys(), judged=inputs.fleet.templates.keys())
        # Nothing is built upon a call that failed half-way.
        self._inputs, self._next, self._is_anew = None, inputs, False
        old, new = before.fleet.templates, inputs.fleet.templates
        templates = changed_keys(old, new)
        policies = _changed_policies(before.fleet.propagation, inputs.fleet.propagation)
        known_obstacles, self._obstacles = self._obstacles, obstacles(inputs.observations, in_force)
        is_closed_alike = before.observations.closed == inputs.observations.closed
        edits = Edits(
            templates=templates,
            judged=templates | self._selected_by(policies, templates, old, new),
            known=changed_keys(before.observations.previous, inputs.observations.previous)
            | changed_keys(self._in_force, in_force)
            | (changed_keys(known_obstacles, self._obstacles) if is_closed_alike else in_force.keys()),
            copied=changed_keys(before.copies, inputs.copies),
            has_definitions=any(identity.kind == "CustomResourceDefinition" for identity in templates),
        )
        self._in_force = in_force
        return edits

    def _selected_by(
        self,
        policies: Iterable[PropagationPolicy],
        edited: Collection[Identity],
        old: Mapping[Identity, Template],
        new: Mapping[Identity, Template],
    ) -> set[Identity]:
        """What policies select. The index is made when the first policy changes, and kept from then on."""
        if self._index is not None:
            self._index.remove(old[identity] for identity in edited if identity in old)
            self._index.add(new[identity] for identity in edited if identity in new)
        elif policies:
            self._index = TemplateIndex(new)
        index = self._index
        return set().union(*(index.selected_by(policy) for policy in policies)) if index is not None else set()

    def to_place_again(self, edits: Edits, observations: Observations) -> Collection[Identity]:
        """Whose placement must be found again, whether it was judged anew or not.

        `observations`: with the kinds that definitions bring along.
        """
        before, self._essentials = self._essentials, essentials(observations.clusters)
        if self._next is None or self._is_anew:
            return ()
        changed = changed_keys(before, self._essentials)
        clusters = [cluster for name, cluster in self._next.fleet.clusters.items() if name in changed]
        concerned = concerned_by(clusters, self.policies) if clusters else ()
        known = (identity for identity in (*edits.known, *edits.copied) if identity in self.policies)
        return dict.fromkeys((*known, *concerned))

    def replica_overrides(self, fleet: Fleet) -> ReplicaOverrides:
        """The override policies of the fleet that may set replicas."""
        known = self._replica_overrides
        if known is None or known[0] is not fleet:
            known = self._replica_overrides = (fleet, ReplicaOverrides(fleet))
        return known[1]

    def bound_of(self, templates: Iterable[Identity], bindings: Mapping[Identity, Binding]) -> Iterator[Identity]:
        """The templates that are or were bound, and Namespaces, since what they say counts for what is in them."""
        for identity in templates:
            if identity in bindings or identity in self._bound or identity.kind == "Namespace":
                yield identity

    def join(
        self, bindings: Mapping[Identity, Binding], inhabited: Mapping[Identity, Binding], dirty: Iterable[Identity]
    ) -> Mapping[Identity, Binding]:
        """The bindings with those of Namespaces over them."""
        changes = {identity: inhabited.get(identity) or bindings.get(identity) for identity in dirty}
        self._bound = patched(self._bound, changes)
        return self._bound

    def govern(
        self, inherited: Mapping[Identity, PropagationPolicy], dirty: Iterable[Identity]
    ) -> Mapping[Identity, PropagationPolicy]:
        """The policy of everything that is bound: its own, or the one inherited from owners."""
        changes = {identity: inherited.get(identity) or self.policies.get(identity) for identity in dirty}
        self._governing = patched(self._governing, changes)
        return self._governing

    def end(self, touched: Collection[Identity]) -> None:
        """The decision is made: the next one may build on it. `touched`: what was decided again."""
        self.touched = None if self._is_anew else touched
        self._inputs = self._next


def _alike(before: Inputs, after: Inputs) -> bool:
    """Whether what concerns every template is the same."""
    old, new = before.fleet, after.fleet
    return (
        before.fresh == after.fresh
        and old.is_complete == new.is_complete
        and old.frozen == new.frozen
        and old.settings == new.settings
        and old.clusters == new.clusters
        and (old.overrides is new.overrides or of_replicas(old.overrides) == of_replicas(new.overrides))
    )


def _changed_policies(
    before: tuple[PropagationPolicy, ...], after: tuple[PropagationPolicy, ...]
) -> list[PropagationPolicy]:
    """Both versions of every policy that came, went or changed."""
    old, new = {policy.ref: policy for policy in before}, {policy.ref: policy for policy in after}
    changed = changed_keys(old, new)
    return [policies[ref] for policies in (old, new) for ref in sorted(changed) if ref in policies]
