"""Templates by kind, namespace, name and labels: which of them one policy selects that changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Final

from reconciler.model.fleet import Template
from reconciler.model.override import OverridePolicy
from reconciler.model.policy import LabelRequirement, LabelSelector, Operator, PropagationPolicy, ResourceSelector
from reconciler.model.refs import Identity
from reconciler.stages.documents import is_never_distributed

_Templates = dict[Identity, Template]
_Kind = tuple[str, str]
_ASKS: Final = (Operator.IN, Operator.EXISTS)


class TemplateIndex:
    """The other direction of `PolicyIndex`.

    Templates are sorted by their labels when the first selector asks for one, and by their names likewise.
    """

    __slots__ = ("_by_kind", "_by_label", "_by_name", "_by_place")

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
            if is_never_distributed(template.gvk, identity):
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
            return frozenset(template.identity for template in self._reached_by(policy.ref.namespace))
        found: set[Identity] = set()
        for selector in policy.selectors:
            found |= self._selected(selector, policy.ref.namespace)
        return frozenset(found)

    def _selected(self, selector: ResourceSelector, own_namespace: str) -> set[Identity]:
        """The templates that a selector selects, in the namespace of its policy, if that has one."""
        if own_namespace and selector.namespace not in ("", own_namespace):
            return set()
        namespace, kind = own_namespace or selector.namespace, (selector.api_version, selector.kind)
        place = self._by_place.get((*kind, namespace), {}) if namespace else self._by_kind.get(kind, {})
        if selector.name:
            return place.keys() & self._named(kind, selector.name).keys()
        return set(place) if selector.labels is None else self._labelled(place, kind, selector.labels)

    def _labelled(self, place: _Templates, kind: _Kind, labels: LabelSelector) -> set[Identity]:
        """Those of a place that meet all requirements, beginning with the one that the fewest templates meet."""
        asked = [(found, self._having(kind, found)) for found in labels.requirements if found.operator in _ASKS]
        asked.sort(key=lambda each: sum(map(len, each[1])))
        found = set(place)
        if asked and sum(map(len, asked[0][1])) < len(place):
            found = set(chain.from_iterable(asked.pop(0)[1])) & place.keys()
        for requirement, sets in asked:
            if len(found) < sum(map(len, sets)):
                found = {identity for identity in found if requirement.matches(place[identity].labels)}
            else:
                found.intersection_update(set(chain.from_iterable(sets)))
        for requirement in labels.requirements if found else ():
            if requirement.operator not in _ASKS:
                found.difference_update(*self._having(kind, requirement))
        return found

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

    def _named(self, kind: _Kind, name: str) -> _Templates:
        """The templates of a kind with a name, one for each namespace at most."""
        if kind not in self._by_name:
            self._by_name[kind] = {}
            for template in self._by_kind.get(kind, {}).values():
                self._by_name[kind].setdefault(template.identity.name, {})[template.identity] = template
        return self._by_name[kind].get(name, {})

    def _reached_by(self, namespace: str) -> Iterable[Template]:
        for key, templates in self._by_place.items():
            if not namespace or key[2] == namespace:
                yield from templates.values()


def _add_labels(by_label: dict[str, dict[str, _Templates]], template: Template) -> None:
    for key, value in template.labels.items():
        by_label.setdefault(key, {}).setdefault(value, {})[template.identity] = template
