"""Cluster affinities, groups of them, and the clusters that weights and override rules are for."""

from __future__ import annotations

from reconciler.model.policy import AffinityTerm, ClusterAffinity, FieldRequirement, Operator
from reconciler.stages.documents import Fields, is_label_key
from reconciler.stages.policies.selectors import read_label_selector

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


def _field_requirements(selector: Fields) -> tuple[FieldRequirement, ...]:
    """Karmada: keys are provider, region and zone, operators In and NotIn."""
    requirements = []
    for fields in selector.children("matchExpressions"):
        key, operator, values = fields.text("key"), fields.text("operator"), fields.texts("values")
        if not fields.has("key") or not fields.has("operator"):
            continue  # reported as a missing field
        known = True
        if key not in _FIELD_KEYS:
            message = f"{key!r} is no field of a cluster; write one of: {', '.join(_FIELD_KEYS)}"
            fields.report.error("field-selector-key", message, *fields.path("key"))
            known = False
        if operator not in (Operator.IN, Operator.NOT_IN):
            message = f"{operator!r} does not work on fields of a cluster; write In or NotIn"
            fields.report.error("field-selector-operator", message, *fields.path("operator"))
            known = False
        if known and not values:
            fields.report.error("field-selector-values", f"{operator} needs at least one value", *fields.path("values"))
        if known:
            requirements.append(FieldRequirement(key=key, operator=Operator(operator), values=frozenset(values)))
    return tuple(requirements)


def read_terms(placement: Fields) -> tuple[AffinityTerm, ...]:
    """Return the groups of `clusterAffinities` in order.

    Source: "Elastic scheduling with multi-cluster priorities". Karmada: names are legal label keys of at most 32
    characters and unique; a group with overflow tiers has fields itself, and its tiers' names differ.
    """
    terms: list[AffinityTerm] = []
    for fields in placement.children("clusterAffinities"):
        name = _affinity_name(fields, {term.name for term in terms}, "affinity-name-repeated")
        affinity = read_affinity(fields)
        overflow: list[AffinityTerm] = []
        for tier in fields.children("overflowAffinities"):
            taken = {name} | {term.name for term in overflow}
            tier_name = _affinity_name(tier, taken, "overflow-name-repeated")
            overflow.append(AffinityTerm(name=tier_name, affinity=read_affinity(tier)))
        if overflow and is_empty(affinity):
            message = "a group with overflowAffinities must itself say which clusters come first"
            fields.report.error("overflow-needs-primary", message, *fields.path("overflowAffinities"))
        terms.append(AffinityTerm(name=name, affinity=affinity, overflow=tuple(overflow)))
    return tuple(terms)


def _affinity_name(fields: Fields, taken: set[str], code_when_taken: str) -> str:
    name = fields.text("affinityName")
    if fields.has("affinityName") and (len(name) > _AFFINITY_NAME_MAX or not is_label_key(name)):
        message = f"{name!r} cannot name a group: a label key of 1 to {_AFFINITY_NAME_MAX} characters"
        fields.report.error("affinity-name-illegal", message, *fields.path("affinityName"))
    elif name and name in taken:
        message = f"the name {name} is taken by an earlier group; choose another"
        fields.report.error(code_when_taken, message, *fields.path("affinityName"))
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
        fields.report.error("target-given-twice", message, *fields.path("clusterNames"))
    affinity, nested = read_affinity(target), target.child("clusterAffinity")
    if nested is None:
        return affinity
    if not is_empty(affinity):
        message = "clusters are given both in targetCluster and in its clusterAffinity; keep one of them"
        fields.report.error("target-given-twice", message, *target.path("clusterAffinity"))
    return read_affinity(nested)
