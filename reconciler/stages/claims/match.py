"""Matching: templates by resource selectors, clusters by affinities."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum

from reconciler.model.cluster import Cluster
from reconciler.model.policy import ClusterAffinity, FieldRequirement, LabelRequirement, Operator


class Score(IntEnum):
    """The precision of a selector; the larger one wins. Karmada: the implicit priority of a policy."""

    NONE = 0
    KIND = 1
    LABEL = 2
    NAME = 3

    @property
    def words(self) -> str:
        """Return it in a reason's words: `by name`."""
        return {0: "not at all", 1: "by kind", 2: "by label", 3: "by name"}[self]


def matches_cluster(affinity: ClusterAffinity, cluster: Cluster) -> tuple[bool, str]:
    """Return whether an affinity matches a cluster, with the reason for `explain`.

    Exclusion counts first; then names, labels and fields must all match; a missing one matches everything. Source:
    "clusterAffinity parameters"; Karmada: how a cluster matches.
    """
    if cluster.name in affinity.exclude:
        return False, "excluded by exclude"
    if affinity.cluster_names and cluster.name not in affinity.cluster_names:
        return False, "not named in clusterNames"
    for requirement in affinity.labels.requirements if affinity.labels else ():
        if not requirement.matches(cluster.labels):
            return False, _label_misses(requirement, cluster.labels)
    for field in affinity.fields:
        misses = _field_misses(field, cluster)
        if misses:
            return False, misses
    given = (
        ("named in clusterNames", affinity.cluster_names),
        ("labels match", affinity.labels and affinity.labels.requirements),
        ("fields match", affinity.fields),
    )
    return True, ", ".join(text for text, is_given in given if is_given) or "every cluster matches"


def matching_clusters(affinity: ClusterAffinity, clusters: Iterable[Cluster]) -> tuple[str, ...]:
    """Names of the clusters that an affinity matches, in the order given."""
    return tuple(cluster.name for cluster in clusters if matches_cluster(affinity, cluster)[0])


def _label_misses(requirement: LabelRequirement, labels: Mapping[str, str]) -> str:
    key, value = requirement.key, labels.get(requirement.key)
    if value is None:
        wanted = "" if requirement.operator is Operator.EXISTS else f", not in {_set(requirement.values)}"
        return f"label {key} is missing{wanted}"
    if requirement.operator is Operator.IN:
        return f"label {key} is {value}, not in {_set(requirement.values)}"
    if requirement.operator is Operator.NOT_IN:
        return f"label {key} is {value}, one of {_set(requirement.values)}"
    return f"label {key} is there"


def _field_misses(requirement: FieldRequirement, cluster: Cluster) -> str:
    """Return why a field requirement fails, empty if met. Zones: In wants a common one, NotIn none (Karmada)."""
    wants = requirement.operator is Operator.IN
    if requirement.key == "zone":
        common = requirement.values & set(cluster.zones)
        if bool(common) is wants:
            return ""
        zones = _set(cluster.zones) if cluster.zones else "not known"
        return f"zones are {zones}, none in {_set(requirement.values)}" if wants else f"zone is one of {_set(common)}"
    value = cluster.provider if requirement.key == "provider" else cluster.region
    # An unknown value is in no set: NotIn holds, In does not, even for an empty text.
    if (bool(value) and value in requirement.values) is wants:
        return ""
    shown = value or "not known"
    return f"{requirement.key} is {shown}, {'not in' if wants else 'one of'} {_set(requirement.values)}"


def _set(values: Iterable[str]) -> str:
    return "{" + ", ".join(sorted(values)) + "}"
