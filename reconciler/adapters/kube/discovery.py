"""What an API server serves: kinds, their plurals, scopes and verbs.

Source: Kubernetes, "Kubernetes API, API Discovery": aggregated discovery, and the older answers for API servers or
proxies that do not have it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct, field

from reconciler.adapters.kube.requests import Resource
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
        """As it stands in paths."""
        return Resource(
            group_version=self.gvk.api_version, plural=self.plural, kind=self.gvk.kind, namespaced=self.namespaced
        )

    @property
    def names(self) -> frozenset[str]:
        """What a person may call it, in lower case: plural, singular, kind, short names."""
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


def from_aggregated(answers: Iterable[Mapping[str, Any]]) -> Discovery:
    """Of the two APIGroupDiscoveryList answers (/api and /apis)."""
    kinds: dict[GVK, ServedKind] = {}
    stale = set()
    for answer in answers:
        for group_item in answer.get("items", ()):
            group = group_item.get("metadata", {}).get("name", "")
            has_preferred = False
            for version_item in group_item.get("versions", ()):
                version = version_item["version"]
                if version_item.get("freshness") == "Stale":
                    stale.add(f"{group}/{version}" if group else version)
                for kind in _aggregated_kinds(group, version, version_item, is_preferred=not has_preferred):
                    kinds[kind.gvk] = kind
                # The first version is the preferred one.
                has_preferred = True
    return Discovery(kinds=_preferred_where_served(kinds), stale=frozenset(stale))


def _aggregated_kinds(
    group: str, version: str, version_item: Mapping[str, Any], *, is_preferred: bool
) -> Iterable[ServedKind]:
    for item in version_item.get("resources", ()):
        response = item.get("responseKind") or {}
        if not response.get("kind"):
            continue
        gvk = GVK(response.get("group") or group, response.get("version") or version, response["kind"])
        if (gvk.group, gvk.version) != (group, version):
            continue
        yield ServedKind(
            gvk=gvk,
            plural=item["resource"],
            namespaced=item.get("scope") == "Namespaced",
            verbs=frozenset(item.get("verbs", ())),
            singular=item.get("singularResource", ""),
            short_names=tuple(item.get("shortNames", ())),
            categories=tuple(item.get("categories", ())),
            is_preferred=is_preferred,
        )


def from_resource_lists(answers: Iterable[Mapping[str, Any]], preferred: Mapping[str, str]) -> Discovery:
    """Of APIResourceList answers, one a group version; `preferred` maps groups to versions."""
    kinds: dict[GVK, ServedKind] = {}
    for answer in answers:
        group, _, version = answer["groupVersion"].rpartition("/")
        for item in answer.get("resources", ()):
            # Subresources (pods/log) and kinds of another group version (scale) are no kinds of this one.
            if "/" in item["name"] or item.get("group", group) != group or item.get("version", version) != version:
                continue
            gvk = GVK(group, version, item["kind"])
            kinds[gvk] = ServedKind(
                gvk=gvk,
                plural=item["name"],
                namespaced=bool(item["namespaced"]),
                verbs=frozenset(item.get("verbs", ())),
                singular=item.get("singularName", ""),
                short_names=tuple(item.get("shortNames", ())),
                categories=tuple(item.get("categories", ())),
                is_preferred=preferred.get(group, version) == version,
            )
    return Discovery(kinds=_preferred_where_served(kinds))


def _preferred_where_served(kinds: Mapping[GVK, ServedKind]) -> Mapping[GVK, ServedKind]:
    """Kinds in preferred versions first, so that the first match of a search is the best one."""
    return dict(sorted(kinds.items(), key=lambda item: not item[1].is_preferred))
