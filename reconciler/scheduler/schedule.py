"""The schedule of the store, given observations of the clusters: claims, placements, dependencies, namespaces.

With the schemas of kinds: built-in ones, those that the store defines, and those that clusters describe.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.api.binding import Binding, Constraint, Tick
from reconciler.api.clusters import Observations
from reconciler.api.fleet import Fleet
from reconciler.api.plan import HeldBy, Hold
from reconciler.api.policies import PropagationPolicy
from reconciler.api.problem import Problem, warning, with_problems
from reconciler.api.refs import GVK, Identity, PolicyRef
from reconciler.api.rollout_progress import Staging
from reconciler.containment import SubjectFailed
from reconciler.documents import Schema, builtin_schema, defined_kind, schema_of_crd
from reconciler.incremental import union
from reconciler.kinds.registry import Registry
from reconciler.placement import (
    PlacementItem,
    PlacementRequest,
    PlacementResult,
    closings,
    concerned_by,
    constraints_in_force,
    essentials,
    has_completions,
    place,
    priority_classes,
    suspended_by,
    without_outdated_caps,
)
from reconciler.policy import Claims, claim, hold_new_claims
from reconciler.scheduler.companions import companions
from reconciler.scheduler.dependencies import dependencies
from reconciler.scheduler.makers import NO_MAKERS, Makers, with_defined_kinds
from reconciler.scheduler.namespaces import namespaces
from reconciler.scheduler.schedule_tables import ScheduleInputs, ScheduleTables
from reconciler.templates import demand_of

_MAX_FAULTS: Final = 20
"""Limit of restarts without a template that could not be processed. Most are found at once."""


class Schedule(Struct, frozen=True, kw_only=True):
    """The schedule, with its reasons.

    `policies`: the governing one of each bound template. `frozen`: templates that a broken file might concern. `holds`:
    why a placed template is not written. `ticked`: copies that a constraint took away. `needs`: references. `followed`:
    dependencies whose references are followed. `definitions`: CustomResourceDefinitions by kind. `yielded`: clusters of
    autoscalers, by target.
    """

    fleet: Fleet
    interpreters: Registry
    claims: Claims
    bindings: Mapping[Identity, Binding]
    policies: Mapping[Identity, PropagationPolicy]
    frozen: frozenset[Identity] = frozenset()
    holds: Mapping[Identity, Hold] = field(default_factory=dict)
    ticked: Mapping[tuple[Identity, str], Constraint] = field(default_factory=dict)
    needs: Mapping[Identity, frozenset[Identity]] = field(default_factory=dict)
    makers: Makers = NO_MAKERS
    followed: frozenset[Identity] = frozenset()
    definitions: Mapping[tuple[str, str], Identity] = field(default_factory=dict)
    yielded: Mapping[Identity, frozenset[str]] = field(default_factory=dict)
    packaged: Mapping[Identity, str] = field(default_factory=dict)
    """The package of each template of those that have hooks."""
    staging: Staging | None = None
    """The active revisions of staged templates; None: HEAD's, everywhere."""
    problems: tuple[Problem, ...] = ()

    def hold(self, identity: Identity, cluster: str) -> Hold | None:
        """Return why a template may not be written in a cluster of its placement; None: it may."""
        policy = self.policies.get(identity)
        return (suspended_by(policy, cluster) if policy is not None else None) or self.holds.get(identity)

    def is_bound(self, identity: Identity, cluster: str) -> bool:
        """Return whether the store places a copy in a cluster."""
        binding = self.bindings.get(identity)
        return binding is not None and any(target.cluster == cluster for target in binding.targets)

    def is_evicted(self, identity: Identity, cluster: str) -> bool:
        """Tell whether a person took the copy in a cluster away."""
        order = self.ticked.get((identity, cluster))
        return order is not None and order.tick is Tick.EVICTION

    def definition_of(self, kind: tuple[str, str]) -> Identity | None:
        """Return the placed CustomResourceDefinition of a (group, kind) of the store; None: the store brings none."""
        definition = self.definitions.get(kind)
        return definition if definition in self.bindings else None


