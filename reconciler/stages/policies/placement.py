"""`placement`: target clusters, tolerations, spread constraints and replica scheduling."""

from __future__ import annotations

from reconciler.model.policy import Placement, ReplicaScheduling, SpreadConstraint, Toleration
from reconciler.stages.documents import Fields, is_label_key
from reconciler.stages.policies.affinity import read_affinity, read_terms
from reconciler.stages.policies.scheduling import read_scheduling


def read_placement(fields: Fields) -> Placement:
    """Return the placement of a policy. Source: "clusterAffinity parameters"; Karmada: the checks of its webhook."""
    affinity, scheduling, terms = fields.child("clusterAffinity"), read_scheduling(fields), read_terms(fields)
    if affinity is not None and fields.has("clusterAffinities"):
        message = "clusterAffinity and clusterAffinities exclude each other; keep one of them"
        fields.report.error("affinity-and-affinities", message, *fields.path("clusterAffinities"))
    _check_overflow(fields, scheduling)
    return Placement(
        affinity=read_affinity(affinity) if affinity else None,
        terms=terms,
        tolerations=_tolerations(fields),
        spread=_spread(fields),
        scheduling=scheduling,
        source=fields.source(),
    )


def _check_overflow(fields: Fields, scheduling: ReplicaScheduling) -> None:
    """Karmada: tiers are filled by free capacity, so the division must be one that looks at it."""
    if scheduling.division.needs_capacity:
        return
    for term in fields.children("clusterAffinities"):
        if term.has("overflowAffinities"):
            message = (
                "overflowAffinities need a division by free capacity; write weightPreference.dynamicWeight: "
                "AvailableReplicas or replicaDivisionPreference: Aggregated, or take them out"
            )
            fields.report.error("overflow-needs-capacity-division", message, *term.path("overflowAffinities"))


def _tolerations(placement: Fields) -> tuple[Toleration, ...]:
    tolerations = []
    for fields in placement.children("clusterTolerations"):
        key, operator, value = fields.text("key"), fields.text("operator", "Equal"), fields.text("value")
        if not key and operator != "Exists":
            message = "a toleration without a key needs operator Exists, which tolerates every taint"
            fields.report.error("toleration-invalid", message, *fields.steps)
        if value and operator == "Exists":
            message = "operator Exists takes no value; take it out, or write operator Equal"
            fields.report.error("toleration-invalid", message, *fields.path("value"))
        seconds = fields.integer("tolerationSeconds")
        if seconds is not None and fields.text("effect") != "NoExecute":
            message = "tolerationSeconds is for effect NoExecute only; write that effect, or take the seconds out"
            fields.report.error("toleration-invalid", message, *fields.path("tolerationSeconds"))
        tolerations.append(
            Toleration(key=key, operator=operator, value=value, effect=fields.text("effect"), toleration_s=seconds)
        )
    return tuple(tolerations)


def _spread(placement: Fields) -> tuple[SpreadConstraint, ...]:
    """Spread constraints with Karmada's defaults: the field is cluster when nothing is named, and minGroups is 1."""
    constraints: list[SpreadConstraint] = []
    for fields in placement.children("spreadConstraints"):
        constraint = _constraint(fields)
        seen = {other.by_field for other in constraints if other.by_field}
        if constraint.by_field in seen:
            message = f"there is already a constraint on {constraint.by_field}; merge the two"
            fields.report.error("spread-field-repeated", message, *fields.path("spreadByField"))
        constraints.append(constraint)
    by_field = {constraint.by_field for constraint in constraints if constraint.by_field}
    if by_field and "cluster" not in by_field:
        named = ", ".join(sorted(by_field))
        message = f"next to a constraint on {named} one on cluster is required; add spreadByField: cluster"
        placement.report.error("spread-cluster-missing", message, *placement.path("spreadConstraints"))
    return tuple(constraints)


def _constraint(fields: Fields) -> SpreadConstraint:
    by_field, by_label = fields.text("spreadByField"), fields.text("spreadByLabel")
    if by_field and by_label:
        message = "one constraint counts by field or by label, not both; write two constraints"
        fields.report.error("spread-field-and-label", message, *fields.path("spreadByLabel"))
    if by_label and not is_label_key(by_label):
        fields.report.error("label-key-illegal", f"{by_label!r} cannot be a label key", *fields.path("spreadByLabel"))
    minimum, maximum = fields.integer("minGroups") or 0, fields.integer("maxGroups") or 0
    for name, groups in (("minGroups", minimum), ("maxGroups", maximum)):
        if groups < 0:
            fields.report.error("spread-groups-negative", f"{name} is 0 or more, not {groups}", *fields.path(name))
    if maximum > 0 and minimum > maximum:
        message = f"maxGroups {maximum} is less than minGroups {minimum}; raise it, or lower minGroups"
        fields.report.error("spread-max-below-min", message, *fields.path("maxGroups"))
    return SpreadConstraint(
        by_field=by_field or ("" if by_label else "cluster"),
        by_label=by_label,
        min_groups=minimum or 1,
        max_groups=maximum,
        source=fields.source(),
    )
