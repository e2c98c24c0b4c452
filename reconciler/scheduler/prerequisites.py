"""Objects that wait in a cluster for their prerequisites, and those that other clusters decide about.

An object waits for its Namespace and the definition of its kind if these are missing and held back. A process for some
of the clusters leaves a placement as it is that depends on the others: divided, chosen among clusters, or not to be run
twice. Source: ADR 24.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping

from reconciler.api.plan import HeldBy, Hold
from reconciler.api.policies import Division
from reconciler.api.problem import NOWHERE, Problem, warning
from reconciler.api.refs import Identity
from reconciler.placement import concerned_by
from reconciler.scheduler.namespaces import is_created_elsewhere, namespace_identity
from reconciler.scheduler.schedule import Schedule
from reconciler.templates import RUNS_ONCE, is_run_of_hook

_DEFINITION = ("apiextensions.k8s.io", "CustomResourceDefinition")
_NAMESPACE = ("", "Namespace")
_FROZEN = Hold(HeldBy.OTHERS, "it is frozen, since the store cannot be read completely")


def prerequisites(schedule: Schedule, identity: Identity) -> Iterator[Identity]:
    """Yield the store's prerequisites of an object, in any cluster."""
    if identity.namespace and not is_created_elsewhere(schedule.fleet, identity.namespace):
        namespace = namespace_identity(identity.namespace)
        if namespace in schedule.bindings:
            yield namespace
    definition = schedule.definition_of(identity[:2])
    if definition is not None:
        yield definition


def withheld(schedule: Schedule, identity: Identity, cluster: str) -> Hold | None:
    """Return why a scheduled object is not written in a cluster; None: it is."""
    return _FROZEN if identity in schedule.frozen else schedule.hold(identity, cluster)


def waits_for_prerequisite(
    schedule: Schedule, identity: Identity, cluster: str, there: Collection[Identity] = ()
) -> Hold | None:
    """Return the held-back prerequisite that an object waits for; None: none. `there`: those that may exist."""
    for needed in prerequisites(schedule, identity):
        if cluster in schedule.bindings[needed].clusters and needed not in there:
            why = withheld(schedule, needed, cluster)
            if why is not None:
                return Hold(HeldBy.OTHERS, f"waits for {needed}: {why.why}")
    return None


def withheld_prerequisites(schedule: Schedule, identities: Collection[Identity]) -> set[Identity]:
    """Return the prerequisites of these that are held back in some cluster."""
    all_needed = {needed for identity in identities for needed in prerequisites(schedule, identity)}
    return {needed for needed in all_needed if _withheld_in(schedule, needed)}


def dependents(schedule: Schedule, needed: Collection[Identity]) -> set[Identity]:
    """Return placed objects that have to wait for one of these."""
    spaces = {identity.name for identity in needed if identity[:2] == _NAMESPACE}
    kinds = {kind for kind, definition in schedule.definitions.items() if definition in needed}
    if not spaces and not kinds:
        return set()
    return {identity for identity in schedule.bindings if identity.namespace in spaces or identity[:2] in kinds}


def without_definition(schedule: Schedule) -> set[Identity]:
    """Return objects that are placed where the store's definition of their kind is not."""
    defined = {
        kind: frozenset(_clusters(schedule, definition))
        for kind, definition in schedule.definitions.items()
        if definition in schedule.bindings
    }
    if not defined:
        return set()
    return {
        identity
        for identity, binding in schedule.bindings.items()
        if identity[:2] in defined and not defined[identity[:2]].issuperset(binding.clusters)
    }


def differing_prerequisites(before: Schedule, after: Schedule, suspects: Collection[Identity]) -> set[Identity]:
    """Return the Namespaces and definitions among `suspects` whose effect on dependents differs."""
    needed = (identity for identity in suspects if identity[:2] in (_NAMESPACE, _DEFINITION))
    return {identity for identity in needed if _effect(before, identity) != _effect(after, identity)}


def _effect(schedule: Schedule, needed: Identity) -> tuple[Hashable, ...]:
    """Return the relevant clusters of a prerequisite, those where it is held back, and a definition's digest."""
    template = schedule.fleet.templates.get(needed) if needed[:2] == _DEFINITION else None
    return (_withheld_in(schedule, needed), template and (_clusters(schedule, needed), template.digest))


def _withheld_in(schedule: Schedule, identity: Identity) -> tuple[tuple[str, Hold], ...]:
    holds = ((cluster, withheld(schedule, identity, cluster)) for cluster in _clusters(schedule, identity))
    return tuple([(cluster, why) for cluster, why in holds if why is not None])


def signature_of_prerequisites(schedule: Schedule, identity: Identity) -> Hashable:
    """Return the effect of an object's prerequisites: equal ones have an equal result."""
    all_needed = dict.fromkeys((*prerequisites(schedule, identity), schedule.definitions.get(identity[:2])))
    standings = [(needed, _effect(schedule, needed)) for needed in all_needed if needed is not None]
    # A Namespace that is not held back asks nothing of an object, whether anything lives in it or not.
    return tuple([(needed, standing) for needed, standing in standings if any(standing) or needed[:2] != _NAMESPACE])


def _clusters(schedule: Schedule, identity: Identity) -> tuple[str, ...]:
    binding = schedule.bindings.get(identity)
    return tuple(binding.clusters) if binding is not None else ()


def undecided(
    schedule: Schedule, own: Collection[str], ledger: Mapping[str, Collection[Identity]]
) -> dict[Identity, Problem]:
    """Return why objects stay as they are in the clusters `own`, by identity. `ledger`: by cluster the applied ones."""
    here = {name: cluster for name, cluster in schedule.fleet.clusters.items() if name in own}
    may_come = set(concerned_by(here.values(), schedule.policies))
    causes: dict[Identity, str] = {}
    for identity in schedule.policies:
        binding = schedule.bindings.get(identity)
        why = _why(schedule, identity) if binding is not None and not binding.is_dependency else None
        if why and (identity in may_come or any(identity in ledger.get(name, ()) for name in here)):
            causes[identity] = why
    dependencies = [binding for binding in schedule.bindings.values() if binding.is_dependency and binding.owners]
    more = [*causes]
    while more:
        more = [b.identity for b in dependencies if b.identity not in causes and not causes.keys().isdisjoint(b.owners)]
        causes |= dict.fromkeys(more, "what it goes along with is left as it is")
    return {identity: _problem(schedule, identity, causes[identity]) for identity in sorted(causes)}


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


def _problem(schedule: Schedule, identity: Identity, why: str, where: str = "") -> Problem:
    template = schedule.fleet.templates.get(identity)
    source = template.source if template is not None else NOWHERE
    return warning(source, "", "undecided", f"{identity} is left as it is{where}: {why}")
