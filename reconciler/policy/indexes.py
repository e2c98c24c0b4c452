"""Finds the policies that select a template without trying every policy.

Selectors are sorted into buckets by group, version, kind and namespace, inside them by name or by labels. A template
then meets only selectors that share its bucket and its name or a label.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Final, Generic, NamedTuple, TypeVar

from reconciler.api.fleet import Template
from reconciler.api.policies import OverridePolicy, PropagationPolicy
from reconciler.api.refs import GVK
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
