"""Served kinds of an API server, and metadata of live objects, as declared types: an answer that does not fit is none.

Source: Kubernetes, "API Discovery": aggregated, and the older answers for API servers or proxies without it:
apidiscovery.k8s.io/v2, meta/v1 `APIVersions`, `APIGroupList`, `APIResourceList`, `ObjectMeta`, `ListMeta`; `null` only
where an API server writes it for an empty list or map.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, field

from reconciler.api.refs import GVK
from reconciler.decoding import prepared
from reconciler.kube.kube_requests import ServedKind

Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9.-]{0,253}$")]
"""Of a group or a version: it becomes a part of a path."""
GroupVersion = Annotated[str, Meta(pattern=r"^([A-Za-z0-9.-]{1,253}/)?[A-Za-z0-9.-]{1,253}$")]
NotEmpty = Annotated[str, Meta(min_length=1)]


class ResponseKind(Struct, frozen=True):
    """The kind of the objects of a resource; an empty group or version means those around it."""

    kind: str = ""
    group: str = ""
    version: str = ""


class ResourceNames(Struct, frozen=True, rename="camel", kw_only=True):
    """The part of a resource that both forms of discovery have."""

    verbs: list[str] | None = None
    short_names: list[str] | None = None
    categories: list[str] | None = None

    def served(self, gvk: GVK, plural: str, singular: str, *, namespaced: bool, is_preferred: bool) -> ServedKind:
        """Return the resource type of a kind."""
        return ServedKind(
            gvk=gvk,
            plural=plural,
            namespaced=namespaced,
            verbs=frozenset(self.verbs or ()),
            singular=singular,
            short_names=tuple(self.short_names or ()),
            categories=tuple(self.categories or ()),
            is_preferred=is_preferred,
        )


class AggregatedResource(ResourceNames, frozen=True, rename="camel", kw_only=True):
    """A resource of aggregated discovery."""

    resource: NotEmpty
    response_kind: ResponseKind | None = None
    scope: str = ""
    singular_resource: str = ""


class AggregatedVersion(Struct, frozen=True):
    """A version of a group with its resources."""

    version: Name
    resources: list[AggregatedResource] | None = None
    freshness: str = ""


class GroupMetadata(Struct, frozen=True):
    """The name of a group; the core group has none."""

    name: Name = ""


@prepared
class AggregatedGroup(Struct, frozen=True):
    """A group with its versions, the preferred one first."""

    versions: list[AggregatedVersion] = []
    metadata: GroupMetadata = GroupMetadata()


class GroupVersionName(Struct, frozen=True, rename="camel"):
    """A version of a group in an APIGroupList."""

    group_version: GroupVersion
    version: Name


class ApiGroup(Struct, frozen=True, rename="camel"):
    """A group in an APIGroupList."""

    name: Name
    versions: list[GroupVersionName]
    preferred_version: GroupVersionName


@prepared
class Root(Struct, frozen=True):
    """The answer of /api or /apis: aggregated (`items`), or of the older form (`versions`, `groups`)."""

    kind: str
    items: list[AggregatedGroup] | UnsetType = UNSET
    versions: list[GroupVersion] | UnsetType = UNSET
    groups: list[ApiGroup] | UnsetType | None = UNSET


class ListedResource(ResourceNames, frozen=True, rename="camel", kw_only=True):
    """A resource in an APIResourceList; subresources have a slash in their name."""

    name: NotEmpty
    kind: NotEmpty
    namespaced: bool
    group: str | None = None
    version: str | None = None
    singular_name: str = ""


@prepared
class ResourceList(Struct, frozen=True, rename="camel"):
    """The resources of one group version."""

    kind: str
    group_version: GroupVersion
    resources: list[ListedResource] | None


class Discovery(Struct, frozen=True, kw_only=True):
    """Every resource type of an API server. `stale`: group versions that do not answer: unknown, not absent."""

    kinds: Mapping[GVK, ServedKind] = field(default_factory=dict)
    stale: frozenset[str] = frozenset()

    def served(self) -> Mapping[GVK, bool]:
        """Return each kind that can be read, with whether it is namespaced."""
        return {gvk: kind.namespaced for gvk, kind in self.kinds.items() if {"get", "list"} <= kind.verbs}

    def preferred(self, group: str, kind: str) -> ServedKind | None:
        """Return the kind in the version that the API server prefers, else in the first one that has it."""
        matches = [served for gvk, served in self.kinds.items() if gvk.group_kind == (group, kind)]
        return next((served for served in matches if served.is_preferred), matches[0] if matches else None)

    def find(self, name: str) -> ServedKind | None:
        """Return the kind that a person means (`deploy`, `deployments.v1.apps`), as kubectl ranks them."""
        wanted, _, suffix = name.lower().partition(".")
        candidates = [
            served
            for served in self.kinds.values()
            if wanted in served.names and suffix in ("", served.gvk.group, f"{served.gvk.version}.{served.gvk.group}")
        ]
        candidates.sort(key=lambda served: (not served.is_preferred, served.gvk.group != "", wanted != served.plural))
        return candidates[0] if candidates else None


def from_aggregated(answers: Iterable[Iterable[AggregatedGroup]]) -> Discovery:
    """Return the kinds of the two APIGroupDiscoveryList answers (/api and /apis)."""
    kinds: dict[GVK, ServedKind] = {}
    stale = set()
    for group_item in chain.from_iterable(answers):
        group = group_item.metadata.name
        for index, version_item in enumerate(group_item.versions):
            if version_item.freshness == "Stale":
                stale.add(f"{group}/{version_item.version}" if group else version_item.version)
            # The first version is the preferred one.
            for item in version_item.resources or ():
                response = item.response_kind
                if response is None or not response.kind:
                    continue
                gvk = GVK(response.group or group, response.version or version_item.version, response.kind)
                if (gvk.group, gvk.version) == (group, version_item.version):
                    is_namespaced, singular = item.scope == "Namespaced", item.singular_resource
                    kinds[gvk] = item.served(
                        gvk, item.resource, singular, namespaced=is_namespaced, is_preferred=index == 0
                    )
    return Discovery(kinds=_preferred_where_served(kinds), stale=frozenset(stale))


def from_resource_lists(answers: Iterable[ResourceList], preferred: Mapping[str, str]) -> Discovery:
    """Return the kinds of APIResourceList answers. `preferred`: the preferred version of each group."""
    kinds: dict[GVK, ServedKind] = {}
    for answer in answers:
        group, _, version = answer.group_version.rpartition("/")
        for item in answer.resources or ():
            # Subresources (pods/log) and kinds of another group version (scale) are no kinds of this one.
            is_of_another = (item.group or group, item.version or version) != (group, version)
            if "/" in item.name or is_of_another:
                continue
            gvk = GVK(group, version, item.kind)
            is_preferred = preferred.get(group, version) == version
            kinds[gvk] = item.served(
                gvk, item.name, item.singular_name, namespaced=item.namespaced, is_preferred=is_preferred
            )
    return Discovery(kinds=_preferred_where_served(kinds))


def _preferred_where_served(kinds: Mapping[GVK, ServedKind]) -> Mapping[GVK, ServedKind]:
    """Return kinds in preferred versions first, so that the first match of a search is the best one."""
    return dict(sorted(kinds.items(), key=lambda item: not item[1].is_preferred))


class ManagedFields(Struct, frozen=True, rename="camel", gc=False):
    """Owners of fields."""

    manager: str = ""
    operation: str = ""
    api_version: str = ""
    time: str | None = None
    fields_type: str = ""
    fields: dict[str, Any] | None = field(default=None, name="fieldsV1")
    subresource: str = ""


class OwnerEntry(Struct, frozen=True, rename="camel", gc=False):
    """An entry of ownerReferences."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None
    block_owner_deletion: bool | None = None


