"""What the store says, given what is known of the members: claims, placements, dependencies, namespaces."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.model.binding import Binding, Constraint
from reconciler.model.fleet import Fleet
from reconciler.model.observation import Observations
from reconciler.model.policy import PropagationPolicy
from reconciler.model.problem import Problem, Severity
from reconciler.model.refs import Identity, PolicyRef
from reconciler.model.tree import dig
from reconciler.stages.claims import Claims, claim
from reconciler.stages.decision.cap_basis import without_outdated_caps
from reconciler.stages.decision.job_completions import has_completions
from reconciler.stages.decision.memo import DecideMemo, Edits, Inputs
from reconciler.stages.dependencies import (
    companions,
    dependencies,
    namespaces,
    with_defined_kinds,
)
from reconciler.stages.incremental import patched, union
from reconciler.stages.placement import (
    PlacementItem,
    PlacementRequest,
    PlacementResult,
    closings,
    constraints_in_force,
    place,
    priority_classes,
    suspended_by,
)
from reconciler.stages.templates import demand_of


class Decision(Struct, frozen=True, kw_only=True):
    """Where everything goes, and why.

    `policies`: the policy that governs each bound template, its own or its owner's. `frozen`: templates that a broken
    file might concern; nothing is written for them. `holds`: why nothing is written for a template though it is placed
    (it waits for an override policy), `suspended`: the same per cluster. `ticked`: (identity, cluster) that a
    constraint took from the placement, with that constraint. `needs`: what a template refers to. `definitions`: the
    CustomResourceDefinition of each custom kind of the store. `yielded`: targets of autoscalers, with the clusters to
    which these go.
    """

    fleet: Fleet
    claims: Claims
    bindings: Mapping[Identity, Binding]
    policies: Mapping[Identity, PropagationPolicy]
    frozen: frozenset[Identity] = frozenset()
    holds: Mapping[Identity, str] = field(default_factory=dict)
    ticked: Mapping[tuple[Identity, str], Constraint] = field(default_factory=dict)
    needs: Mapping[Identity, frozenset[Identity]] = field(default_factory=dict)
    definitions: Mapping[tuple[str, str], Identity] = field(default_factory=dict)
    yielded: Mapping[Identity, frozenset[str]] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()

    def hold(self, identity: Identity, cluster: str) -> str | None:
        """Why nothing may be written for a template in a cluster though it belongs there; None: it may."""
        policy = self.policies.get(identity)
        return (suspended_by(policy, cluster) if policy is not None else None) or self.holds.get(identity)

    def definition_of(self, kind: tuple[str, str]) -> Identity | None:
        """The placed CustomResourceDefinition of a (group, kind) of the store; None: the store brings none."""
        definition = self.definitions.get(kind)
        return definition if definition in self.bindings else None


def decide(
    fleet: Fleet,
    observations: Observations,
    now: str,
    *,
    copies: Mapping[Identity, Collection[str]] | None = None,
    fresh: bool = False,
    memo: DecideMemo | None = None,
) -> Decision:
    """Claims, placements and what follows from them.

    `now`: RFC 3339 UTC. `copies`: where copies of ours are known to live; what an owner left behind keeps its
    dependencies there. `fresh`: previous placements are not considered. `memo`: with that of an earlier call only what
    depends on a difference is decided again; the decision is the same as without it.
    """
    memo = memo or DecideMemo()
    inputs = Inputs(fleet, observations, now, copies or {}, fresh)
    edits = memo.begin(inputs)
    claims = claim(fleet, memo.claims, edits.judged)
    by_ref = {policy.ref: policy for policy in fleet.propagation}
    before = memo.policies
    # What no policy governs, and none did, is nobody's business from here on.
    judged = [identity for identity in edits.judged if identity in claims.claims or identity in before]
    governed = {i: by_ref[claims.claims[i].policy] if i in claims.claims else None for i in judged}
    policies = memo.policies = patched(before, governed)
    if edits.has_definitions:
        memo.definitions = _definitions(fleet)
    # What others scale is placed anew when these others come, go or change.
    scaled = [i for i in memo.autoscaling.follow(fleet, edits.judged) if i in policies]
    observations = without_outdated_caps(observations, fleet.templates, policies)
    inputs = inputs._replace(observations=observations)
    placed, unknown_classes = _place(memo, inputs, edits, policies, list(dict.fromkeys((*judged, *scaled))))
    # Dictionaries in place of sets keep what is sorted already in its order.
    moved = dict.fromkeys((*judged, *edits.copied, *memo.places.changed))
    left = _left_behind(placed.bindings, copies or {}, moved)
    former = (identity for identity in moved if identity in memo.held)
    held = memo.held = patched(memo.held, {**dict.fromkeys(former), **left})
    links = dependencies(fleet, policies, placed.bindings, held, tables=memo.links, dirty=union(moved, edits.templates))
    followed = links.bindings.rows
    dirty = dict.fromkeys((*memo.bound_of(edits.templates, followed), *links.bindings.changed, *links.policies.changed))
    inhabited = namespaces(fleet, followed, memo.spaces, dirty)
    stayed = _left_behind(placed.bindings, copies or {}, memo.company.want(fleet, policies, judged))
    # They live in the namespaces of their workloads, so Namespaces need not follow them.
    companions(fleet, policies, followed, stayed, memo.company)
    brought, inherited = memo.company.bindings, memo.company.policies
    dirty.update(dict.fromkeys((*memo.spaces.followed.changed, *brought.changed, *inherited.changed)))
    bound = memo.join(followed, {**inhabited, **brought.rows}, dirty)
    memo.autoscaling.yield_to(bound, dirty)
    problems = (
        *fleet.problems,
        *claims.problems,
        *placed.problems,
        *links.all_problems,
        *unknown_classes,
    )
    holds, waiting = _waits_for_overrides(fleet, policies)
    decision = Decision(
        fleet=fleet,
        claims=claims,
        bindings=bound,
        policies=memo.govern({**links.policies.rows, **inherited.rows}, moved | dirty),
        frozen=frozenset(claims.frozen),
        holds=holds,
        ticked=_ticked(observations, bound, now),
        needs=links.needs.rows,
        definitions=memo.definitions,
        yielded=memo.autoscaling.yielded.rows,
        problems=tuple(sorted({*problems, *waiting})),
    )
    memo.end(moved | dirty)
    return decision


def _place(
    memo: DecideMemo,
    inputs: Inputs,
    edits: Edits,
    policies: Mapping[Identity, PropagationPolicy],
    judged: Sequence[Identity],
) -> tuple[PlacementResult, Sequence[Problem]]:
    """The placement of what policies govern, and the problems of priority classes."""
    fleet, observations = inputs.fleet, inputs.observations
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
        closed=closings(fleet, policies, observations, memo.constrained),
    )
    bound_definitions = {i: policies[i] for i in memo.definitions.values() if i in policies}
    if bound_definitions:
        # Definitions go first: what they define may then go where they go.
        first = place(replace(request, items=tuple(_items(memo, fleet, bound_definitions, bound_definitions))))
        request = replace(request, observations=with_defined_kinds(fleet, first.bindings, observations))
    known = set(judged)
    unplaced = [i for i in memo.to_place_again(edits, request.observations) if i not in known]
    items = (*_items(memo, fleet, policies, judged), *memo.places.items(unplaced))
    gone = [identity for identity in judged if identity not in policies]
    return place(replace(request, items=items), memo.places, gone), unknown_classes


def _items(
    memo: DecideMemo,
    fleet: Fleet,
    policies: Mapping[Identity, PropagationPolicy],
    identities: Iterable[Identity],
) -> Iterator[PlacementItem]:
    overrides = memo.replica_overrides(fleet)
    for identity in identities:
        policy = policies.get(identity)
        if policy is not None:
            template = fleet.templates[identity]
            yield PlacementItem(
                identity=identity,
                gvk=template.gvk,
                policy=policy,
                demand=demand_of(template),
                is_autoscaled=memo.autoscaling.has(policies, identity),
                has_completions=identity[:2] == ("batch", "Job") and has_completions(template.body),
                rendered=overrides.of(identity),
            )


def _left_behind(
    bindings: Mapping[Identity, Binding], copies: Mapping[Identity, Collection[str]], identities: Iterable[Identity]
) -> dict[Identity, frozenset[str]]:
    """The clusters that hold a copy of a bound template which its placement has left."""
    if not copies:
        return {}
    return {
        identity: left
        for identity in identities
        if identity in copies
        and identity in bindings
        and (left := frozenset(copies[identity]) - set(bindings[identity].clusters))
    }


def _waits_for_overrides(
    fleet: Fleet, policies: Mapping[Identity, PropagationPolicy]
) -> tuple[dict[Identity, str], list[Problem]]:
    """Templates whose policy names override policies that are not in the store. Karmada: dependentOverrides."""
    there = {policy.ref for policy in fleet.overrides}
    missing: dict[PolicyRef, str] = {}
    problems: list[Problem] = []
    for policy in fleet.propagation:
        kind = "ClusterOverridePolicy" if policy.is_cluster_scoped else "OverridePolicy"
        wanted = [PolicyRef(kind, policy.ref.namespace, name) for name in policy.dependent_overrides]
        absent = ", ".join(str(ref) for ref in wanted if ref not in there)
        if absent:
            missing[policy.ref] = f"waits for {absent}"
            message = f"what {policy.ref} selects waits for {absent}; add it, or take it out of dependentOverrides"
            problems.append(
                Problem(
                    source=policy.source,
                    path="spec.dependentOverrides",
                    code="waits-for-override",
                    message=message,
                    severity=Severity.WARNING,
                )
            )
    if not missing:
        return {}, problems
    holds = {identity: missing[policy.ref] for identity, policy in policies.items() if policy.ref in missing}
    return holds, problems


def _ticked(
    observations: Observations, bindings: Mapping[Identity, Binding], now: str
) -> dict[tuple[Identity, str], Constraint]:
    """What constraints that are in force took from placements."""
    in_force = constraints_in_force(observations.constraints, now)
    return {
        (identity, constraint.cluster): constraint
        for identity, constraints in in_force.items()
        for constraint in constraints
        if identity in bindings and constraint.cluster not in bindings[identity].clusters
    }


def _definitions(fleet: Fleet) -> dict[tuple[str, str], Identity]:
    found: dict[tuple[str, str], Identity] = {}
    for identity, template in fleet.templates.items():
        if identity.kind == "CustomResourceDefinition":
            group, kind = dig(template.body, "spec", "group"), dig(template.body, "spec", "names", "kind")
            if isinstance(group, str) and isinstance(kind, str):
                found[group, kind] = identity
    return found
