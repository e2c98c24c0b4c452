"""Changes that cannot be made in place: the object is deleted and created again, once a person allows it.

Source: design#replacement.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from reconciler.model.plan import Action, Cause, Change, Engine
from reconciler.model.tree import JsonObject, dig, with_value

ALLOW_REPLACE: Final = "fleet.reconciler/replace"
"""Template annotation, value `allowed`: an immutable field may be changed by deleting and creating the object."""

_NEVER_REPLACED: Final = frozenset(
    {"Namespace", "CustomResourceDefinition", "PersistentVolume", "PersistentVolumeClaim"}
)


def why_not_replaced(kind: str, body: JsonObject, at: str) -> str | None:
    """Return why an object is not replaced for the change of a field; None: its template allows it.

    `at`: the field that cannot be changed in place.
    """
    if kind in _NEVER_REPLACED:
        return f"{at} cannot be changed and a {kind} is never replaced"
    if dig(body, "metadata", "annotations", ALLOW_REPLACE) == "allowed":
        return None
    return (
        f"{at} cannot be changed in place; set the annotation {ALLOW_REPLACE}: allowed "
        "on the template to delete and create it"
    )


def as_replacement(change: Change, at: str, path: tuple[str, ...]) -> Change:
    """An update that an API server refuses to make in place, as a replacement. `path`: where the kind has replicas."""
    assert change.manifest is not None, "an update has a manifest"
    body, chosen = change.manifest, dig(change.before, *path)
    if path and dig(body, *path) is None and chosen is not None:
        body = with_value(body, path, chosen)  # Others decide about them: they stay as they are.
    return replace(
        change,
        action=Action.REPLACE,
        cause=Cause.DECLARED,
        held=why_not_replaced(change.identity.kind, change.manifest, at),
        manifest=body,
        engine=Engine.SERVER_SIDE,
        steady_path=(),
        removed_paths=(),
        in_the_way=(),
    )
