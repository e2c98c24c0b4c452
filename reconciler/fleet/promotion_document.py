"""Documents of kind `Promotion`: the fields of one folder that follow another folder's."""

from __future__ import annotations

from typing import Final

from reconciler.api.problem import Document, Problem
from reconciler.api.promotions import FollowClass, Promotion
from reconciler.documents import (
    Fields,
    check_own_api_version,
    document_fields,
    document_shape,
    is_dns_label,
    map_field,
    object_field,
    refuse_namespace,
    text_field,
    texts_field,
)
from reconciler.hydration import is_below, is_plain_path
from reconciler.ownership import parse_path

PROMOTION_SHAPE: Final = document_shape(
    object_field(
        "spec",
        "What follows, and where.",
        text_field("from", "The folder that is followed.", required=True),
        text_field("to", "The folder that follows.", required=True),
        map_field("namespaces", "Namespaces of the first folder to those of the second; others are equal."),
        texts_field(
            "follow",
            "Classes of fields that follow: `images`, `revision` (version and digest of a Render's chart), `values` "
            "(values files, and data of ConfigMaps).",
            default="images and revision",
        ),
        texts_field("fields", "Further fields that follow, as plans write them; `*` is any item or key."),
        texts_field("stay", "Fields that do not follow, whatever their class."),
        required=True,
    )
)


def parse_promotion(document: Document) -> tuple[Promotion | None, tuple[Problem, ...]]:
    """The promotion that a document describes and every problem of it; None when one is an error."""
    fields = document_fields(document, PROMOTION_SHAPE)
    check_own_api_version(fields)
    metadata, spec = fields.child("metadata"), fields.child("spec")
    name = metadata.text("name") if metadata else ""
    if metadata:
        refuse_namespace(metadata, "a Promotion")
        if metadata.has("name") and not is_dns_label(name):
            metadata.error("name-illegal", f"{name!r} cannot name a Promotion", "name")
    return fields.result(_promotion(fields, spec, name) if spec else None)


def _promotion(document: Fields, spec: Fields, name: str) -> Promotion:
    origin, target = (spec.text(field).rstrip("/") for field in ("from", "to"))
    for field, folder in (("from", origin), ("to", target)):
        if spec.has(field) and not is_plain_path(folder):
            spec.error("promotion-folder", f"{folder!r} is no folder of the store; write one as envs/staging", field)
    if origin and target and (is_below(origin, target) or is_below(target, origin)):
        spec.error("promotion-folder", "one of the folders is in the other", "to")
    for index, text in enumerate(spec.texts("follow")):
        if text not in tuple(FollowClass):
            spec.error("promotion-field", f"{text!r} is no class of fields: {', '.join(FollowClass)}", "follow", index)
    for field in ("fields", "stay"):
        for index, text in enumerate(spec.texts(field)):
            if parse_path(text) is None:
                spec.error("promotion-field", f"{text!r} is no field; write it as plans do", field, index)
    follow = frozenset(FollowClass(text) for text in spec.texts("follow") if text in tuple(FollowClass))
    given = {"follow": follow} if spec.has("follow") else {}
    return Promotion(
        name=name,
        origin=origin,
        target=target,
        namespaces=dict(spec.text_map("namespaces")),
        fields=spec.texts("fields"),
        stay=spec.texts("stay"),
        source=document.source(),
        **given,
    )
