"""Served kinds of an API server, and metadata of live objects, as declared types: an answer that does not fit is none.

Source: Kubernetes, "API Discovery", aggregated (since 1.27): apidiscovery.k8s.io/v2, meta/v1 `ObjectMeta`, `ListMeta`;
`null` only where an API server writes it for an empty list or map.
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
NotEmpty = Annotated[str, Meta(min_length=1)]


class ResponseKind(Struct, frozen=True):
    """The kind of the objects of a resource; an empty group or version means those around it."""

    kind: str = ""
    group: str = ""
    version: str = ""


class AggregatedResource(Struct, frozen=True, rename="camel", kw_only=True):
    """A resource of aggregated discovery."""

    resource: NotEmpty
    response_kind: ResponseKind | None = None
    scope: str = ""
    singular_resource: str = ""
    verbs: list[str] | None = None
    short_names: list[str] | None = None


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


@prepared
class Root(Struct, frozen=True):
    """The answer of /api or /apis; one of another kind has no `items`."""

    kind: str
    items: list[AggregatedGroup] | UnsetType = UNSET


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
                    kinds[gvk] = ServedKind(
                        gvk=gvk,
                        plural=item.resource,
                        namespaced=item.scope == "Namespaced",
                        verbs=frozenset(item.verbs or ()),
                        singular=item.singular_resource,
                        short_names=tuple(item.short_names or ()),
                        is_preferred=index == 0,
                    )
    # Kinds in preferred versions come first, so that the first match of a search is the best one.
    by_preference = dict(sorted(kinds.items(), key=lambda item: not item[1].is_preferred))
    return Discovery(kinds=by_preference, stale=frozenset(stale))


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
