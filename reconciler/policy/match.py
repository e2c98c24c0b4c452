"""Matching: templates by resource selectors, clusters by affinities.

Selectors are indexed so that a template meets only those that may select it: one that requires labels by the rarest of
them, one that only excludes by its exclusions.
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


class _SelectorEntry(NamedTuple, Generic[Selecting]):
    """A selector by labels. `number`: of its exclusions; `rest`: its other requirements, None: none."""

    number: int
    match: Match[Selecting]
    rest: LabelSelector | None


_Key = tuple[str, str | None]
"""A label and one of its values; None: any value."""


class Bucket(Generic[Selecting]):
    """Selectors by name, by labels and by kind."""

    __slots__ = ("_by_kind", "_by_label", "_by_name", "_excluding", "_others", "_selectors")

    def __init__(self) -> None:
        self._by_name: dict[str, list[Match[Selecting]]] = {}
        self._by_kind: list[Match[Selecting]] = []
        self._selectors: list[tuple[Match[Selecting], LabelSelector]] = []
        self._by_label: dict[_Key, list[_SelectorEntry[Selecting]]] | None = None
        """Made from the selectors when the first template comes."""
        self._excluding: dict[_Key, list[int]] = {}
        self._others: list[_SelectorEntry[Selecting]] = []

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
        by_label = self._by_label if self._by_label is not None else self._sorted_in()
        gone: set[int] = set()
        for key in _keys_held(self._excluding, labels) if self._excluding else ():
            gone.update(self._excluding[key])
        for key in _keys_held(by_label, labels):
            matches += [
                entry.match
                for entry in by_label[key]
                if entry.number not in gone and (entry.rest is None or entry.rest.matches(labels))
            ]
        if self._others:
            matches += [entry.match for entry in self._others if entry.number not in gone]

    def _sorted_in(self) -> dict[_Key, list[_SelectorEntry[Selecting]]]:
        usage = Counter(key for _, labels in self._selectors for one in _required_labels(labels) for key in _keys(one))
        by_label: dict[_Key, list[_SelectorEntry[Selecting]]] = {}
        self._excluding, self._others = {}, []
        for number, (match, labels) in enumerate(self._selectors):
            for excludes in labels.requirements:
                if excludes.operator in (Operator.NOT_IN, Operator.DOES_NOT_EXIST):
                    for key in _keys(excludes):
                        self._excluding.setdefault(key, []).append(number)
            required = list(_required_labels(labels))
            if not required:
                self._others.append(_SelectorEntry(number, match, None))
                continue
            rarest = min(required, key=lambda one: max((usage[key] for key in _keys(one)), default=0))
            others = tuple(one for one in required if one is not rarest)
            entry = _SelectorEntry(number, match, LabelSelector(requirements=others) if others else None)
            for key in _keys(rarest):
                by_label.setdefault(key, []).append(entry)
        self._by_label = by_label
        return by_label


def _required_labels(labels: LabelSelector) -> Iterator[LabelRequirement]:
    return (one for one in labels.requirements if one.operator in (Operator.IN, Operator.EXISTS))


def _keys(requirement: LabelRequirement) -> list[_Key]:
    """The labels that a requirement speaks of, each value by itself."""
    if requirement.operator in (Operator.EXISTS, Operator.DOES_NOT_EXIST):
        return [(requirement.key, None)]
    return [(requirement.key, value) for value in sorted(requirement.values)]


def _keys_held(known: Mapping[_Key, object], labels: Mapping[str, str]) -> list[_Key]:
    """The known keys that a template with these labels has, by whichever of both is shorter."""
    if len(known) <= len(labels):
        return [key for key in known if (key[0] in labels if key[1] is None else labels.get(key[0]) == key[1])]
    return [key for pair in labels.items() for key in (pair, (pair[0], None)) if key in known]
