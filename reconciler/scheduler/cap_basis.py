"""The inputs of a descheduling cap: the desired state at its time, and the nodes of the cluster.

An edit of the pod template or of the placement in its policy is a new wish, and ends the cap at once. Source:
design#end-of-a-cap.

The share of spec.completions that each cluster's part of a divided Job runs.

Source: design#jobs: split at creation and fixed; Karmada: completions by Webster over the assigned parallelism.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from reconciler.api.binding import Constraint, TargetCluster, Tick
from reconciler.api.clusters import ClusterObservation, Observations
from reconciler.api.content import JsonObject, dig, digest_of
from reconciler.api.fleet import Template
from reconciler.api.policies import PropagationPolicy
from reconciler.api.refs import Identity
from reconciler.kinds.jobs import COMPLETIONS, PARALLELISM
from reconciler.kinds.registry import Registry
from reconciler.placement import webster

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


WORK_QUEUE: Final = -1
"""Instead of a share: the part was created with parallelism alone, which cannot be changed."""


def fixed_share(part: JsonObject, *, is_single_run: bool) -> int | None:
    """Return the completions that a part of a Job was created with; None: they are not fixed.

    `is_single_run`: of the template. Earlier versions sent such a Job with parallelism alone.
    """
    count = dig(part, *COMPLETIONS)
    if isinstance(count, int):
        return count
    return WORK_QUEUE if is_single_run and dig(part, *PARALLELISM) is not None else None


def has_completions(body: JsonObject) -> bool:
    """Return whether a Job sets how many of its pods have to succeed."""
    total = dig(body, *COMPLETIONS)
    return isinstance(total, int) and not isinstance(total, bool)


def missing_completions(
    body: JsonObject, targets: tuple[TargetCluster, ...], fixed: Mapping[str, int], elsewhere: int
) -> int:
    """Return how many completions of a divided Job no part has.

    `fixed`: as `completions` takes it. `elsewhere`: those of parts that are not among the targets, ended ones that are
    no longer there included.
    """
    if not has_completions(body):
        return 0
    total: int = dig(body, *COMPLETIONS)
    return max(0, total - elsewhere - sum(completions(body, targets, fixed).values()))


def completions(body: JsonObject, targets: tuple[TargetCluster, ...], fixed: Mapping[str, int]) -> dict[str, int]:
    """Completions per cluster; empty when the Job has none to split.

    `fixed`: what live parts were created with, which API servers refuse to change; the other clusters share the rest.
    """
    if not has_completions(body):
        return {}
    total: int = dig(body, *COMPLETIONS)
    votes = {target.cluster: target.replicas or 0 for target in targets if target.cluster not in fixed}
    if not any(votes.values()):
        # Scaled to 0: the share counts later, and a part with 0 completions would end at once.
        votes = dict.fromkeys(votes, 1)
    return {**webster(max(0, total - sum(fixed.values())), votes), **fixed}
