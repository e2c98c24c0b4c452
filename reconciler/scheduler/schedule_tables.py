"""The inputs and results of the last schedule, so that the next one is computed only for changed inputs.

Source: design#incremental: a full recomputation is the same code with everything marked dirty. Unchanged inputs are the
same objects, or equal; it never changes a schedule. A template that brings out a fault of this program or of an
interpreter is frozen by itself. Source: design#boundaries.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from msgspec.structs import replace

from reconciler.api.binding import Binding, Constraint, PreviousPlacement
from reconciler.api.clusters import Observations
from reconciler.api.fleet import Fleet, FrozenReach, Template
from reconciler.api.plan import Hold
from reconciler.api.policies import PropagationPolicy
from reconciler.api.problem import Problem, with_problems
from reconciler.api.refs import Identity
from reconciler.containment import SubjectFailed, internal_error, try_call
from reconciler.incremental import Table, union
from reconciler.kinds.registry import Registry
from reconciler.overrides import ReplicaOverrides, of_replicas
from reconciler.placement import PlacementTables, constraints_in_force, obstacles
from reconciler.policy import ClaimTables
from reconciler.scheduler.companions import Autoscaling, CompanionTables
from reconciler.scheduler.dependencies import LinkTables
from reconciler.scheduler.namespaces import NamespaceTables
from reconciler.templates import check_facts, has_turn, is_hook, package_of


class ScheduleInputs(NamedTuple):
    """Everything that a schedule rests on."""

    fleet: Fleet
    observations: Observations
    now: str
    interpreters: Registry
    copies: Mapping[Identity, Collection[str]]
    fresh: bool


class PackageTables:
    """The package of each hook or object with a wave, and that of each template beside one, by the last schedule."""

    def __init__(self) -> None:
        self.turns = Table[Identity, str]()
        self.members = Table[Identity, str]()

    def follow(self, templates: Table[Identity, Template]) -> None:
        """Take the templates of a schedule."""
        rows, before = templates.rows, frozenset(self.turns.rows.values())

        def hook_package(identity: Identity) -> str | None:
            template = rows.get(identity)
            return package_of(template.source.path) if template is not None and has_turn(template) else None

        self.turns.derive(hook_package, templates)
        packages = frozenset(self.turns.rows.values())

        def member(identity: Identity) -> str | None:
            package = package_of(rows[identity].source.path) if identity in rows else None
            return package if package in packages else None

        # Nearly no store has a hook or wave: then nothing is done for its templates.
        if packages or before:
            self.members.update(templates.changed if packages == before else union(rows, self.members.rows), member)

    def frozen_hooks(self, fleet: Fleet, frozen: Collection[Identity]) -> AbstractSet[Identity]:
        """Return the hooks whose release is not known, since files of their package are broken. `frozen`: templates."""
        turns = self.turns.rows
        if not turns or (fleet.is_complete and not fleet.frozen):
            return frozenset()
        broken = {package_of(reach.source.path) for reach in fleet.frozen}
        broken |= {self.members.rows[identity] for identity in frozen if identity in self.members.rows}
        return {
            identity
            for identity, package in turns.items()
            if is_hook(fleet.templates[identity]) and (not fleet.is_complete or package in broken)
        }


class ScheduleTables:
    """The last schedule, in parts. `changed`: possible differences from the one before it; None: everything."""

    def __init__(self) -> None:
        self.changed: AbstractSet[Identity] | None = None
        self.faults = TemplateFaults()
        self._forget()

    def _forget(self) -> None:
        self._inputs: ScheduleInputs | None = None
        self._replica_overrides: tuple[Fleet, ReplicaOverrides] | None = None
        # Inputs.
        self.previous = Table[Identity, PreviousPlacement]()
        self.in_force = Table[Identity, tuple[Constraint, ...]]()
        self.obstacles = Table[Identity, object]()
        self.copies = Table[Identity, Collection[str]]()
        self.essentials = Table[str, object]()
        # What is computed, in the order of the steps.
        self.claims = ClaimTables()
        self.packages = PackageTables()
        self.definitions: Mapping[tuple[str, str], Identity] = {}
        self.autoscaling = Autoscaling()
        self.places = PlacementTables()
        self.held = Table[Identity, frozenset[str]]()
        """The clusters that hold a copy of a bound template which its placement has left."""
        self.links = LinkTables()
        self.company = CompanionTables()
        self.accompanied = Table[Identity, Binding]()
        self.spaces = NamespaceTables()
        self.bindings = Table[Identity, Binding]()
        self.governing = Table[Identity, PropagationPolicy]()
        """The policy of everything that is bound: its own, or the one inherited from owners."""
        self.holds = Table[Identity, Hold]()
        self.ticked = Table[tuple[Identity, str], Constraint]()

    def begin(self, inputs: ScheduleInputs) -> None:
        """Take the inputs. When anything differs that concerns all templates, nothing is known any more."""
        before, observations = self._inputs, inputs.observations
        self._is_rebuilt = before is None or not _alike(before, inputs)
        if self._is_rebuilt:
            self._forget()
        # Nothing is built upon a call that fails half-way.
        self._inputs = None
        in_force = constraints_in_force(observations.constraints, inputs.now)
        self.in_force.replace(in_force)
        self.obstacles.replace(obstacles(observations, in_force))
        self.previous.replace(observations.previous)
        self.copies.replace(inputs.copies)

    def replica_overrides(self, inputs: ScheduleInputs) -> ReplicaOverrides:
        """Return the override policies of the fleet that may set replicas."""
        known, fleet = self._replica_overrides, inputs.fleet
        if known is None or known[0] is not fleet:
            known = self._replica_overrides = (fleet, ReplicaOverrides(fleet, inputs.interpreters))
        return known[1]

    def end(self, inputs: ScheduleInputs) -> None:
        """Note that the schedule is made: the next one may build on it."""
        self.changed = (
            None
            if self._is_rebuilt
            else union(
                self.claims.templates.changed,
                self.bindings.changed,
                self.governing.changed,
                self.autoscaling.yielded.changed,
                self.claims.frozen.changed,
                self.holds.changed,
                [identity for identity, _ in self.ticked.changed],
            )
        )
        self._inputs = inputs


def _alike(before: ScheduleInputs, after: ScheduleInputs) -> bool:
    """Return whether the inputs that concern every template are equal."""
    old, new = before.fleet, after.fleet
    return (
        before.fresh == after.fresh
        and before.interpreters == after.interpreters
        and old.is_complete == new.is_complete
        and old.frozen == new.frozen
        and old.settings == new.settings
        and old.clusters == new.clusters
        and (old.overrides is new.overrides or of_replicas(old.overrides) == of_replicas(new.overrides))
    )


def package_mates(packaged: Mapping[Identity, str], identities: Collection[Identity]) -> set[Identity]:
    """Return all members of the packages with turns that any of these belongs to: they wait for one another."""
    if not packaged:
        return set()
    packages = {packaged[identity] for identity in identities if identity in packaged}
    return {identity for identity, package in packaged.items() if package in packages}


class TemplateFaults:
    """The faults so far. A template is tried again when the store has another version of it."""

    def __init__(self) -> None:
        self._faults: dict[Identity, tuple[Template, FrozenReach, Problem]] = {}

    def among(self, fleet: Fleet) -> Fleet:
        """Return the fleet with these templates frozen: as if not read completely, so that nothing is missed."""
        templates = fleet.templates
        self._faults = {
            identity: fault for identity, fault in self._faults.items() if templates.get(identity) is fault[0]
        }
        if not self._faults:
            return fleet
        faults = self._faults.values()
        return replace(
            fleet,
            problems=with_problems(fleet.problems, (problem for _, _, problem in faults)),
            frozen=(*fleet.frozen, *(reach for _, reach, _ in faults)),
            is_complete=False,
        )

    def refuse(
        self,
        fleet: Fleet,
        edited: Collection[Identity],
        interpreters: Registry,
        unclaimed: Mapping[Identity, Exception],
    ) -> None:
        """Raise SubjectFailed for templates that interpreters cannot read or that could not be claimed."""
        there = map(fleet.templates.get, edited)
        faults = self._faults
        templates = [one for one in there if one is not None and not (faults and one.identity in faults)]
        # Asked again one by one: which template it was is not worth a step for each of them as long as none raises.
        if try_call(check_facts, templates, interpreters).fault is not None:
            checked = ((template.identity, try_call(check_facts, (template,), interpreters)) for template in templates)
            unread = {identity: check.fault for identity, check in checked if check.fault is not None}
            unclaimed = {**unclaimed, **unread}
        if unclaimed:
            raise SubjectFailed(tuple(unclaimed.items()), next(iter(unclaimed.values())))

    def add(self, fleet: Fleet, failed: SubjectFailed) -> bool:
        """Freeze the templates that failed from now on; False: it was no template, or one that is frozen already."""
        subject = failed.subject
        faults = ((subject, failed.fault),) if isinstance(subject, Identity) else subject
        is_more = False
        for identity, fault in faults if isinstance(faults, tuple) else ():
            template = fleet.templates.get(identity)
            if template is None or identity in self._faults:
                continue
            reach = FrozenReach(source=template.source, identities=frozenset({identity}))
            problem = internal_error(fault, template.source, str(identity), "it is left as it is in the clusters")
            self._faults[identity] = (template, reach, problem)
            is_more = True
        return is_more
