"""The inputs of a descheduling cap: the desired state at its time, and the nodes of the cluster.

An edit of the pod template or of the placement in its policy is a new wish, and ends the cap at once. Source:
design#end-of-a-cap.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from reconciler.interpreters.registry import Registry
from reconciler.model.binding import Constraint, Tick
from reconciler.model.fleet import Template
from reconciler.model.observation import ClusterObservation, Observations
from reconciler.model.policy import PropagationPolicy
from reconciler.model.refs import Identity
from reconciler.model.tree import digest_of

_BETWEEN = ":"


def basis_of(template: Template, policy: PropagationPolicy, seen: ClusterObservation, interpreters: Registry) -> str:
    """Return digests of the desired state, and of the nodes' admission and size."""
    nodes = [
        {
            "name": node.name,
            "open": node.ready and not node.unschedulable,
            "taints": sorted([taint.key, taint.value, str(taint.effect)] for taint in node.taints),
            "allocatable": dict(node.allocatable),
        }
        for node in sorted(seen.nodes or (), key=lambda node: node.name)
    ]
    return f"{_wish(template, policy, interpreters)}{_BETWEEN}{digest_of(nodes)}"


def is_wished_as_then(cap: Constraint, template: Template, policy: PropagationPolicy, interpreters: Registry) -> bool:
    """Return whether pod template and placement are unchanged since the cap began."""
    wish, between, _ = cap.basis.partition(_BETWEEN)
    # Caps of earlier versions lack that.
    return not between or wish == _wish(template, policy, interpreters)


def without_outdated_caps(
    observations: Observations,
    templates: Mapping[Identity, Template],
    policies: Mapping[Identity, PropagationPolicy],
    interpreters: Registry,
) -> Observations:
    """The observations without caps that an edit has ended; themselves when there are none."""
    outdated = {
        cap
        for cap in observations.constraints
        if cap.tick is Tick.DESCHEDULING
        and cap.identity in templates
        and cap.identity in policies
        and not is_wished_as_then(cap, templates[cap.identity], policies[cap.identity], interpreters)
    }
    if not outdated:
        return observations
    return replace(observations, constraints=tuple(c for c in observations.constraints if c not in outdated))


def _wish(template: Template, policy: PropagationPolicy, interpreters: Registry) -> str:
    placement = _without_places(msgspec.to_builtins(policy.placement, order="deterministic", str_keys=True))
    pods = interpreters.of(*template.identity[:2]).pod_template(template.body)
    return digest_of({"placement": placement, "template": pods})


def _without_places(tree: Any) -> Any:
    """Without the files and lines, which move when something else is edited."""
    if isinstance(tree, dict):
        return {key: _without_places(value) for key, value in tree.items() if key != "source"}
    return [_without_places(item) for item in tree] if isinstance(tree, (list, tuple)) else tree
