"""Templates and clusters that need free capacity: only for these nodes, pods and workloads are read.

A fleet with one policy in a hundred that divides by free capacity would else list the workloads of all others, too, in
every namespace of every cluster, and the nodes and pods of clusters that it never places anything in.
"""

from __future__ import annotations

from reconciler.api.fleet import Fleet
from reconciler.api.ledger import Ledger
from reconciler.api.refs import Identity, ResourceRef
from reconciler.documents import BUILT_IN
from reconciler.incremental import changed_keys
from reconciler.kinds.interpreter import Interpreter
from reconciler.kinds.registry import GENERIC, Registry
from reconciler.placement import groups_of, policy_wants_capacity, tier_of, wants_capacity
from reconciler.scheduler import Schedule


def is_room_needed(fleet: Fleet, decided: Schedule | None) -> bool:
    """Return whether the changes of a store since the last schedule need the present capacity."""
    if not wants_capacity(fleet):
        return False
    if decided is None or decided.fleet.propagation != fleet.propagation:
        return True
    return any(may_need_room(found, decided) for found in changed_keys(decided.fleet.templates, fleet.templates))


def may_need_room(identity: Identity, decided: Schedule) -> bool:
    """Return whether free capacity may matter for a template: unless a policy that needs none claims it."""
    policy = decided.policies.get(identity)
    return policy is None or policy_wants_capacity(policy)


def workloads_to_observe(
    fleet: Fleet, interpreters: Registry, decided: Schedule | None = None
) -> dict[Identity, ResourceRef]:
    """The workloads of the store whose state in the clusters may decide anything. `decided`: the last decision."""
    if decided is not None and decided.fleet.propagation != fleet.propagation:
        decided = None
    fails_over = can_fail_over(fleet)
    return {
        identity: ResourceRef(template.gvk, identity.namespace, identity.name)
        for identity, template in fleet.templates.items()
        if is_to_observe(identity, interpreters, decided, fails_over=fails_over)
        # What no policy claims is placed nowhere, unless it has come since.
        and (decided is None or identity not in decided.claims.unclaimed)
    }


def clusters_with_room(fleet: Fleet, ledger: Ledger) -> frozenset[str]:
    """The clusters whose free capacity may decide anything: a policy that looks at it may place there, or has."""
    wanting = [policy for policy in fleet.propagation if policy_wants_capacity(policy)]
    left = dict(fleet.clusters)
    for group in {group for policy in wanting for group in groups_of(policy, by_capacity=True)}:
        if not left:
            break
        left = {name: cluster for name, cluster in left.items() if tier_of(cluster, group)[0] is None}
    claims = {str(policy.ref) for policy in wanting}
    holding = {name for name in left if any(row.policy in claims for row in ledger.get(name, {}).values())}
    return frozenset((fleet.clusters.keys() - left.keys()) | holding)


def can_fail_over(fleet: Fleet) -> bool:
    """Return whether any policy asks for application failover."""
    return any(policy.application_failover is not None for policy in fleet.propagation)


def is_to_observe(identity: Identity, interpreters: Registry, decided: Schedule | None, *, fails_over: bool) -> bool:
    """Return whether the state of an object in the clusters may matter. `fails_over`: some policy allows it.

    Placement needs objects with replicas or sets of pods, failover all that run something.
    """
    if decided is not None and not may_need_room(identity, decided):
        return False
    interpreter = interpreters.of(*identity[:2])
    if is_placed_by_room(interpreter):
        return True
    policy = decided.policies.get(identity) if decided is not None else None
    may_fail_over = fails_over if policy is None else policy.application_failover is not None
    return may_fail_over and may_run_something(identity, interpreter)


def is_placed_by_room(interpreter: Interpreter) -> bool:
    """Return whether a kind runs a number of pods that is in its template."""
    return bool(interpreter.replicas_path) or interpreter.demand is not GENERIC.demand


def may_run_something(identity: Identity, interpreter: Interpreter) -> bool:
    """Return whether it may run pods: with a pod template, or a custom kind without a known answer."""
    return interpreter.pod_template is not GENERIC.pod_template or identity[:2] not in BUILT_IN
