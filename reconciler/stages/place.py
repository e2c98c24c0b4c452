"""Placement: on which clusters each claimed template lives, and with how many replicas.

One resource after another in a fixed order, each taking the room that it gets, so nothing is booked twice. Source:
Karmada: scheduling; design: §4 table, "Karmada's ordinary results are the contract". Where this differs from Karmada: a
cluster that stops matching the affinity is left whatever the scheduling type; what cannot be placed is tried again in
every round; nothing is taken away before something else can take it; a workload scaled to 0 stays; `maxGroups` unset is
no limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from reconciler.model.binding import Binding, Constraint, PreviousPlacement, Reason
from reconciler.model.problem import Problem, Severity
from reconciler.model.refs import Identity
from reconciler.stages.affinity_groups import Group, groups_of
from reconciler.stages.by_capacity import place_by_capacity
from reconciler.stages.candidates import CandidateFinder
from reconciler.stages.capacity import FleetRoom
from reconciler.stages.copies import StaticWeights, place_copies
from reconciler.stages.exclusive_groups import in_order_of_trial
from reconciler.stages.gang import components_of, place_whole
from reconciler.stages.placing import (
    Decision,
    PlacementItem,
    PlacementRequest,
    PlacementResult,
    Shortfall,
    Situation,
)
from reconciler.stages.spread_constraints import spread_applies

PRIORITY_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
"""Those that every cluster has. Source: Kubernetes."""


def place(request: PlacementRequest) -> PlacementResult:
    """A binding for every item of the request, and a warning for each that could not be placed as wanted.

    Pure and independent of the order of its inputs. What does not look at free room is placed first, since it takes its
    room in any case; then the rest by priority class and identity. Called again with its own result as the previous
    placement it gives the same.
    """
    return _Round(request).run()


class _Round:
    """The state of one call: memos, and the room that has been taken."""

    def __init__(self, request: PlacementRequest) -> None:
        self._request = request
        self._clusters = {name: request.clusters[name] for name in sorted(request.clusters)}
        observed = request.observations.clusters
        self._finder = CandidateFinder(self._clusters, observed)
        self._weights = StaticWeights(self._clusters)
        self._room = FleetRoom({name: observed[name] for name in observed if name in self._clusters})
        self._constraints = constraints_in_force(request.observations.constraints, request.now)
        self._previous = request.observations.previous
        self._groups: dict[tuple[int, bool], tuple[Group, ...]] = {}
        self._decided: dict[tuple[object, ...], Decision] = {}
        self._outcomes_of_none: dict[int, tuple[object, Mapping[str, Reason]]] = {}
        self._outcomes_of: dict[int, tuple[Decision, Mapping[str, Reason]]] = {}

    def run(self) -> PlacementResult:
        items = sorted(self._request.items, key=lambda item: item.identity)
        situations = [self._situation(item) for item in items]
        needs_room = [s for s in situations if s.is_whole or s.is_divided_by_capacity]
        others = [s for s in situations if not (s.is_whole or s.is_divided_by_capacity)]
        needs_room.sort(key=lambda s: (-self._priority(s.item), s.item.identity))
        if needs_room:
            for situation in situations:
                self._take_what_is_on_its_way(situation)
        decisions: dict[Identity, Decision] = {}
        for situation in (*others, *needs_room):
            decision = self._decide(situation)
            decisions[situation.item.identity] = decision
            if needs_room:
                self._take(situation, decision)
        return PlacementResult(
            bindings={item.identity: self._binding(item, decisions[item.identity]) for item in items},
            problems=tuple(
                _problem(item, shortfall) for item in items for shortfall in decisions[item.identity].shortfalls
            ),
        )

    def _binding(self, item: PlacementItem, decision: Decision) -> Binding:
        return Binding(
            identity=item.identity,
            policy=item.policy.ref,
            targets=decision.targets,
            unplaced=decision.unplaced,
            affinity_name=decision.affinity_name,
            reasons=decision.reasons,
            cluster_reasons=self._outcomes(decision),
        )

    def _outcomes(self, decision: Decision) -> Mapping[str, Reason]:
        """The reason of every cluster, seen from the end: a candidate may have got nothing, and others may keep it.

        Thousands of resources share a decision, and then these, too.
        """
        shared = self._outcomes_of.get(id(decision))
        if shared is None:
            shared = self._outcomes_of[id(decision)] = (decision, self._outcomes_anew(decision))
        return shared[1]

    def _outcomes_anew(self, decision: Decision) -> Mapping[str, Reason]:
        reasons = decision.cluster_reasons
        known = self._outcomes_of_none.get(id(reasons))
        if known is None or known[0] is not reasons:
            none_chosen = {name: outcome(reason, is_target=False) for name, reason in reasons.items()}
            known = self._outcomes_of_none[id(reasons)] = (reasons, none_chosen)
        chosen = [target.cluster for target in decision.targets if target.cluster in reasons]
        return {**known[1], **{name: outcome(reasons[name], is_target=True) for name in chosen}}

    def _priority(self, item: PlacementItem) -> int:
        name = item.policy.priority_class
        return self._request.priority_classes.get(name, PRIORITY_CLASSES.get(name, 0)) if name else 0

    def _situation(self, item: PlacementItem) -> Situation:
        previous = self._previous.get(item.identity)
        constraints = self._constraints.get(item.identity, ())
        if previous is None and not constraints:
            return Situation(item=item, fresh=self._request.fresh, partial=self._request.settings.partial)
        needs_capacity = (
            item.policy.placement.scheduling.division.needs_capacity or item.policy.placement.scheduling.gang
        )
        return Situation(
            item=item,
            had=_had(previous, self._clusters),
            caps={c.cluster: max(0, c.replicas_max) for c in constraints if not _excludes(c, needs_capacity)},
            excluded={c.cluster: c.reason for c in constraints if _excludes(c, needs_capacity)},
            group_in_use=previous.affinity_name if previous else "",
            fresh=self._request.fresh,
            partial=self._request.settings.partial,
        )

    def _decide(self, situation: Situation) -> Decision:
        by_capacity = situation.is_whole or situation.is_divided_by_capacity
        if by_capacity or spread_applies(situation.item.policy.placement):
            return self._decide_anew(situation, by_capacity)
        item = situation.item
        key = (
            id(item.policy), item.gvk, item.demand.replicas, item.demand.is_divisible, situation.group_in_use,
            tuple(situation.had.items()), tuple(situation.excluded.items()),
        )  # fmt: skip
        decision = self._decided.get(key)
        if decision is None:
            decision = self._decided[key] = self._decide_anew(situation, by_capacity)
        return decision

    def _decide_anew(self, situation: Situation, by_capacity: bool) -> Decision:
        groups = self._groups_for(situation, by_capacity)
        if situation.is_whole:
            return place_whole(situation, groups, self._finder, self._room)
        item = situation.item
        room_of = self._room.asker(item.demand.shape, item.identity.namespace, item.gvk.group_kind, there=situation.had)
        if by_capacity:
            return place_by_capacity(situation, groups, self._finder, self._clusters, room_of)
        return place_copies(situation, groups, self._finder, self._clusters, self._weights, room_of)

    def _groups_for(self, situation: Situation, by_capacity: bool) -> tuple[Group, ...]:
        policy = situation.item.policy
        # A workload scaled to 0 keeps the tiers that it was spread over.
        tiered = by_capacity or (situation.item.demand.replicas == 0 and situation.division.needs_capacity)
        groups = self._groups.get((id(policy), tiered))
        if groups is None:
            groups = self._groups[id(policy), tiered] = groups_of(policy, by_capacity=tiered)
        return in_order_of_trial(groups, situation, self._clusters) if len(groups) > 1 else groups

    def _take_what_is_on_its_way(self, situation: Situation) -> None:
        """Take the room of replicas that were assigned before and do not show in the cluster yet."""
        item = situation.item
        for cluster, had in situation.had.items():
            observation = self._request.observations.clusters.get(cluster)
            workload = observation.workloads.get(item.identity) if observation is not None else None
            if workload is not None and workload.replicas < had and not item.demand.components:
                self._room.take(cluster, item.demand.shape, had - workload.replicas, item.identity.namespace)

    def _take(self, situation: Situation, decision: Decision) -> None:
        """Take the room of what is new on each cluster. What shrinks frees its room only when its pods are gone."""
        item, had, room = situation.item, situation.had, self._room
        namespace = item.identity.namespace
        if room.counts_objects:
            for target in decision.targets:
                if target.cluster not in had:
                    room.take_object(target.cluster, namespace, item.gvk.group_kind)
        if situation.is_whole:
            parts = components_of(situation)
            for target in decision.targets:
                if target.cluster not in had:
                    for part in parts:
                        room.take(target.cluster, part.shape, part.replicas, namespace)
        elif situation.replicas:
            shape = room.known(item.demand.shape)
            for target in decision.targets:
                room.take(target.cluster, shape, (target.replicas or 0) - had.get(target.cluster, 0), namespace)


def constraints_in_force(constraints: Iterable[Constraint], now: str) -> dict[Identity, tuple[Constraint, ...]]:
    """Constraints that have not expired, by resource; of several on one cluster the tightest."""
    moment = _instant(now)
    tightest: dict[tuple[Identity, str], Constraint] = {}
    for constraint in sorted(constraints, key=lambda c: (not c.excludes, c.replicas_max, c.reason)):
        until = _instant(constraint.until)
        if until is None or moment is None or until > moment:
            tightest.setdefault((constraint.identity, constraint.cluster), constraint)
    by_identity: dict[Identity, list[Constraint]] = {}
    for (identity, _), constraint in sorted(tightest.items()):
        by_identity.setdefault(identity, []).append(constraint)
    return {identity: tuple(found) for identity, found in by_identity.items()}


def _instant(text: str) -> datetime | None:
    if not text:
        return None
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _excludes(constraint: Constraint, needs_capacity: bool) -> bool:
    """A cap of 0 excludes, too, where replicas cannot be moved one by one."""
    return constraint.excludes or (constraint.replicas_max <= 0 and not needs_capacity)


def _had(previous: PreviousPlacement | None, clusters: Mapping[str, object]) -> dict[str, int]:
    targets = sorted(previous.targets) if previous is not None else []
    return {target.cluster: target.replicas or 0 for target in targets if target.cluster in clusters}


def outcome(reason: Reason, *, is_target: bool) -> Reason:
    """The reason of one cluster after the choice."""
    if reason.rule == "candidate" and not is_target:
        return replace(reason, rule="not-chosen", text=f"a candidate ({reason.text}), but nothing falls to it")
    if is_target and reason.rule not in ("candidate", "already-there"):
        return replace(reason, rule="kept", text=f"kept until something else can take it, although: {reason.text}")
    return reason


def _problem(item: PlacementItem, shortfall: Shortfall) -> Problem:
    placement = item.policy.placement
    return Problem(
        source=placement.source if placement.source.path else item.policy.source,
        path="spec.placement",
        code=shortfall.code,
        message=f"{item.identity}: {shortfall.text}; {_ADVICE[shortfall.code]}",
        severity=Severity.WARNING,
    )


_ADVICE = {
    "no-cluster-fits": "see `reconciler explain` for what each cluster lacks; an earlier placement stays as it is",
    "not-enough-capacity": "an earlier placement stays; add capacity, or allow spec.placement.partial in the Fleet",
    "capacity-unknown": "an earlier placement stays; give access to the cluster, or --observations of it",
    "spread-constraint-unmet": "an earlier placement stays; relax spec.placement.spreadConstraints or add clusters",
}


__all__ = ["PlacementItem", "PlacementRequest", "PlacementResult", "place"]
