"""`replicaScheduling`: how replicas are spread, with every default resolved."""

from __future__ import annotations

from reconciler.model.policy import ClusterAffinity, Division, ReplicaScheduling, StaticWeight
from reconciler.stages.documents import Fields
from reconciler.stages.policies.affinity import read_target


def read_scheduling(placement: Fields) -> ReplicaScheduling:
    """Return the division of replicas.

    Source: "replicaScheduling parameters". Karmada: Duplicated when the object is absent, Divided when it has no type,
    Weighted when it has no preference; a dynamic weight outranks a static list.
    """
    fields = placement.child("replicaScheduling")
    if fields is None:
        return ReplicaScheduling(source=placement.source())
    preference = fields.child("weightPreference")
    weights = _static_weights(preference) if preference else ()
    dynamic = preference is not None and bool(preference.text("dynamicWeight"))
    return ReplicaScheduling(
        division=_division(fields, dynamic=dynamic),
        static_weights=weights,
        has_weight_preference=preference is not None,
        gang=fields.text("customSchedulingType") == "Gang",
        source=fields.source(),
    )


def _division(fields: Fields, *, dynamic: bool) -> Division:
    if fields.text("replicaSchedulingType", "Divided") == "Duplicated":
        return Division.DUPLICATED
    if fields.text("replicaDivisionPreference", "Weighted") == "Aggregated":
        return Division.AGGREGATED
    return Division.DYNAMIC if dynamic else Division.STATIC


def _static_weights(preference: Fields) -> tuple[StaticWeight, ...]:
    weights = []
    for fields in preference.children("staticWeightList"):
        target = read_target(fields)
        weight = fields.integer("weight")
        if weight is None:
            continue  # reported as a missing field or a wrong type
        if weight < 1:
            message = f"a weight is 1 or more, not {weight}; to leave a cluster out, exclude it in clusterAffinity"
            fields.report.error("weight-not-positive", message, *fields.path("weight"))
        every = ClusterAffinity(source=fields.source())
        weights.append(StaticWeight(target=target or every, weight=weight, source=fields.source()))
    return tuple(weights)
