"""`placement`: target clusters, tolerations, spread constraints and replica scheduling, with every default resolved.

Label selectors of clusters and of resources.
"""

from __future__ import annotations

from reconciler.api.policies import (
    AffinityTerm,
    ClusterAffinity,
    Division,
    LabelRequirement,
    LabelSelector,
    Operator,
    Placement,
    ReplicaScheduling,
    SpreadConstraint,
    StaticWeight,
    Toleration,
)
from reconciler.documents import Fields, is_label_key, is_label_value

_FIELD_KEYS = ("provider", "region", "zone")
_AFFINITY_NAME_MAX = 32


def read_affinity(fields: Fields) -> ClusterAffinity:
    """The affinity of a mapping that has its fields. Source: "clusterAffinity parameters"."""
    labels, selector = fields.child("labelSelector"), fields.child("fieldSelector")
    return ClusterAffinity(
        cluster_names=fields.texts("clusterNames"),
        exclude=fields.texts("exclude"),
        labels=read_label_selector(labels) if labels else None,
        fields=_field_requirements(selector) if selector else (),
        source=fields.source(),
    )


def is_empty(affinity: ClusterAffinity) -> bool:
    """Return whether an affinity is empty, and so matches every cluster."""
    return not (affinity.cluster_names or affinity.exclude or affinity.labels or affinity.fields)


def _field_requirements(selector: Fields) -> tuple[LabelRequirement, ...]:
    """Karmada: keys are provider, region and zone, operators In and NotIn."""
    requirements = []
    for fields in selector.children("matchExpressions"):
        key, operator, values = fields.text("key"), fields.text("operator"), fields.texts("values")
        if not fields.has("key") or not fields.has("operator"):
            continue  # reported as a missing field
        is_key, is_operator = key in _FIELD_KEYS, operator in (Operator.IN, Operator.NOT_IN)
        if not is_key:
            message = f"{key!r} is no field of a cluster; write one of: {', '.join(_FIELD_KEYS)}"
            fields.error("field-selector-key", message, "key")
        if not is_operator:
            message = f"{operator!r} does not work on fields of a cluster; write In or NotIn"
            fields.error("field-selector-operator", message, "operator")
        if is_key and is_operator:
            if not values:
                fields.error("field-selector-values", f"{operator} needs at least one value", "values")
            requirements.append(LabelRequirement(key=key, operator=Operator(operator), values=frozenset(values)))
    return tuple(requirements)


def read_terms(placement: Fields) -> tuple[AffinityTerm, ...]:
    """Return the groups of `clusterAffinities` in order.

    Source: "Elastic scheduling with multi-cluster priorities". Karmada: names are legal label keys of at most 32
    characters and unique; a group with overflow tiers has fields itself, and its tiers' names differ.
    """
    terms: list[AffinityTerm] = []
    names: set[str] = set()
    for fields in placement.children("clusterAffinities"):
        name = _affinity_name(fields, names, "affinity-name-repeated")
        names.add(name)
        affinity = read_affinity(fields)
        overflow: list[AffinityTerm] = []
        used = {name}
        for tier in fields.children("overflowAffinities"):
            tier_name = _affinity_name(tier, used, "overflow-name-repeated")
            used.add(tier_name)
            overflow.append(AffinityTerm(name=tier_name, affinity=read_affinity(tier)))
        if overflow and is_empty(affinity):
            message = "a group with overflowAffinities must itself say which clusters come first"
            fields.error("overflow-needs-primary", message, "overflowAffinities")
        terms.append(AffinityTerm(name=name, affinity=affinity, overflow=tuple(overflow)))
    return tuple(terms)


def _affinity_name(fields: Fields, used: set[str], code_when_used: str) -> str:
    name = fields.text("affinityName")
    if fields.has("affinityName") and (len(name) > _AFFINITY_NAME_MAX or not is_label_key(name)):
        message = f"{name!r} cannot name a group: a label key of 1 to {_AFFINITY_NAME_MAX} characters"
        fields.error("affinity-name-illegal", message, "affinityName")
    elif name and name in used:
        fields.error(code_when_used, f"the name {name} is taken by an earlier group; choose another", "affinityName")
    return name


