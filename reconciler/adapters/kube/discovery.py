"""Served kinds of an API server, with plurals, scopes and verbs.

Source: Kubernetes, "Kubernetes API, API Discovery": aggregated discovery, and the older answers for API servers or
proxies that do not have it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain

from msgspec import Struct, field

from reconciler.adapters.kube.requests import Resource
from reconciler.adapters.kube.shapes.discovery import AggregatedGroup, AggregatedVersion, ResourceList
from reconciler.model.refs import GVK


class ServedKind(Struct, frozen=True, kw_only=True):
    """One resource type. `is_preferred`: its version is the one that the API server prefers for the group."""

    gvk: GVK
    plural: str
    namespaced: bool
    verbs: frozenset[str] = frozenset()
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    is_preferred: bool = True

    @property
    def resource(self) -> Resource:
        """The resource as in paths."""
        return Resource(
            group_version=self.gvk.api_version, plural=self.plural, kind=self.gvk.kind, namespaced=self.namespaced
        )

    @property
    def names(self) -> frozenset[str]:
        """Return its names for people, in lower case: plural, singular, kind, short names."""
        return frozenset({self.plural, self.singular, self.gvk.kind.lower(), *self.short_names}) - {""}


class Discovery(Struct, frozen=True, kw_only=True):
    """Every resource type of an API server.

    `stale` holds the group versions that an extension API server should serve and does not answer for: their kinds
    are unknown, not absent.
    """

    kinds: Mapping[GVK, ServedKind] = field(default_factory=dict)
    stale: frozenset[str] = frozenset()

    def served(self) -> Mapping[GVK, bool]:
        """Each kind that can be read, with whether it is namespaced."""
        return {gvk: kind.namespaced for gvk, kind in self.kinds.items() if {"get", "list"} <= kind.verbs}

    def preferred(self, group: str, kind: str) -> ServedKind | None:
        """The kind in the version that the API server prefers, else in the first one that has it."""
        found = [served for gvk, served in self.kinds.items() if gvk.group_kind == (group, kind)]
        return next((served for served in found if served.is_preferred), found[0] if found else None)

    def find(self, name: str) -> ServedKind | None:
        """The kind that a person means: `deploy`, `Deployment`, `deployments.apps` or `deployments.v1.apps`.

        The core group comes before others, as in kubectl, and preferred versions before others.
        """
        wanted, _, suffix = name.lower().partition(".")
        candidates = [served for served in self.kinds.values() if wanted in served.names and _is_in(served.gvk, suffix)]
        candidates.sort(key=lambda served: (not served.is_preferred, served.gvk.group != "", wanted != served.plural))
        return candidates[0] if candidates else None


def _is_in(gvk: GVK, suffix: str) -> bool:
    return suffix in ("", gvk.group, f"{gvk.version}.{gvk.group}")


def from_aggregated(answers: Iterable[Iterable[AggregatedGroup]]) -> Discovery:
    """Of the groups in the two APIGroupDiscoveryList answers (/api and /apis)."""
    kinds: dict[GVK, ServedKind] = {}
    stale = set()
    for group_item in chain.from_iterable(answers):
        group = group_item.metadata.name
        for index, version_item in enumerate(group_item.versions):
            if version_item.freshness == "Stale":
                stale.add(f"{group}/{version_item.version}" if group else version_item.version)
            # The first version is the preferred one.
            for kind in _aggregated_kinds(group, version_item, is_preferred=index == 0):
                kinds[kind.gvk] = kind
    return Discovery(kinds=_preferred_where_served(kinds), stale=frozenset(stale))


def _aggregated_kinds(group: str, version_item: AggregatedVersion, *, is_preferred: bool) -> Iterable[ServedKind]:
    version = version_item.version
    for item in version_item.resources or ():
        response = item.response_kind
        if response is None or not response.kind:
            continue
        gvk = GVK(response.group or group, response.version or version, response.kind)
        if (gvk.group, gvk.version) != (group, version):
            continue
        yield ServedKind(
            gvk=gvk,
            plural=item.resource,
            namespaced=item.scope == "Namespaced",
            verbs=frozenset(item.verbs or ()),
            singular=item.singular_resource,
            short_names=tuple(item.short_names or ()),
            categories=tuple(item.categories or ()),
            is_preferred=is_preferred,
        )


def from_resource_lists(answers: Iterable[ResourceList], preferred: Mapping[str, str]) -> Discovery:
    """Of APIResourceList answers, one a group version; `preferred` maps groups to versions."""
    kinds: dict[GVK, ServedKind] = {}
    for answer in answers:
        group, _, version = answer.group_version.rpartition("/")
        for item in answer.resources or ():
            # Subresources (pods/log) and kinds of another group version (scale) are no kinds of this one.
            is_of_another = (item.group or group, item.version or version) != (group, version)
            if "/" in item.name or is_of_another:
                continue
            gvk = GVK(group, version, item.kind)
            kinds[gvk] = ServedKind(
                gvk=gvk,
                plural=item.name,
                namespaced=item.namespaced,
                verbs=frozenset(item.verbs or ()),
                singular=item.singular_name,
                short_names=tuple(item.short_names or ()),
                categories=tuple(item.categories or ()),
                is_preferred=preferred.get(group, version) == version,
            )
    return Discovery(kinds=_preferred_where_served(kinds))


def _preferred_where_served(kinds: Mapping[GVK, ServedKind]) -> Mapping[GVK, ServedKind]:
    """Kinds in preferred versions first, so that the first match of a search is the best one."""
    return dict(sorted(kinds.items(), key=lambda item: not item[1].is_preferred))