@prepared
class ObjectMetadata(Struct, frozen=True, rename="camel"):
    """The guaranteed metadata of every object."""

    name: NotEmpty
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    finalizers: list[str] | None = None
    owner_references: list[OwnerEntry] | None = None
    managed_fields: list[ManagedFields] | None = None


@prepared
class NamedObject(Struct, frozen=True):
    """The part of an object that must be valid before anything else is reported about it."""

    name: NotEmpty
    namespace: str = ""


@prepared
class ListMetadata(Struct, frozen=True, rename="camel"):
    """The guaranteed metadata of every list."""

    resource_version: str = ""
    token: str | None = field(default="", name="continue")
    remaining: int | None = field(default=0, name="remainingItemCount")


def object_metadata(value: Any) -> ObjectMetadata:
    """Return the metadata of an object. Raises msgspec.ValidationError with the field that breaks the API's promise."""
    metadata = msgspec.convert(value, ObjectMetadata)
    for index, entry in enumerate(metadata.managed_fields or ()):
        rest = [entry.fields] if entry.fields else []
        while rest:
            below = rest.pop().values()
            if any(one.__class__ is not dict for one in below):
                raise msgspec.ValidationError(f"Expected fields - at `$.managedFields[{index}].fieldsV1`")
            rest += filter(None, below)
    return metadata