def schedule_fleet(
    fleet: Fleet,
    observations: Observations,
    now: str,
    *,
    interpreters: Registry,
    copies: Mapping[Identity, Collection[str]] | None = None,
    fresh: bool = False,
    tables: ScheduleTables | None = None,
) -> Schedule:
    """Return claims, placements and their consequences.

    `copies`: clusters of our known copies; old ones keep the owner's dependencies. `fresh`: ignore previous placements.
    `tables`: of an earlier call, which only save time. A template that cannot be processed is frozen by itself.
    """
    tables, there = tables or ScheduleTables(), copies or {}
    fleet = hold_new_claims(fleet, lambda identity: identity in there or identity in observations.previous)
    for _ in range(_MAX_FAULTS):
        known = tables.faults.among(fleet)
        try:
            return _schedule(ScheduleInputs(known, observations, now, interpreters, there, fresh), tables)
        except SubjectFailed as failed:
            if not tables.faults.add(known, failed):
                raise
    return _schedule(ScheduleInputs(fleet, observations, now, interpreters, there, fresh), tables)


def _schedule(inputs: ScheduleInputs, tables: ScheduleTables) -> Schedule:
    """Claim and place templates; dependencies, companions and Namespaces follow. Steps recompute dependents only."""
    tables.begin(inputs)
    fleet, interpreters = inputs.fleet, inputs.interpreters
    claims = claim(fleet, tables.claims)
    templates, policies = tables.claims.templates, tables.claims.policies
    tables.packages.follow(templates)
    tables.faults.refuse(fleet, templates.changed, interpreters, claims.faults)
    inputs = inputs._replace(
        observations=without_outdated_caps(inputs.observations, fleet.templates, policies.rows, interpreters)
    )
    placements, unknown_classes = _place(inputs, tables)
    placed = tables.places.bindings

    def old_copies(identity: Identity) -> frozenset[str] | None:
        if identity not in inputs.copies or identity not in placed.rows:
            return None
        return frozenset(inputs.copies[identity]) - set(placed.rows[identity].clusters) or None

    held = tables.held.derive(old_copies, tables.copies, placed)
    followers = dependencies(fleet, templates, policies, tables.places.bindings, held, tables.links, interpreters)
    company = companions(followers.sources, templates, policies, followers.bindings, held, tables.company, interpreters)
    accompanied = tables.accompanied.overlay(company.bindings, followers.bindings)
    spaces = namespaces(fleet, templates, accompanied, tables.spaces)

    bindings = tables.bindings.overlay(spaces, accompanied)
    governing = tables.governing.overlay(company.policies, followers.policies, policies)
    yielded = tables.autoscaling.yield_to(bindings)
    holds, waiting = _waits_for_overrides(fleet, policies.rows)
    tables.holds.replace(holds)
    # The clusters that active constraints took from placements.
    in_force = constraints_in_force(inputs.observations.constraints, inputs.now)
    tables.ticked.replace(
        {
            (identity, constraint.cluster): constraint
            for identity, constraints in in_force.items()
            for constraint in constraints
            if identity in bindings.rows and constraint.cluster not in bindings.rows[identity].clusters
        }
    )
    tables.end(inputs)
    linked = chain.from_iterable(followers.problems.rows.values())
    problems = (claims.problems, placements.problems, linked, unknown_classes, waiting)
    return Schedule(
        fleet=fleet,
        interpreters=interpreters,
        claims=claims,
        bindings=bindings.rows,
        policies=governing.rows,
        frozen=frozenset(claims.frozen) | tables.packages.frozen_hooks(fleet, claims.frozen),
        packaged=tables.packages.members.rows,
        holds=holds,
        ticked=tables.ticked.rows,
        needs=followers.needs.rows,
        makers=followers.sources.makers,
        followed=frozenset(followers.followed),
        definitions=tables.definitions,
        yielded=yielded.rows,
        problems=with_problems(fleet.problems, *problems),
    )


