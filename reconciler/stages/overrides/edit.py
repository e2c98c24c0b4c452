"""The edit of a body by one overrider, or the reason of its failure."""

from __future__ import annotations

from typing import Final, NamedTuple

from reconciler.model.tree import JsonObject, Step, dig

_IDENTITY: Final[tuple[tuple[str, ...], ...]] = (
    ("apiVersion",),
    ("kind",),
    ("metadata", "name"),
    ("metadata", "namespace"),
)


class Edit(NamedTuple):
    """The new body, the steps of its changes, and warnings as (code, message)."""

    body: JsonObject
    changed: tuple[tuple[Step, ...], ...] = ()
    warnings: tuple[tuple[str, str], ...] = ()


class EditFault(NamedTuple):
    """The reason why the overrider cannot be applied."""

    code: str
    message: str


IDENTITY_FAULT: Final = EditFault(
    "override-of-identity",
    "apiVersion, kind, metadata.name and metadata.namespace say which object this is, and an override must not change "
    "them; write another template",
)


def changed_identity(before: JsonObject, after: JsonObject) -> tuple[str, ...]:
    """The first field in which the two name different objects; empty when they name one (Karmada does not look).

    Source: design#fixed-identity.
    """
    if before is after:
        return ()
    is_same = before.get("metadata") is after.get("metadata") and before.get("kind") is after.get("kind")
    if is_same and before.get("apiVersion") is after.get("apiVersion"):
        return ()
    return next((field for field in _IDENTITY if dig(before, *field) != dig(after, *field)), ())
