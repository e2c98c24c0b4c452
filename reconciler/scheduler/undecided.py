"""Objects that a process for some of the clusters cannot schedule alone: they depend on the other clusters.

A copy that is placed in every matching cluster can be evaluated for each cluster by itself. A placement that is
divided, chosen among clusters, or must not run twice cannot; it stays as it is. Source: ADR 24.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from reconciler.api.policies import Division
from reconciler.api.problem import NOWHERE, Problem, warning
from reconciler.api.refs import Identity
from reconciler.placement import groups_of, tier_of
from reconciler.scheduler.schedule import Schedule
from reconciler.templates import RUNS_ONCE, is_run_of_hook


def undecided(
    schedule: Schedule, own: Collection[str], ledger: Mapping[str, Collection[Identity]]
) -> dict[Identity, Problem]:
    """Return why objects stay as they are in the clusters `own`, by identity. `ledger`: by cluster the applied ones."""
    here = {name: cluster for name, cluster in schedule.fleet.clusters.items() if name in own}
    may_come: dict[int, bool] = {}
    found: dict[Identity, str] = {}
    for identity, policy in schedule.policies.items():
        binding = schedule.bindings.get(identity)
        why = _why(schedule, identity) if binding is not None and not binding.is_dependency else None
        if why is None:
            continue
        if id(policy) not in may_come:
            groups = groups_of(policy, by_capacity=True)
            may_come[id(policy)] = any(
                tier_of(cluster, group)[0] is not None for cluster in here.values() for group in groups
            )
        if may_come[id(policy)] or any(identity in ledger.get(name, ()) for name in here):
            found[identity] = why
    for identity in _followers(schedule, found):
        found[identity] = "what it goes along with is left as it is"
    return {identity: _problem(schedule, identity, found[identity]) for identity in sorted(found)}


def undecided_in(schedule: Schedule, identity: Identity, clusters: Collection[str]) -> tuple[Problem, ...]:
    """Return a warning if the processes of these clusters, those that pull, leave an object there as it is."""
    where = ", ".join(name for name in sorted(clusters) if schedule.fleet.clusters[name].pulls)
    why = _why(schedule, identity) if where else None
    return (_problem(schedule, identity, why, f" in {where}, where another process applies"),) if why else ()


def _why(schedule: Schedule, identity: Identity) -> str | None:
    policy, template = schedule.policies.get(identity), schedule.fleet.templates.get(identity)
    if policy is None:
        return None
    placement = policy.placement
    if identity[:2] in RUNS_ONCE and not is_run_of_hook(template):
        return "it must not run twice, and whether it runs in another cluster is not known"
    if policy.application_failover is not None:
        return "its policy moves it when it fails, which is decided over all clusters"
    if placement.spread or len(placement.terms) > 1:
        return "which of the clusters have it rests on where it was before"
    is_divided = placement.scheduling.division is not Division.DUPLICATED or placement.scheduling.gang
    if not is_divided or template is None:
        return None
    is_divisible = any(target.replicas is not None for target in schedule.bindings[identity].targets)
    has_replicas = bool(schedule.interpreters.of(*identity[:2]).replicas_path)
    return "how its replicas are divided rests on what all clusters hold" if is_divisible or has_replicas else None


def _followers(schedule: Schedule, found: Collection[Identity]) -> list[Identity]:
    """Return the dependencies of objects that cannot be scheduled."""
    left = set(found)
    dependencies = [binding for binding in schedule.bindings.values() if binding.is_dependency and binding.owners]
    while True:
        more = [b.identity for b in dependencies if b.identity not in left and not left.isdisjoint(b.owners)]
        if not more:
            return sorted(left.difference(found))
        left.update(more)


def _problem(schedule: Schedule, identity: Identity, why: str, where: str = "") -> Problem:
    template = schedule.fleet.templates.get(identity)
    source = template.source if template is not None else NOWHERE
    return warning(source, "", "undecided", f"{identity} is left as it is{where}: {why}")
