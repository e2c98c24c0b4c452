"""The metadata of live objects as declared types, which the pipeline relies on.

Source: Kubernetes, meta/v1 `ObjectMeta` and `ListMeta`; API servers write an empty list or map as `null` or not at all.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct, field

from reconciler.prepared import prepared

_Text = Annotated[str, Meta(min_length=1)]


class ManagedFields(Struct, frozen=True, rename="camel", gc=False):
    """Owners of fields."""

    manager: str = ""
    operation: str = ""
    api_version: str = ""
    time: str | None = None
    fields_type: str = ""
    fields: dict[str, Any] | None = field(default=None, name="fieldsV1")
    subresource: str = ""


class Owner(Struct, frozen=True, rename="camel", gc=False):
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

    name: _Text
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    finalizers: list[str] | None = None
    owner_references: list[Owner] | None = None
    managed_fields: list[ManagedFields] | None = None


@prepared
class Named(Struct, frozen=True):
    """The part of an object that must be valid before anything else is reported about it."""

    name: _Text
    namespace: str = ""


@prepared
class ListMetadata(Struct, frozen=True, rename="camel"):
    """The guaranteed metadata of every list."""

    resource_version: str = ""
    token: str | None = field(default="", name="continue")
    remaining: int | None = field(default=0, name="remainingItemCount")


def object_metadata(value: Any) -> ObjectMetadata:
    """The metadata of an object.

    Raises:
        msgspec.ValidationError: it is not what the API promises; the message names the field.
    """
    found = msgspec.convert(value, ObjectMetadata)
    for index, entry in enumerate(found.managed_fields or ()):
        if entry.fields and not _is_field_set(entry.fields):
            raise msgspec.ValidationError(f"Expected fields - at `$.managedFields[{index}].fieldsV1`")
    return found


def _is_field_set(tree: dict[str, Any]) -> bool:
    """Return whether it is FieldsV1: objects all the way down."""
    rest = [tree]
    while rest:
        for below in rest.pop().values():
            if below.__class__ is not dict:
                return False
            if below:
                rest.append(below)
    return True
