"""Finds the policies that select a template without trying every policy, and the templates of one policy.

Selectors are sorted into buckets by group, version, kind and namespace, inside them by name or by one label that a
template must have. A template then meets only selectors that share its bucket and its name or that label.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Generic, NamedTuple, TypeVar

from reconciler.model.fleet import Template
from reconciler.model.override import OverridePolicy
from reconciler.model.policy import PropagationPolicy, ResourceSelector
from reconciler.model.refs import GVK, Identity
from reconciler.model.selector import LabelRequirement, LabelSelector, Operator
from reconciler.stages.claims.match import Score, selects
from reconciler.stages.documents import is_never_distributed

AnyPolicy = TypeVar("AnyPolicy", PropagationPolicy, OverridePolicy)


class Match(NamedTuple, Generic[AnyPolicy]):
    """A policy that selects a template, by its best selector: its index in the policy, None without selectors."""

    policy: AnyPolicy
    score: Score
    selector: int | None


@dataclass(slots=True)
class _Bucket(Generic[AnyPolicy]):
    """Selectors of one kind in one namespace (or in any), by how they select."""

    by_name: dict[str, list[Match[AnyPolicy]]] = field(default_factory=dict)
    by_label: dict[str, dict[str, list[tuple[Match[AnyPolicy], LabelSelector]]]] = field(default_factory=dict)
    by_label_key: dict[str, list[tuple[Match[AnyPolicy], LabelSelector]]] = field(default_factory=dict)
    by_other_labels: list[tuple[Match[AnyPolicy], LabelSelector]] = field(default_factory=list)
    by_kind: list[Match[AnyPolicy]] = field(default_factory=list)

    def add(self, policy: AnyPolicy, index: int, selector: ResourceSelector) -> None:
        """Sort a selector in."""
        if selector.name:
            self.by_name.setdefault(selector.name, []).append(Match(policy, Score.NAME, index))
        elif selector.labels is None:
            self.by_kind.append(Match(policy, Score.KIND, index))
        else:
            entry = (Match(policy, Score.LABEL, index), selector.labels)
            required = _required_label(selector.labels)
            if required is None:
                self.by_other_labels.append(entry)
                return
            for value in required.values:
                self.by_label.setdefault(required.key, {}).setdefault(value, []).append(entry)
            if required.operator is Operator.EXISTS:
                self.by_label_key.setdefault(required.key, []).append(entry)

    @property
    def looks_at_labels(self) -> bool:
        """Whether any selector here depends on labels."""
        return bool(self.by_label or self.by_label_key or self.by_other_labels)

    def collect(self, name: str, labels: Mapping[str, str], found: list[Match[AnyPolicy]]) -> None:
        """Add every match of a template of this bucket."""
        if self.by_kind:
            found.extend(self.by_kind)
        if name in self.by_name:
            found.extend(self.by_name[name])
        for key, value in labels.items() if self.by_label or self.by_label_key else ():
            of_key = self.by_label.get(key)
            for entries in (of_key.get(value) if of_key else None, self.by_label_key.get(key)):
                if entries:
                    found += [m for m, sel in entries if len(sel.requirements) == 1 or sel.matches(labels)]
        if self.by_other_labels:
            found += [match for match, selector in self.by_other_labels if selector.matches(labels)]


class _Place(NamedTuple, Generic[AnyPolicy]):
    """What may select templates of one kind in one namespace; `everywhere` are policies without selectors."""

    buckets: tuple[_Bucket[AnyPolicy], ...] = ()
    everywhere: tuple[Match[AnyPolicy], ...] = ()
    looks_at_labels: bool = False


def _required_label(labels: LabelSelector) -> LabelRequirement | None:
    """A label that every selected template has, with the fewest values if there are several; None: there is no such."""
    asked = [found for found in labels.requirements if found.operator in (Operator.IN, Operator.EXISTS)]
    return min(asked, key=lambda found: (found.operator is Operator.EXISTS, len(found.values)), default=None)


class PolicyIndex(Generic[AnyPolicy]):
    """Policies by what they select. Building it takes one pass over them; a look-up takes about a microsecond."""

    __slots__ = ("_buckets", "_places", "_unselective")

    def __init__(self, policies: Iterable[AnyPolicy]) -> None:
        self._buckets: dict[tuple[str, str, str], _Bucket[AnyPolicy]] = {}
        self._unselective: dict[str, list[Match[AnyPolicy]]] = {}
        self._places: dict[tuple[GVK, str], _Place[AnyPolicy]] = {}
        for policy in policies:
            own = policy.ref.namespace
            if not policy.selectors and isinstance(policy, OverridePolicy):
                self._unselective.setdefault(own, []).append(Match(policy, Score.KIND, None))
            for index, selector in enumerate(policy.selectors):
                if own and selector.namespace not in ("", own):
                    continue  # a namespaced policy reaches its own namespace only
                key = (selector.api_version, selector.kind, own or selector.namespace)
                self._buckets.setdefault(key, _Bucket()).add(policy, index, selector)

    @property
    def is_empty(self) -> bool:
        """Whether no policy selects anything."""
        return not self._buckets and not self._unselective

    def matches(self, template: Template) -> Sequence[Match[AnyPolicy]]:
        """Every selector that selects a template, in no particular order: a policy occurs once for each."""
        identity = template.identity
        # Namespaces differ among themselves, since some are system ones; a slash is in no namespace's name.
        namespace = f"/{identity.name}" if identity.kind == "Namespace" else identity.namespace
        place = self._places.get((template.gvk, namespace))
        if place is None:
            place = self._places[template.gvk, namespace] = self._find_place(template.gvk, identity)
        if not place.buckets:
            return place.everywhere
        found = list(place.everywhere)
        labels = template.labels if place.looks_at_labels else {}
        for bucket in place.buckets:
            bucket.collect(identity.name, labels, found)
        return found

    def _find_place(self, gvk: GVK, identity: Identity) -> _Place[AnyPolicy]:
        """Karmada: a cluster-scoped template only meets selectors without a namespace, those of cluster policies."""
        if is_never_distributed(gvk, identity):
            return _Place()
        namespaces = (identity.namespace, "") if identity.namespace else ("",)
        keys = ((gvk.api_version, gvk.kind, namespace) for namespace in namespaces)
        buckets = tuple(self._buckets[key] for key in keys if key in self._buckets)
        everywhere = tuple(match for namespace in namespaces for match in self._unselective.get(namespace, ()))
        return _Place(buckets, everywhere, any(bucket.looks_at_labels for bucket in buckets))


def best_matches(matches: Iterable[Match[AnyPolicy]]) -> list[Match[AnyPolicy]]:
    """One match a policy, the most precise and among those the first selector, in no particular order."""
    best: dict[int, Match[AnyPolicy]] = {}
    for match in matches:
        known = best.get(id(match.policy))
        if known is None or (match.score, -(match.selector or 0)) > (known.score, -(known.selector or 0)):
            best[id(match.policy)] = match
    return list(best.values())


_Templates = dict[Identity, Template]


class TemplateIndex:
    """Templates by kind and namespace: the other direction, for one policy that changed.

    Those of a label are sorted by its values when the first policy asks for it, and by their names likewise.
    """

    __slots__ = ("_by_kind", "_by_label", "_by_name", "_by_place")

    def __init__(self, templates: Mapping[Identity, Template]) -> None:
        self._by_place: dict[tuple[str, str, str], _Templates] = {}
        self._by_kind: dict[tuple[str, str], _Templates] = {}
        self._by_label: dict[tuple[str, str], dict[str, dict[str, _Templates]]] = {}
        self._by_name: dict[tuple[str, str], dict[str, _Templates]] = {}
        self.add(templates.values())

    def add(self, templates: Iterable[Template]) -> None:
        """Take templates in. A new version of one that is in comes after the old one was removed."""
        for template in templates:
            identity = template.identity
            if is_never_distributed(template.gvk, identity):
                continue
            kind = (template.gvk.api_version, template.gvk.kind)
            self._by_place.setdefault((*kind, identity.namespace), {})[identity] = template
            self._by_kind.setdefault(kind, {})[identity] = template
            if kind in self._by_name:
                self._by_name[kind].setdefault(identity.name, {})[identity] = template
            for key, by_value in self._by_label.get(kind, {}).items():
                _add_by_value(by_value, key, template)

    def remove(self, templates: Iterable[Template]) -> None:
        """Leave templates out from now on."""
        for template in templates:
            identity = template.identity
            kind = (template.gvk.api_version, template.gvk.kind)
            self._by_place.get((*kind, identity.namespace), {}).pop(identity, None)
            self._by_kind.get(kind, {}).pop(identity, None)
            self._by_name.get(kind, {}).get(identity.name, {}).pop(identity, None)
            for key, by_value in self._by_label.get(kind, {}).items():
                by_value.get(template.labels.get(key, ""), {}).pop(identity, None)

    def selected_by(self, policy: PropagationPolicy | OverridePolicy) -> frozenset[Identity]:
        """Every template that a policy selects."""
        if not policy.selectors and isinstance(policy, OverridePolicy):
            return frozenset(template.identity for template in self._reached_by(policy.ref.namespace))
        return frozenset(
            template.identity
            for selector in policy.selectors
            for template in self._candidates(selector, policy.ref.namespace)
            if selects(selector, template) is not Score.NONE
        )

    def _candidates(self, selector: ResourceSelector, own_namespace: str) -> Iterable[Template]:
        """Templates among which those are that a selector selects, found by its name or one of its labels."""
        namespace, kind = own_namespace or selector.namespace, (selector.api_version, selector.kind)
        place = self._by_place.get((*kind, namespace), {}) if namespace else self._by_kind.get(kind, {})
        fewer = self._fewer(kind, selector, len(place))
        if fewer is None:
            return place.values()
        return (found for found in fewer if not namespace or found.identity.namespace == namespace)

    def _fewer(self, kind: tuple[str, str], selector: ResourceSelector, most: int) -> Iterable[Template] | None:
        """Templates of a kind with the name or the label that a selector asks for; None: that are no fewer."""
        required = None if selector.labels is None or selector.name else _required_label(selector.labels)
        if selector.name:
            sets = [self._named(kind, selector.name)]
        elif required is not None:
            by_value = self._values_of(kind, required.key)
            values = required.values if required.operator is Operator.IN else by_value.keys()
            sets = [by_value[value] for value in values if value in by_value]
        else:
            return None
        return chain.from_iterable(each.values() for each in sets) if sum(map(len, sets)) < most else None

    def _named(self, kind: tuple[str, str], name: str) -> _Templates:
        """The templates of a kind with a name, one for each namespace at most."""
        if kind not in self._by_name:
            self._by_name[kind] = {}
            for template in self._by_kind.get(kind, {}).values():
                self._by_name[kind].setdefault(template.identity.name, {})[template.identity] = template
        return self._by_name[kind].get(name, {})

    def _values_of(self, kind: tuple[str, str], key: str) -> dict[str, _Templates]:
        known = self._by_label.setdefault(kind, {})
        if key not in known:
            known[key] = {}
            for template in self._by_kind.get(kind, {}).values():
                _add_by_value(known[key], key, template)
        return known[key]

    def _reached_by(self, namespace: str) -> Iterable[Template]:
        for key, templates in self._by_place.items():
            if not namespace or key[2] == namespace:
                yield from templates.values()


def _add_by_value(by_value: dict[str, _Templates], key: str, template: Template) -> None:
    value = template.labels.get(key)
    if value is not None:
        by_value.setdefault(value, {})[template.identity] = template
