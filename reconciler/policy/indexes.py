"""Finds the policies that select a template without trying every policy.

Selectors are sorted into buckets by group, version, kind and namespace, inside them by name or by labels. A template
then meets only selectors that share its bucket and its name or a label.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Final, Generic, NamedTuple, TypeVar

from reconciler.api.fleet import Template
from reconciler.api.policies import (
    LabelRequirement,
    LabelSelector,
    Operator,
    OverridePolicy,
    PropagationPolicy,
    ResourceSelector,
)
from reconciler.api.refs import GVK, Identity
from reconciler.documents import is_never_distributed
from reconciler.policy.match import Bucket, Match, Score

AnyPolicy = TypeVar("AnyPolicy", PropagationPolicy, OverridePolicy)

_ALIKE_MAX: Final = 64
"""So many kinds of templates are remembered of a place: where all differ, remembering them gains nothing."""


class _Place(NamedTuple, Generic[AnyPolicy]):
    """Policies for templates of one kind in one namespace; `everywhere`: policies without selectors.

    `names` and `label_keys`: the relevant parts of a template. `alike`: the matches of templates that are selected by
    no name, by the values of these labels.
    """

    buckets: tuple[Bucket[AnyPolicy], ...]
    everywhere: tuple[Match[AnyPolicy], ...]
    names: frozenset[str]
    label_keys: tuple[str, ...]
    alike: dict[tuple[str | None, ...], Sequence[Match[AnyPolicy]]]


class PolicyIndex(Generic[AnyPolicy]):
    """Policies by their selectors. Building it takes one pass over them; a look-up takes about a microsecond."""

    def __init__(self, policies: Iterable[AnyPolicy]) -> None:
        self._buckets: dict[tuple[str, str, str], Bucket[AnyPolicy]] = {}
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
                self._buckets.setdefault(key, Bucket()).add(policy, index, selector)

    @property
    def is_empty(self) -> bool:
        """Return whether no policy selects anything."""
        return not self._buckets and not self._unselective

    def matches(self, template: Template) -> Sequence[Match[AnyPolicy]]:
        """Return every selector that selects a template, in no particular order: a policy occurs once for each.

        Templates may share the result; it is never written into.
        """
        identity = template.identity
        # Namespaces differ among themselves, since some are system ones; a slash is in no namespace's name.
        namespace = f"/{identity.name}" if identity.kind == "Namespace" else identity.namespace
        if template.is_admitted:
            namespace = f"//{namespace}"
        place = self._places.get((template.gvk, namespace))
        if place is None:
            gvk, place = template.gvk, _Place((), (), frozenset(), (), {})
            if not is_never_distributed(gvk, identity, is_admitted=template.is_admitted):
                # Karmada: a cluster-scoped template only meets selectors without a namespace, of cluster policies.
                spaces = (identity.namespace, "") if identity.namespace else ("",)
                keys = ((gvk.api_version, gvk.kind, space) for space in spaces)
                buckets = tuple(self._buckets[key] for key in keys if key in self._buckets)
                everywhere = tuple(match for space in spaces for match in self._unselective.get(space, ()))
                names = frozenset(chain.from_iterable(bucket.names for bucket in buckets))
                label_keys = frozenset(chain.from_iterable(bucket.label_keys for bucket in buckets))
                place = _Place(buckets, everywhere, names, tuple(sorted(label_keys)), {})
            self._places[gvk, namespace] = place
        if not place.buckets:
            return place.everywhere
        labels = template.labels if place.label_keys else {}
        # The value of a label is a text.
        key = tuple([labels.get(name) for name in place.label_keys])
        is_named = identity.name in place.names
        known = None if is_named else place.alike.get(key)
        if known is not None:
            return known
        matches = list(place.everywhere)
        for bucket in place.buckets:
            bucket.collect(identity.name, labels, matches)
        if not is_named and len(place.alike) < _ALIKE_MAX:
            place.alike[key] = matches
        return matches


def best_matches(matches: Iterable[Match[AnyPolicy]]) -> list[Match[AnyPolicy]]:
    """One match a policy, the most precise and among those the first selector, in no particular order."""
    best: dict[int, Match[AnyPolicy]] = {}
    for match in matches:
        known = best.get(id(match.policy))
        if known is None or (match.score, -(match.selector or 0)) > (known.score, -(known.selector or 0)):
            best[id(match.policy)] = match
    return list(best.values())


_Templates = dict[Identity, Template]
_Kind = tuple[str, str]
_ASKS: Final = (Operator.IN, Operator.EXISTS)


class TemplateIndex:
    """The other direction of `PolicyIndex`.

    Templates are sorted by their labels when the first selector asks for one, and by their names likewise.
    """

    def __init__(self, templates: Mapping[Identity, Template]) -> None:
        self._by_place: dict[tuple[str, str, str], _Templates] = {}
        self._by_kind: dict[_Kind, _Templates] = {}
        self._by_label: dict[_Kind, dict[str, dict[str, _Templates]]] = {}
        self._by_name: dict[_Kind, dict[str, _Templates]] = {}
        self.add(templates.values())

    def add(self, templates: Iterable[Template]) -> None:
        """Add templates. A new version comes after the old one was removed."""
        for template in templates:
            identity = template.identity
            if is_never_distributed(template.gvk, identity, is_admitted=template.is_admitted):
                continue
            kind = (template.gvk.api_version, template.gvk.kind)
            self._by_place.setdefault((*kind, identity.namespace), {})[identity] = template
            self._by_kind.setdefault(kind, {})[identity] = template
            if kind in self._by_name:
                self._by_name[kind].setdefault(identity.name, {})[identity] = template
            if kind in self._by_label:
                _add_labels(self._by_label[kind], template)

    def remove(self, templates: Iterable[Template]) -> None:
        """Leave templates out from now on."""
        for template in templates:
            identity = template.identity
            kind = (template.gvk.api_version, template.gvk.kind)
            self._by_place.get((*kind, identity.namespace), {}).pop(identity, None)
            self._by_kind.get(kind, {}).pop(identity, None)
            self._by_name.get(kind, {}).get(identity.name, {}).pop(identity, None)
            by_label = self._by_label.get(kind, {})
            for key, value in template.labels.items() if by_label else ():
                by_label.get(key, {}).get(value, {}).pop(identity, None)

    def selected_by(self, policy: PropagationPolicy | OverridePolicy) -> frozenset[Identity]:
        """Every template that a policy selects."""
        if not policy.selectors and isinstance(policy, OverridePolicy):
            own = policy.ref.namespace
            return frozenset().union(*(each for key, each in self._by_place.items() if not own or key[2] == own))
        identities: set[Identity] = set()
        for selector in policy.selectors:
            identities |= self._selected(selector, policy.ref.namespace)
        return frozenset(identities)

    def _selected(self, selector: ResourceSelector, own_namespace: str) -> set[Identity]:
        """The templates that a selector selects, in the namespace of its policy, if that has one."""
        if own_namespace and selector.namespace not in ("", own_namespace):
            return set()
        namespace, kind = own_namespace or selector.namespace, (selector.api_version, selector.kind)
        place = self._by_place.get((*kind, namespace), {}) if namespace else self._by_kind.get(kind, {})
        if selector.name:
            if kind not in self._by_name:
                self._by_name[kind] = {}
                for template in self._by_kind.get(kind, {}).values():
                    self._by_name[kind].setdefault(template.identity.name, {})[template.identity] = template
            return place.keys() & self._by_name[kind].get(selector.name, {}).keys()
        return set(place) if selector.labels is None else self._labelled(place, kind, selector.labels)

    def _labelled(self, place: _Templates, kind: _Kind, labels: LabelSelector) -> set[Identity]:
        having = [(one, self._having(kind, one)) for one in labels.requirements if one.operator in _ASKS]
        having.sort(key=lambda each: sum(map(len, each[1])))
        identities = set(place)
        if having and sum(map(len, having[0][1])) < len(place):
            identities = set(chain.from_iterable(having.pop(0)[1])) & place.keys()
        for requirement, sets in having:
            if len(identities) < sum(map(len, sets)):
                identities = {identity for identity in identities if requirement.matches(place[identity].labels)}
            else:
                identities.intersection_update(set(chain.from_iterable(sets)))
        for requirement in labels.requirements if identities else ():
            if requirement.operator not in _ASKS:
                identities.difference_update(*self._having(kind, requirement))
        return identities

    def _having(self, kind: _Kind, requirement: LabelRequirement) -> list[_Templates]:
        """Templates of a kind with the label that a requirement speaks of: with one of its values, if it has any."""
        if kind not in self._by_label:
            self._by_label[kind] = {}
            for template in self._by_kind.get(kind, {}).values():
                _add_labels(self._by_label[kind], template)
        by_value = self._by_label[kind].get(requirement.key, {})
        if requirement.operator in (Operator.EXISTS, Operator.DOES_NOT_EXIST):
            return list(by_value.values())
        return [by_value[value] for value in requirement.values if value in by_value]


def _add_labels(by_label: dict[str, dict[str, _Templates]], template: Template) -> None:
    for key, value in template.labels.items():
        by_label.setdefault(key, {}).setdefault(value, {})[template.identity] = template