def read_target(fields: Fields) -> ClusterAffinity | None:
    """Return the affinity of `targetCluster`, None without one: every cluster.

    The older page also shows the fields one level deeper, under `clusterAffinity`, and for weights the names beside an
    empty targetCluster; each is accepted if it is the only one given.
    """
    target = fields.child("targetCluster")
    beside = "clusterNames" in fields.shape.by_spelling and fields.has("clusterNames")
    if target is None:
        return ClusterAffinity(cluster_names=fields.texts("clusterNames"), source=fields.source()) if beside else None
    if beside:
        message = "clusters are given both in and beside targetCluster; move them into targetCluster"
        fields.error("target-given-twice", message, "clusterNames")
    affinity, nested = read_affinity(target), target.child("clusterAffinity")
    if nested is None:
        return affinity
    if not is_empty(affinity):
        message = "clusters are given both in targetCluster and in its clusterAffinity; keep one of them"
        target.error("target-given-twice", message, "clusterAffinity")
    return read_affinity(nested)


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
    division = Division.STATIC
    if fields.text("replicaSchedulingType", "Divided") == "Duplicated":
        division = Division.DUPLICATED
    elif fields.text("replicaDivisionPreference", "Weighted") == "Aggregated":
        division = Division.AGGREGATED
    elif preference is not None and preference.text("dynamicWeight"):
        division = Division.DYNAMIC
    return ReplicaScheduling(
        division=division,
        static_weights=weights,
        has_weight_preference=preference is not None,
        gang=fields.text("customSchedulingType") == "Gang",
        source=fields.source(),
    )


def _static_weights(preference: Fields) -> tuple[StaticWeight, ...]:
    weights = []
    for fields in preference.children("staticWeightList"):
        target = read_target(fields)
        weight = fields.integer("weight")
        if weight is None:
            continue  # reported as a missing field or a wrong type
        if weight < 1:
            message = f"a weight is 1 or more, not {weight}; to leave a cluster out, exclude it in clusterAffinity"
            fields.error("weight-not-positive", message, "weight")
        every = ClusterAffinity(source=fields.source())
        weights.append(StaticWeight(target=target or every, weight=weight, source=fields.source()))
    return tuple(weights)


def read_placement(fields: Fields) -> Placement:
    """Return the placement of a policy. Source: "clusterAffinity parameters"; Karmada: the checks of its webhook."""
    affinity, scheduling, terms = fields.child("clusterAffinity"), read_scheduling(fields), read_terms(fields)
    if affinity is not None and fields.has("clusterAffinities"):
        message = "clusterAffinity and clusterAffinities exclude each other; keep one of them"
        fields.error("affinity-and-affinities", message, "clusterAffinities")
    # Karmada: tiers are filled by free capacity, so the division must be one that looks at it.
    for term in () if scheduling.division.needs_capacity else fields.children("clusterAffinities"):
        if term.has("overflowAffinities"):
            message = (
                "overflowAffinities need a division by free capacity; write weightPreference.dynamicWeight: "
                "AvailableReplicas or replicaDivisionPreference: Aggregated, or take them out"
            )
            term.error("overflow-needs-capacity-division", message, "overflowAffinities")
    return Placement(
        affinity=read_affinity(affinity) if affinity else None,
        terms=terms,
        tolerations=_tolerations(fields),
        spread=_spread(fields),
        scheduling=scheduling,
        source=fields.source(),
    )


def _tolerations(placement: Fields) -> tuple[Toleration, ...]:
    tolerations = []
    for fields in placement.children("clusterTolerations"):
        key, operator, value = fields.text("key"), fields.text("operator", "Equal"), fields.text("value")
        if not key and operator != "Exists":
            message = "a toleration without a key needs operator Exists, which tolerates every taint"
            fields.error("toleration-invalid", message)
        if value and operator == "Exists":
            message = "operator Exists takes no value; take it out, or write operator Equal"
            fields.error("toleration-invalid", message, "value")
        seconds = fields.integer("tolerationSeconds")
        if seconds is not None and fields.text("effect") != "NoExecute":
            message = "tolerationSeconds is for effect NoExecute only; write that effect, or take the seconds out"
            fields.error("toleration-invalid", message, "tolerationSeconds")
        tolerations.append(
            Toleration(key=key, operator=operator, value=value, effect=fields.text("effect"), toleration_s=seconds)
        )
    return tuple(tolerations)