def _place(inputs: ScheduleInputs, tables: ScheduleTables) -> tuple[PlacementResult, Sequence[Problem]]:
    """Return the placement of claimed templates, and the problems of priority classes."""
    fleet, observations = inputs.fleet, inputs.observations
    templates, claimed = tables.claims.templates, tables.claims.policies
    policies, edited = claimed.rows, templates.changed
    if any(identity.kind == "CustomResourceDefinition" for identity in edited):
        tables.definitions = {
            kind: identity
            for identity, template in fleet.templates.items()
            if identity.kind == "CustomResourceDefinition" and (kind := defined_kind(template.body)) is not None
        }
    # What others scale is placed again when these others come, go or change.
    tables.autoscaling.follow(templates.rows, tables.claims.touched, inputs.interpreters)
    changed = union(edited, claimed.changed, tables.autoscaling.scaled)
    priorities, unknown_classes = priority_classes(fleet)
    request = PlacementRequest(
        items=(),
        clusters=fleet.clusters,
        observations=observations,
        settings=fleet.settings,
        now=inputs.now,
        fresh=inputs.fresh,
        priority_classes=priorities,
        copies=inputs.copies,
        closed=closings(fleet, policies, observations, tables.in_force.rows),
    )
    bound_definitions = [identity for identity in tables.definitions.values() if identity in policies]
    if bound_definitions:
        # Definitions first: their objects may then be placed in their clusters.
        first = place(replace(request, items=tuple(_items(tables, inputs, bound_definitions))))
        request = replace(request, observations=with_defined_kinds(fleet, first.bindings, observations))
    tables.essentials.replace(essentials(request.observations.clusters))
    clusters = [cluster for name, cluster in fleet.clusters.items() if name in tables.essentials.changed]
    known = (tables.previous, tables.in_force, tables.obstacles, tables.copies)
    again = union(*(table.changed for table in known), concerned_by(clusters, policies) if clusters else ())
    as_before = [identity for identity in again if identity in policies and identity not in changed]
    anew = _items(tables, inputs, [identity for identity in changed if identity in policies])
    gone = [identity for identity in claimed.changed if identity not in policies]
    return place(replace(request, items=(*anew, *tables.places.items(as_before))), tables.places, gone), unknown_classes


def _items(tables: ScheduleTables, inputs: ScheduleInputs, identities: Iterable[Identity]) -> Iterator[PlacementItem]:
    overrides, policies = tables.replica_overrides(inputs), tables.claims.policies.rows
    for identity in identities:
        template = inputs.fleet.templates[identity]
        yield PlacementItem(
            identity=identity,
            gvk=template.gvk,
            policy=policies[identity],
            demand=demand_of(template, inputs.interpreters),
            is_autoscaled=tables.autoscaling.has(policies, identity),
            has_completions=identity[:2] == ("batch", "Job") and has_completions(template.body),
            overrides=overrides.of(identity),
        )


def _waits_for_overrides(
    fleet: Fleet, policies: Mapping[Identity, PropagationPolicy]
) -> tuple[dict[Identity, Hold], list[Problem]]:
    """Return templates whose policy names override policies that are not in the store. Karmada: dependentOverrides."""
    there = {policy.ref for policy in fleet.overrides}
    missing: dict[PolicyRef, Hold] = {}
    problems: list[Problem] = []
    for policy in fleet.propagation:
        kind = "ClusterOverridePolicy" if policy.ref.is_cluster_scoped else "OverridePolicy"
        wanted = [PolicyRef(kind, policy.ref.namespace, name) for name in policy.dependent_overrides]
        absent = ", ".join(str(ref) for ref in wanted if ref not in there)
        if absent:
            missing[policy.ref] = Hold(HeldBy.OTHERS, f"waits for {absent}")
            message = f"what {policy.ref} selects waits for {absent}; add it, or take it out of dependentOverrides"
            problems.append(warning(policy.dependent_source, "spec.dependentOverrides", "waits-for-override", message))
    if not missing:
        return {}, problems
    holds = {identity: missing[policy.ref] for identity, policy in policies.items() if policy.ref in missing}
    return holds, problems


class KindSchemas:
    """Looks schemas up, each once."""

    def __init__(self, schedule: Schedule, described: Mapping[GVK, Schema] | None = None) -> None:
        """`described`: of kinds that neither Kubernetes nor the store defines."""
        self._schedule = schedule
        self._described = described or {}
        self._known: dict[GVK, Schema | None] = {}

    def of(self, gvk: GVK) -> Schema | None:
        """Return the schema of a kind; None: nobody describes it."""
        if gvk not in self._known:
            definition = self._schedule.definitions.get(gvk.group_kind)
            template = self._schedule.fleet.templates.get(definition) if definition else None
            defined = schema_of_crd(template.body, gvk.version) if template else None
            self._known[gvk] = builtin_schema(gvk) or defined or self._described.get(gvk)
        return self._known[gvk]
