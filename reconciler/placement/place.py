"""Placement: the clusters of each claimed template, and its replicas there.

One resource after another in a fixed order, each taking its capacity, so nothing is booked twice. Source: Karmada:
scheduling; design#karmada: its ordinary results are the contract. Differences from Karmada: a cluster that stops
matching the affinity is left whatever the scheduling type; an unplaced resource is tried again in every round; nothing
is taken away before something else can take it; a workload scaled to 0 stays; `maxGroups` unset is no limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Final

from msgspec.structs import replace

from reconciler.api.binding import Binding, Reason
from reconciler.api.clusters import ClusterObservation
from reconciler.api.policies import Division
from reconciler.api.problem import Problem, warning
from reconciler.api.refs import Identity
from reconciler.containment import with_subject
from reconciler.placement.assign_replicas import CONSTRAINED_STAY, in_order_of_trial, place_by_capacity, place_copies
from reconciler.placement.candidates import BUILT_IN, groups_of
from reconciler.placement.capacity import FleetRoom, causes, pending_writes, remedies
from reconciler.placement.constraints import constraints_in_force, with_closings
from reconciler.placement.gang import components_of, place_whole
from reconciler.placement.job_parts import PARTS_STAY, place_parts
from reconciler.placement.placement_tables import (
    UNDECIDED,
    Placed,
    PlacementTables,
    depends_on_capacity,
    depends_on_room,
    takes_capacity,
    takes_same_capacity,
)
from reconciler.placement.values import (
    OPEN,
    Assignment,
    PlacementContext,
    PlacementItem,
    PlacementRequest,
    PlacementResult,
    Shortfall,
)


def place(
    request: PlacementRequest, tables: PlacementTables | None = None, gone: Iterable[Identity] = ()
) -> PlacementResult:
    """Return a binding for every item of the request, and a warning for each incomplete placement.

    Pure, idempotent on its own result, and independent of the order of its inputs. Items that do not depend on capacity
    come first, the rest by priority class and identity. With `tables` of an earlier call, `items` are those that may
    have changed, `gone` those removed; the result is of all known ones.
    """
    return _Round(request, tables or PlacementTables()).run(gone)


class _Round:
    def __init__(self, request: PlacementRequest, tables: PlacementTables) -> None:
        self._request = request
        self._tables = tables
        self._observed = request.observations.clusters
        self._index = tables.index_of(request.clusters, self._observed)
        self._clusters = self._index.clusters
        self._constraints = constraints_in_force(request.observations.constraints, request.now)
        self._previous = request.observations.previous
        self._room = FleetRoom({name: self._observed[name] for name in self._observed if name in self._clusters})

    def run(self, gone: Iterable[Identity]) -> PlacementResult:
        tables = self._tables
        tables.follow(self._observed, self._request.priority_classes)
        # Whether items that depend on capacity must be placed again because of it.
        dirty = {identity: tables.forget(identity) for identity in gone}
        for item in sorted(self._request.items, key=lambda item: item.identity):
            dirty[item.identity] = with_subject(item.identity, self._place_item, item)
        if tables.by_room and (tables.consumers is None or any(dirty.values())):
            self._place_by_room()
            dirty |= dict.fromkeys(tables.by_room, True)
        tables.bindings.update(dirty, self._binding)
        tables.problems.update(dirty, self._problems)
        problems = tuple(problem for row in tables.problems.rows.values() for problem in row)
        return PlacementResult(bindings=tables.bindings.rows, problems=problems)

    def _place_item(self, item: PlacementItem) -> bool:
        """Place an item that does not depend on capacity; return whether the others must be placed again."""
        tables, identity, situation = self._tables, item.identity, self._situation(item)
        before = tables.placed.get(identity)
        touched_room, was_by_room = tables.touches_room(identity), identity in tables.by_room
        assignment: Assignment | None = None
        if not depends_on_capacity(situation):
            item, decided = situation.item, self._index.decided
            key = (
                self._index.id_of(item.policy), item.gvk, item.demand.replicas, item.demand.is_divisible,
                item.has_completions, situation.group_in_use,
                tuple(situation.had.items()), tuple(situation.excluded.items()),
            )  # fmt: skip
            assignment = decided.get(key)
            if assignment is None:
                assignment = decided[key] = self._decide_parts(situation, by_capacity=False)
        elif situation.had:
            questions = self._room.questions
            tentative = self._decide_parts(situation, situation.needs_room)
            # Existing replicas stay or shrink, so that capacity does not matter.
            assignment = tentative if self._room.questions == questions else None
        if assignment is None:
            tables.by_room[identity] = None
            tables.set_consumer(identity, takes=False)
            tables.placed[identity] = Placed(situation, UNDECIDED)
            return True
        tables.by_room.pop(identity, None)
        placed = tables.placed[identity] = Placed(situation, assignment)
        takes = tables.consumers is not None and takes_capacity(placed, tables.showing)
        tables.set_consumer(identity, takes=takes)
        return was_by_room or ((touched_room or takes) and (before is None or not takes_same_capacity(before, placed)))

    def _place_by_room(self) -> None:
        """Place all items that depend on capacity, one after another; the others keep theirs."""
        tables = self._tables
        situations = [tables.placed[identity].situation for identity in sorted(tables.by_room)]
        needs_room = [situation for situation in situations if situation.needs_room]
        if needs_room:
            classes = {**BUILT_IN, **self._request.priority_classes}
            needs_room.sort(key=lambda one: (-classes.get(one.item.policy.priority_class, 0), one.item.identity))
            if tables.consumers is None:
                apart = {one: each for one, each in tables.placed.items() if one not in tables.by_room}
                tables.consumers = {one: None for one, each in apart.items() if takes_capacity(each, tables.showing)}
            consumers = tables.consumers
            for identity in sorted((*tables.by_room, *consumers)) if tables.showing else ():
                situation = tables.placed[identity].situation
                item = situation.item
                # Earlier assigned replicas that the cluster does not show yet.
                for cluster, missing in pending_writes(situation, tables.showing):
                    for part in components_of(situation):
                        # Which parts of a set are missing is not known, so of each as many as are missing at most.
                        pods = min(missing, part.replicas) if item.demand.components else missing
                        self._room.take(((cluster, pods),), part.shape, item.identity.namespace)
        else:
            consumers = {}
        asks = [one.item.identity for one in situations if not one.needs_room]
        order = [*sorted((*asks, *consumers)), *(one.item.identity for one in needs_room)]
        for identity in order:
            placed = tables.placed[identity]
            if identity in tables.by_room:
                situation = placed.situation
                assignment = with_subject(identity, self._decide_parts, situation, situation.needs_room)
                placed = tables.placed[identity] = Placed(situation, assignment)
            if needs_room:
                self._reserve(placed.situation, placed.assignment)

    def _problems(self, identity: Identity) -> tuple[Problem, ...] | None:
        placed = self._tables.placed.get(identity)
        if placed is None or not placed.assignment.shortfalls:
            return None
        return tuple(_problem(placed, shortfall, self._observed) for shortfall in placed.assignment.shortfalls)

    def _binding(self, identity: Identity) -> Binding | None:
        placed = self._tables.placed.get(identity)
        if placed is None:
            return None
        item, assignment = placed.situation.item, placed.assignment
        divided_before = (_AS_BEFORE,) if item.is_autoscaled and placed.situation.had else ()
        return Binding(
            identity=item.identity,
            policy=item.policy.ref,
            targets=assignment.targets,
            unplaced=assignment.unplaced,
            affinity_name=assignment.affinity_name,
            unknown_room=assignment.unknown_room,
            reasons=(*divided_before, *assignment.reasons),
            cluster_reasons=self._index.outcomes(assignment),
        )

    def _situation(self, item: PlacementItem) -> PlacementContext:
        previous = self._previous.get(item.identity)
        if item.is_autoscaled and previous is not None:
            # As it was divided before; scaled to 0 it is all the same.
            total = sum(target.replicas or 0 for target in previous.targets)
            is_divided = item.policy.placement.scheduling.division is not Division.DUPLICATED
            if item.demand.replicas and total and is_divided:
                item = replace(item, demand=replace(item.demand, replicas=total))
        constraints = self._constraints.get(item.identity, ())
        if previous is None and not constraints:
            return PlacementContext(item=item, fresh=self._request.fresh, partial=self._request.settings.partial)
        scheduling = item.policy.placement.scheduling
        needs_capacity = scheduling.division.needs_capacity or scheduling.gang
        # A cap of 0 excludes, too, where replicas cannot be moved one by one.
        excluding = [c for c in constraints if c.excludes or (c.replicas_max <= 0 and not needs_capacity)]
        capping = [c for c in constraints if c not in excluding]
        targets = sorted(previous.targets) if previous is not None else []
        situation = PlacementContext(
            item=item,
            had={target.cluster: target.replicas or 0 for target in targets if target.cluster in self._clusters},
            caps={c.cluster: max(0, c.replicas_max) for c in capping},
            cap_reasons={c.cluster: c.reason for c in capping},
            excluded={c.cluster: c.reason for c in excluding},
            group_in_use=previous.affinity_name if previous else "",
            fresh=self._request.fresh,
            partial=self._request.settings.partial,
            written=self._request.copies.get(item.identity, ()),
        )
        return with_closings(situation, self._request.closed.get(item.identity, {}))

    def _decide_parts(self, situation: PlacementContext, by_capacity: bool) -> Assignment:
        self._room.unknown.clear()
        assignment = place_parts(situation, self._clusters, partial(self._decide_plainly, by_capacity=by_capacity))
        if self._room.unknown and depends_on_room(situation, assignment):
            return replace(assignment, unknown_room=tuple(sorted(self._room.unknown)))
        return assignment

    def _decide_plainly(self, situation: PlacementContext, by_capacity: bool) -> Assignment:
        policy, finder = situation.item.policy, self._index.finder
        # A workload scaled to 0 keeps the tiers that it was spread over.
        tiered = by_capacity or (situation.item.demand.replicas == 0 and situation.division.needs_capacity)
        groups = self._index.groups.get((self._index.id_of(policy), tiered))
        if groups is None:
            groups = self._index.groups[id(policy), tiered] = groups_of(policy, by_capacity=tiered)
        if len(groups) > 1:
            groups = in_order_of_trial(groups, situation, self._clusters)
        if situation.is_whole:
            return place_whole(situation, groups, finder, self._room)
        item = situation.item
        room_of = self._room.asker(item.demand.shape, item.identity.namespace, item.gvk.group_kind, there=situation.had)
        return (place_by_capacity if by_capacity else place_copies)(situation, groups, finder, room_of)

    def _reserve(self, situation: PlacementContext, assignment: Assignment) -> None:
        """Reserve capacity for new replicas on each cluster. Removed ones free theirs only when their pods are gone."""
        item, had, room = situation.item, situation.had, self._room
        namespace = item.identity.namespace
        if room.counts_objects:
            for target in assignment.targets:
                if target.cluster not in had:
                    room.take_object(target.cluster, namespace, item.gvk.group_kind)
        if situation.is_whole:
            for name, replicas in assignment.targets:
                for part in components_of(situation):
                    # Which part grew is not known, so of each as many as were added at most.
                    added = (replicas or 0) - had[name] if name in had else part.replicas
                    room.take(((name, min(added, part.replicas)),), part.shape, namespace)
        elif situation.replicas:
            targets: Iterable[tuple[str, int | None]] = assignment.targets
            if had or item.overrides is not None:
                targets = [
                    (name, item.sent(name, replicas or 0) - (item.sent(name, had[name]) if name in had else 0))
                    for name, replicas in targets
                ]
            room.take(targets, item.demand.shape, namespace)


_AS_BEFORE = Reason(rule="autoscaled", text="an autoscaler or retain-replicas sets its number: it is divided as before")


def _problem(placed: Placed, shortfall: Shortfall, observed: Mapping[str, ClusterObservation]) -> Problem:
    """Return the warning of a shortfall: its causes, what is placed, and a next step that can still help."""
    situation, assignment = placed.situation, placed.assignment
    item, clauses, advice = situation.item, [shortfall.text], _ADVICE[shortfall.code]
    if shortfall.code == "not-enough-capacity":
        candidates = [name for name, reason in assignment.cluster_reasons.items() if reason.rule in OPEN]
        shapes, namespace, caps = item.demand.shapes, item.identity.namespace, sorted(situation.cap_reasons.items())
        clauses += causes(candidates, observed, shapes, namespace)
        if caps:  # Where a cap of a tick keeps replicas out, capacity is not the problem.
            names, whys = ", ".join(name for name, _ in caps), "; ".join(f"{name}: {why}" for name, why in caps)
            advice = f"{names} takes no more while a cap is in force ({whys}); {_UNCAP}"
        elif actions := remedies(candidates, observed, shapes, namespace):
            advice = "; ".join(actions)
        elif situation.partial or situation.is_whole:
            advice = "add capacity"
    counts = {target.cluster: target.replicas or 0 for target in assignment.targets}
    if not counts:
        clauses.append("nothing of it is placed")
    elif any(count > situation.had.get(cluster, 0) for cluster, count in counts.items()):
        clauses.append(f"{sum(counts.values())} replicas are placed")
    else:
        clauses.append("what is there stays")
    placement = item.policy.placement
    source = placement.source if placement.source.path else item.policy.source
    return warning(source, "spec.placement", shortfall.code, f"{item.identity}: {'; '.join(clauses)}; {advice}")


_UNCAP = "an edit of the placement or the pod template ends it, as does a change of the nodes; else add capacity"

_ADVICE = {
    CONSTRAINED_STAY: "add capacity elsewhere, or end what takes them away",
    PARTS_STAY: "end the order that takes it away, or give the Job another name to divide it again",
    "no-cluster-fits": "see `reconciler explain` for what each cluster lacks",
    "not-enough-capacity": "add capacity, or allow spec.placement.partial in the Fleet",
    "capacity-unknown": "give access to the cluster, or --observations of it",
    "spread-constraint-unmet": "relax spec.placement.spreadConstraints or add clusters",
}

SHORTFALLS: Final = frozenset(_ADVICE)
"""The codes of shortfalls: reasons why a template is not placed as its policy says."""