def _spread(placement: Fields) -> tuple[SpreadConstraint, ...]:
    """Spread constraints with Karmada's defaults: the field is cluster when nothing is named, and minGroups is 1."""
    constraints: list[SpreadConstraint] = []
    for fields in placement.children("spreadConstraints"):
        by_field, by_label = fields.text("spreadByField"), fields.text("spreadByLabel")
        if by_field and by_label:
            message = "one constraint counts by field or by label, not both; write two constraints"
            fields.error("spread-field-and-label", message, "spreadByLabel")
        if by_label and not is_label_key(by_label):
            fields.error("label-key-illegal", f"{by_label!r} cannot be a label key", "spreadByLabel")
        minimum, maximum = fields.integer("minGroups") or 0, fields.integer("maxGroups") or 0
        for name, groups in (("minGroups", minimum), ("maxGroups", maximum)):
            if groups < 0:
                fields.error("spread-groups-negative", f"{name} is 0 or more, not {groups}", name)
        if maximum > 0 and minimum > maximum:
            message = f"maxGroups {maximum} is less than minGroups {minimum}; raise it, or lower minGroups"
            fields.error("spread-max-below-min", message, "maxGroups")
        constraint = SpreadConstraint(
            by_field=by_field or ("" if by_label else "cluster"),
            by_label=by_label,
            min_groups=minimum or 1,
            max_groups=maximum,
            source=fields.source(),
        )
        if constraint.by_field in {other.by_field for other in constraints if other.by_field}:
            message = f"there is already a constraint on {constraint.by_field}; merge the two"
            fields.error("spread-field-repeated", message, "spreadByField")
        constraints.append(constraint)
    fields_named = {constraint.by_field for constraint in constraints if constraint.by_field}
    if fields_named and "cluster" not in fields_named:
        named = ", ".join(sorted(fields_named))
        message = f"next to a constraint on {named} one on cluster is required; add spreadByField: cluster"
        placement.error("spread-cluster-missing", message, "spreadConstraints")
    return tuple(constraints)


def read_label_selector(fields: Fields) -> LabelSelector:
    """A label selector; matchLabels entries become In with one value. Illegal keys and values are errors."""
    requirements = []
    for key, value in fields.text_map("matchLabels").items():
        _check_label(fields, key, (value,), *fields.path("matchLabels", key))
        requirements.append(LabelRequirement(key=key, operator=Operator.IN, values=frozenset({value})))
    requirements += filter(None, map(_requirement, fields.children("matchExpressions")))
    return LabelSelector(requirements=tuple(requirements))


def _requirement(fields: Fields) -> LabelRequirement | None:
    key, operator, values = fields.text("key"), fields.text("operator"), fields.texts("values")
    if not operator or not fields.has("key"):
        return None  # reported as a missing field or an unknown value
    _check_label(fields, key, values, *fields.path("key"))
    takes_values = operator in (Operator.IN, Operator.NOT_IN)
    if takes_values and not values:
        fields.error("label-selector-invalid", f"{operator} needs at least one value", "values")
    if not takes_values and values:
        fields.error("label-selector-invalid", f"{operator} takes no values; take them out, or write In", "values")
    return LabelRequirement(key=key, operator=Operator(operator), values=frozenset(values))


def _check_label(fields: Fields, key: str, values: tuple[str, ...], *steps: str | int) -> None:
    if not is_label_key(key):
        fields.report.error("label-selector-invalid", f"{key!r} cannot be a label key", *steps)
    for value in values:
        if not is_label_value(value):
            fields.report.error("label-selector-invalid", f"{value!r} cannot be the value of a label", *steps)
