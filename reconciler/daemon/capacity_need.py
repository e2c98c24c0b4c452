"""For which templates free capacity matters: their workloads are observed, and a commit of others reads no nodes.

A fleet of which one policy in a hundred divides by free capacity would else list the workloads of all others, too, in
every namespace of every cluster.
"""

from __future__ import annotations

from reconciler.engine import Decision
from reconciler.interpreters.registry import interpreter_for
from reconciler.model.fleet import Fleet
from reconciler.model.refs import Identity, ResourceRef
from reconciler.stages.differences import changed_keys
from reconciler.stages.wants_capacity import policy_wants_capacity, wants_capacity


def is_room_needed(fleet: Fleet, decided: Decision | None) -> bool:
    """Whether a store that moved on since it was decided last has to be placed by the room that there is now."""
    if not wants_capacity(fleet):
        return False
    if decided is None or decided.fleet.propagation != fleet.propagation:
        return True
    return any(may_need_room(found, decided) for found in changed_keys(decided.fleet.templates, fleet.templates))


def may_need_room(identity: Identity, decided: Decision) -> bool:
    """Whether free capacity may matter for a template: unless it has been claimed by a policy that wants none."""
    policy = decided.policies.get(identity)
    return policy is None or policy_wants_capacity(policy)


def workloads_to_observe(fleet: Fleet, decided: Decision | None = None) -> dict[Identity, ResourceRef]:
    """The workloads of the store whose state in the clusters may decide anything. `decided`: the last decision."""
    if decided is not None and decided.fleet.propagation != fleet.propagation:
        decided = None
    return {
        identity: ResourceRef(template.gvk, identity.namespace, identity.name)
        for identity, template in fleet.templates.items()
        if is_workload(identity) and (decided is None or _is_to_observe(identity, decided))
    }


def _is_to_observe(identity: Identity, decided: Decision) -> bool:
    # What no policy claims is placed nowhere, unless it has come since.
    return identity not in decided.claims.unclaimed and may_need_room(identity, decided)


def is_workload(identity: Identity) -> bool:
    """Whether it runs pods whose number or state placement looks at."""
    return bool(interpreter_for(*identity[:2]).replicas_path) or identity.kind == "Pod"
