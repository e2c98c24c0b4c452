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


def prerequisites(decision: Schedule, identity: Identity) -> Iterator[Identity]:
    """Yield the store's prerequisites of an object, in any cluster."""
    if identity.namespace and not comes_by_itself(decision.fleet, identity.namespace):
        namespace = namespace_identity(identity.namespace)
        if namespace in decision.bindings:
            yield namespace
    definition = decision.definition_of(identity[:2])
    if definition is not None:
        yield definition


def withheld(decision: Schedule, identity: Identity, cluster: str) -> Hold | None:
    """Return why a scheduled object is not written in a cluster; None: it is."""
    return _FROZEN if identity in decision.frozen else decision.hold(identity, cluster)


def waits_for_prerequisite(
    decision: Schedule, identity: Identity, cluster: str, there: Collection[Identity] = ()
) -> Hold | None:
    """Return the missing and held-back prerequisite that an object waits for in a cluster; None: none.

    `there`: prerequisites that may exist already.
    """
    for needed in prerequisites(decision, identity):
        if cluster in decision.bindings[needed].clusters and needed not in there:
            why = withheld(decision, needed, cluster)
            if why is not None:
                return Hold(HeldBy.OTHERS, f"waits for {needed}: {why.why}")
    return None


def withheld_prerequisites(decision: Schedule, identities: Collection[Identity]) -> set[Identity]:
    """Return the prerequisites of these that are held back in some cluster."""
    found = {needed for identity in identities for needed in prerequisites(decision, identity)}
    return {needed for needed in found if _withheld_in(decision, needed)}


def dependents(decision: Schedule, needed: Collection[Identity]) -> set[Identity]:
    """Return placed objects that have to wait for one of these."""
    spaces = {identity.name for identity in needed if identity[:2] == _NAMESPACE}
    kinds = {kind for kind, definition in decision.definitions.items() if definition in needed}
    if not spaces and not kinds:
        return set()
    return {identity for identity in decision.bindings if identity.namespace in spaces or identity[:2] in kinds}


def without_definition(decision: Schedule) -> set[Identity]:
    """Return objects that are placed where the store's definition of their kind is not."""
    defined = {
        kind: frozenset(_clusters(decision, definition))
        for kind, definition in decision.definitions.items()
        if definition in decision.bindings
    }
    if not defined:
        return set()
    return {
        identity
        for identity, binding in decision.bindings.items()
        if identity[:2] in defined and not defined[identity[:2]].issuperset(binding.clusters)
    }


def differing_prerequisites(before: Schedule, after: Schedule, suspects: Collection[Identity]) -> set[Identity]:
    """Return the Namespaces and definitions among `suspects` whose effect on dependents differs."""
    needed = (identity for identity in suspects if identity[:2] in (_NAMESPACE, _DEFINITION))
    return {identity for identity in needed if _standing(before, identity) != _standing(after, identity)}


def _standing(decision: Schedule, needed: Identity) -> tuple[tuple[Hashable, ...], tuple[Hashable, ...]]:
    """Return the relevant clusters of a prerequisite, and those where it is held back."""
    clusters = _clusters(decision, needed) if needed[:2] == _DEFINITION else ()
    return (clusters, _withheld_in(decision, needed))


def _withheld_in(decision: Schedule, identity: Identity) -> tuple[tuple[str, Hold], ...]:
    found = ((cluster, withheld(decision, identity, cluster)) for cluster in _clusters(decision, identity))
    return tuple([(cluster, why) for cluster, why in found if why is not None])


def signature_of_prerequisites(decision: Schedule, identity: Identity) -> Hashable:
    """Return the effect of an object's prerequisites: equal ones have an equal result."""
    standings = [(needed, _standing(decision, needed)) for needed in prerequisites(decision, identity)]
    # A Namespace that is not held back asks nothing of an object, whether anything lives in it or not.
    return tuple([(needed, standing) for needed, standing in standings if any(standing) or needed[:2] != _NAMESPACE])


def _clusters(decision: Schedule, identity: Identity) -> tuple[str, ...]:
    binding = decision.bindings.get(identity)
    return tuple(binding.clusters) if binding is not None else ()
