"""Discovery answers of API servers as declared types: an answer that does not fit is no answer.

Source: Kubernetes, apidiscovery.k8s.io/v2 and meta/v1 `APIVersions`, `APIGroupList`, `APIResourceList`; `null` is
allowed only where an API server writes it for an empty list.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from reconciler.prepared import prepared

Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9.-]{0,253}$")]
"""Of a group or a version: it becomes a part of a path."""
GroupVersion = Annotated[str, Meta(pattern=r"^([A-Za-z0-9.-]{1,253}/)?[A-Za-z0-9.-]{1,253}$")]
NotEmpty = Annotated[str, Meta(min_length=1)]


class ResponseKind(Struct, frozen=True):
    """The kind of the objects of a resource; an empty group or version means those around it."""

    kind: str = ""
    group: str = ""
    version: str = ""


class AggregatedResource(Struct, frozen=True, rename="camel"):
    """A resource of aggregated discovery."""

    resource: NotEmpty
    response_kind: ResponseKind | None = None
    scope: str = ""
    verbs: list[str] | None = None
    singular_resource: str = ""
    short_names: list[str] | None = None
    categories: list[str] | None = None


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


class Group(Struct, frozen=True, rename="camel"):
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
    groups: list[Group] | UnsetType | None = UNSET


class ListedResource(Struct, frozen=True, rename="camel"):
    """A resource in an APIResourceList; subresources have a slash in their name."""

    name: NotEmpty
    kind: NotEmpty
    namespaced: bool
    group: str | None = None
    version: str | None = None
    verbs: list[str] | None = None
    singular_name: str = ""
    short_names: list[str] | None = None
    categories: list[str] | None = None


@prepared
class ResourceList(Struct, frozen=True, rename="camel"):
    """The resources of one group version."""

    kind: str
    group_version: GroupVersion
    resources: list[ListedResource] | None
