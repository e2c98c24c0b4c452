"""The marks of our objects: a label to list by and an annotation with the terms.

Source: design#marks. The label is never enough to delete; the annotation has the state that must survive the loss of
the journal. It holds no commit id, or every commit would rewrite every object.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import orjson
from msgspec import Struct

from reconciler.interpreters.reading import count
from reconciler.model.policy import Flavor
from reconciler.model.refs import PolicyRef
from reconciler.model.tree import Json, JsonObject, dig, with_value

FLEET_LABEL: Final = "fleet.reconciler/fleet"
"""Label with the name of the fleet."""

OWNER_ANNOTATION: Final = "fleet.reconciler/owner"
"""Annotation with `Owner` as compact JSON with sorted keys."""

ENCRYPTED_ANNOTATION: Final = "fleet.reconciler/encrypted"
"""Annotation, value `true`, of objects other than Secrets with values that the store has encrypted: they are hidden in
whatever is shown of the object, also by a command that knows neither the store nor a key."""

_FLAVORS: Final = frozenset(Flavor)


class Owner(Struct, frozen=True):
    """The terms of our ownership of an object.

    `policy` None: no policy governs it (a Namespace that follows its objects). `replicas` are the assigned ones, None
    without replicas. `dependency`: it is there as the dependency of another object.
    """

    policy: PolicyRef | None
    flavor: Flavor = Flavor.ACK
    keep: bool = True
    replicas: int | None = None
    dependency: bool = False

    @property
    def is_ack(self) -> bool:
        """Return whether the deletion rules of the ACK groups hold for it."""
        return self.flavor.is_ack


def mark(body: JsonObject, fleet: str, terms: str) -> dict[str, Any]:
    """The body with our label and annotation, copy on write; an empty fleet name adds nothing (no `Fleet` document).

    `terms`: those of the owner, as `written_terms` writes them, since thousands of objects have the same.
    """
    if not fleet:
        return dict(body)
    metadata = _mapping(body.get("metadata"))
    labels, annotations = {FLEET_LABEL: fleet}, {OWNER_ANNOTATION: terms}
    if "labels" in metadata:
        labels = {**_mapping(metadata["labels"]), **labels}
    if "annotations" in metadata:
        annotations = {**_mapping(metadata["annotations"]), **annotations}
    return {**body, "metadata": {**metadata, "labels": labels, "annotations": annotations}}


def mark_encrypted(body: JsonObject) -> JsonObject:
    """The body marked as one with encrypted values; a Secret, which is known by its kind, as it is."""
    if body.get("kind") == "Secret" and body.get("apiVersion") == "v1":
        return body
    return with_value(body, ("metadata", "annotations", ENCRYPTED_ANNOTATION), "true")


def is_marked_encrypted(body: JsonObject) -> bool:
    """Return whether values of an object are encrypted in the store."""
    return dig(body, "metadata", "annotations", ENCRYPTED_ANNOTATION) is not None


def read_owner(body: JsonObject) -> Owner | None:
    """The terms that the object's annotation states; None when it has none or it does not read as ours."""
    text = dig(body, "metadata", "annotations", OWNER_ANNOTATION)
    return _read_terms(text) if isinstance(text, str) else None


# Thousands of objects carry the same terms, and each is asked several times a round.
@lru_cache(maxsize=8192)
def _read_terms(text: str) -> Owner | None:
    try:
        read = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return _read(read) if isinstance(read, dict) else None


def strip_marks(body: JsonObject) -> JsonObject:
    """The body without our label and annotations, and without a map that they alone filled; else the body itself."""
    metadata = _mapping(body.get("metadata"))
    if FLEET_LABEL not in _mapping(metadata.get("labels")) and "annotations" not in metadata:
        return body  # Nearly all that is in a store.
    stripped = metadata
    for field, key in (
        ("labels", FLEET_LABEL),
        ("annotations", OWNER_ANNOTATION),
        ("annotations", ENCRYPTED_ANNOTATION),
    ):
        entries = stripped.get(field)
        if isinstance(entries, (dict, Mapping)) and key in entries:
            rest = {name: value for name, value in entries.items() if name != key}
            others = {name: value for name, value in stripped.items() if name != field}
            stripped = {**others, field: rest} if rest else others
    return body if stripped is metadata else {**body, "metadata": stripped}


def written_terms(owner: Owner) -> str:
    """The value of the annotation for these terms."""
    terms = {
        "api": owner.flavor.value,
        "dependency": owner.dependency,
        "keep": owner.keep,
        "policy": str(owner.policy) if owner.policy else None,
        "replicas": owner.replicas,
    }
    if not owner.dependency:
        del terms["dependency"]
    return orjson.dumps(terms, option=orjson.OPT_SORT_KEYS).decode()


def _read(terms: Mapping[str, Json]) -> Owner | None:
    policy, flavor, keep = terms.get("policy"), terms.get("api"), terms.get("keep")
    replicas, dependency = terms.get("replicas"), terms.get("dependency", False)
    if not isinstance(keep, bool) or not isinstance(dependency, bool):
        return None
    if not isinstance(flavor, str) or flavor not in _FLAVORS:
        return None
    if replicas is not None and (isinstance(replicas, bool) or count(replicas, -1) < 0):
        return None
    ref = policy_ref(policy) if isinstance(policy, str) else None
    if policy is not None and ref is None:
        return None
    return Owner(policy=ref, flavor=Flavor(flavor), keep=keep, replicas=replicas, dependency=dependency)


def policy_ref(text: str) -> PolicyRef | None:
    """The inverse of `str` of a policy; None where the text names none."""
    kind, _, subject = text.partition(" ")
    namespace, _, name = subject.rpartition("/")
    return PolicyRef(kind, namespace, name) if kind and name else None


def _mapping(value: Json) -> Mapping[str, Any]:
    return value if isinstance(value, (dict, Mapping)) else {}
