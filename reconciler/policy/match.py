"""Matching: templates by resource selectors, clusters by affinities.

Selectors are indexed so that a template meets only those that may select it: one that requires labels by the rarest of
them. Those that only exclude are tried.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import IntEnum
from typing import Generic, NamedTuple, TypeVar

from reconciler.api.clusters import Cluster
from reconciler.api.fleet import FrozenReach
from reconciler.api.policies import (
    ClusterAffinity,
    LabelRequirement,
    LabelSelector,
    Operator,
    OverridePolicy,
    PropagationPolicy,
    ResourceSelector,
)


class Score(IntEnum):
    """The precision of a selector; the larger one wins. Karmada: the implicit priority of a policy."""

    NONE = 0
    KIND = 1
    LABEL = 2
    NAME = 3

    @property
    def words(self) -> str:
        """Return it in a reason's words: `by name`."""
        return ("not at all", "by kind", "by label", "by name")[self]


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
            key, value, values = requirement.key, cluster.labels.get(requirement.key), _set(requirement.values)
            if value is None:
                wanted = "" if requirement.operator is Operator.EXISTS else f", not in {values}"
                return False, f"label {key} is missing{wanted}"
            ends = {Operator.IN: f"{value}, not in {values}", Operator.NOT_IN: f"{value}, one of {values}"}
            return False, f"label {key} is {ends.get(requirement.operator, 'there')}"
    for field in affinity.fields:
        misses = _field_misses(field, cluster)
        if misses:
            return False, misses
    criteria = (
        ("named in clusterNames", affinity.cluster_names),
        ("labels match", affinity.labels and affinity.labels.requirements),
        ("fields match", affinity.fields),
    )
    return True, ", ".join(text for text, is_set in criteria if is_set) or "every cluster matches"


def matching_clusters(affinity: ClusterAffinity, clusters: Iterable[Cluster]) -> tuple[str, ...]:
    """Names of the clusters that an affinity matches, in the order given."""
    return tuple(cluster.name for cluster in clusters if matches_cluster(affinity, cluster)[0])


def _field_misses(requirement: LabelRequirement, cluster: Cluster) -> str:
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
    actual = value or "not known"
    return f"{requirement.key} is {actual}, {'not in' if wants else 'one of'} {_set(requirement.values)}"


def _set(values: Iterable[str]) -> str:
    return "{" + ", ".join(sorted(values)) + "}"


Selecting = TypeVar("Selecting", PropagationPolicy, OverridePolicy, FrozenReach)


class Match(NamedTuple, Generic[Selecting]):
    """A policy that selects a template, by its best selector: its index in the policy, None without selectors."""

    policy: Selecting
    score: Score
    selector: int | None


_Key = tuple[str, str | None]
"""A label and one of its values; None: any value."""


class Bucket(Generic[Selecting]):
    """Selectors by name, by labels and by kind."""

    __slots__ = ("_by_kind", "_by_label", "_by_name", "_selectors")

    def __init__(self) -> None:
        self._by_name: dict[str, list[Match[Selecting]]] = {}
        self._by_kind: list[Match[Selecting]] = []
        self._selectors: list[tuple[Match[Selecting], LabelSelector]] = []
        self._by_label: dict[_Key | None, list[tuple[Match[Selecting], LabelSelector]]] | None = None
        """With the rest of each selector, None: it requires no label. Made when the first template comes."""

    def add(self, policy: Selecting, index: int, selector: ResourceSelector) -> None:
        """Sort a selector in."""
        if selector.name:
            self._by_name.setdefault(selector.name, []).append(Match(policy, Score.NAME, index))
        elif selector.labels is None:
            self._by_kind.append(Match(policy, Score.KIND, index))
        else:
            self._selectors.append((Match(policy, Score.LABEL, index), selector.labels))
            self._by_label = None

    @property
    def names(self) -> Collection[str]:
        """The names that selectors here ask for."""
        return self._by_name.keys()

    @property
    def label_keys(self) -> frozenset[str]:
        """Return the keys of the labels that selectors here depend on."""
        return frozenset(requirement.key for _, labels in self._selectors for requirement in labels.requirements)

    def collect(self, name: str, labels: Mapping[str, str], matches: list[Match[Selecting]]) -> None:
        """Add every match of a template of this bucket."""
        if self._by_kind:
            matches.extend(self._by_kind)
        if name in self._by_name:
            matches.extend(self._by_name[name])
        if not self._selectors:
            return
        if self._by_label is None:
            self._by_label = self._sorted_in()
        keys: list[_Key | None] = [None, *labels.items(), *((key, None) for key in labels)]
        for key in filter(self._by_label.__contains__, keys):
            matches += [match for match, rest in self._by_label[key] if rest.matches(labels)]

    def _sorted_in(self) -> dict[_Key | None, list[tuple[Match[Selecting], LabelSelector]]]:
        usage = Counter(key for _, labels in self._selectors for one in _required_labels(labels) for key in _keys(one))
        by_label: dict[_Key | None, list[tuple[Match[Selecting], LabelSelector]]] = {}
        for match, labels in self._selectors:
            required = _required_labels(labels)
            rarest = min(required, key=lambda one: max((usage[key] for key in _keys(one)), default=0), default=None)
            rest = LabelSelector(requirements=tuple([one for one in labels.requirements if one is not rarest]))
            for key in [None] if rarest is None else _keys(rarest):
                by_label.setdefault(key, []).append((match, rest))
        return by_label


def _required_labels(labels: LabelSelector) -> Iterator[LabelRequirement]:
    return (one for one in labels.requirements if one.operator in (Operator.IN, Operator.EXISTS))


def _keys(requirement: LabelRequirement) -> list[_Key]:
    """The labels that a requirement asks for, each value by itself."""
    values = (None,) if requirement.operator is Operator.EXISTS else sorted(requirement.values)
    return [(requirement.key, value) for value in values]
