"""Prerequisites of an object in a cluster: its Namespace, and the definition of its kind.

If one of these is missing and is itself held back, an API server would refuse the object: it waits with it.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator

from reconciler.api.plan import HeldBy, Hold
from reconciler.api.refs import Identity
from reconciler.scheduler.namespaces import comes_by_itself, namespace_identity
from reconciler.scheduler.schedule import Schedule

_DEFINITION = ("apiextensions.k8s.io", "CustomResourceDefinition")
_NAMESPACE = ("", "Namespace")
_FROZEN = Hold(HeldBy.OTHERS, "it is frozen, since the store cannot be read completely")


def prerequisites(schedule: Schedule, identity: Identity) -> Iterator[Identity]:
    """Yield the store's prerequisites of an object, in any cluster."""
    if identity.namespace and not comes_by_itself(schedule.fleet, identity.namespace):
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
    """Return the missing and held-back prerequisite that an object waits for in a cluster; None: none.

    `there`: prerequisites that may exist already.
    """
    for needed in prerequisites(schedule, identity):
        if cluster in schedule.bindings[needed].clusters and needed not in there:
            why = withheld(schedule, needed, cluster)
            if why is not None:
                return Hold(HeldBy.OTHERS, f"waits for {needed}: {why.why}")
    return None


def withheld_prerequisites(schedule: Schedule, identities: Collection[Identity]) -> set[Identity]:
    """Return the prerequisites of these that are held back in some cluster."""
    found = {needed for identity in identities for needed in prerequisites(schedule, identity)}
    return {needed for needed in found if _withheld_in(schedule, needed)}


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
    return {identity for identity in needed if _standing(before, identity) != _standing(after, identity)}


def _standing(schedule: Schedule, needed: Identity) -> tuple[tuple[Hashable, ...], tuple[Hashable, ...]]:
    """Return the relevant clusters of a prerequisite, and those where it is held back."""
    clusters = _clusters(schedule, needed) if needed[:2] == _DEFINITION else ()
    return (clusters, _withheld_in(schedule, needed))


def _withheld_in(schedule: Schedule, identity: Identity) -> tuple[tuple[str, Hold], ...]:
    found = ((cluster, withheld(schedule, identity, cluster)) for cluster in _clusters(schedule, identity))
    return tuple([(cluster, why) for cluster, why in found if why is not None])


def signature_of_prerequisites(schedule: Schedule, identity: Identity) -> Hashable:
    """Return the effect of an object's prerequisites: equal ones have an equal result."""
    standings = [(needed, _standing(schedule, needed)) for needed in prerequisites(schedule, identity)]
    # A Namespace that is not held back asks nothing of an object, whether anything lives in it or not.
    return tuple([(needed, standing) for needed, standing in standings if any(standing) or needed[:2] != _NAMESPACE])


def _clusters(schedule: Schedule, identity: Identity) -> tuple[str, ...]:
    binding = schedule.bindings.get(identity)
    return tuple(binding.clusters) if binding is not None else ()
