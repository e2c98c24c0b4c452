"""A live ClusterProfile, as far as a document of the store may have it. All of it is untrusted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct, field

from reconciler.api.content import JsonObject, dig
from reconciler.documents import is_dns_label, is_dns_subdomain, is_label_key, is_label_value

ORIGIN_ANNOTATION: Final = "fleet.reconciler/inventory"
"""`NAME/NAMESPACE`: the inventory that a document follows, and the namespace of its profile there."""
LABELS_ANNOTATION: Final = "fleet.reconciler/inventory-labels"
"""Keys of the labels that came from the profile, so that those of people stay when the profile loses one."""

DEFAULT_PROPERTIES: Final[Mapping[str, str]] = {
    "topology.kubernetes.io/region": "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone": "topology.kubernetes.io/zone",
}
"""Properties of a profile to the labels that they become."""

NAME_MAX_CHARS: Final = 240
"""A file is named after it, and file systems take 255 bytes."""
DISPLAY_NAME_MAX_CHARS: Final = 256


class InventoryOrigin(Struct, frozen=True, kw_only=True):
    """An inventory: a name, and the namespace that is looked at; empty: all of them."""

    name: str
    namespace: str = ""

    def __str__(self) -> str:
        return f"{self.name}/{self.namespace}" if self.namespace else self.name

    def covers(self, annotation: str) -> bool:
        """Return whether a document with this annotation follows this inventory."""
        name, slash, namespace = annotation.rpartition("/")
        return bool(slash) and name == self.name and self.namespace in ("", namespace)


class Profile(Struct, frozen=True, kw_only=True):
    """One cluster of the inventory."""

    name: str
    namespace: str
    display_name: str = ""
    manager: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    """With the properties that become labels."""
    dropped: tuple[str, ...] = ()
    """The parts that were left out of it, in words."""


def read_profile(body: JsonObject, properties: Mapping[str, str]) -> Profile | str:
    """The profile, or why it cannot be a document. `properties`: names of properties to the labels that they become."""
    name, namespace = dig(body, "metadata", "name"), dig(body, "metadata", "namespace")
    if not isinstance(name, str) or not is_dns_subdomain(name) or len(name) > NAME_MAX_CHARS:
        return f"its name cannot be that of a cluster: small letters, digits, dashes and dots, at most {NAME_MAX_CHARS}"
    if not isinstance(namespace, str) or not is_dns_label(namespace):
        return "its namespace is not legal"
    dropped: list[str] = []
    labels = _labels(dig(body, "metadata", "labels"), dropped)
    for key, value in _properties(dig(body, "status", "properties"), properties, dropped).items():
        labels.setdefault(key, value)
    return Profile(
        name=name,
        namespace=namespace,
        display_name=_text(dig(body, "spec", "displayName"), "displayName", dropped),
        manager=_manager(dig(body, "spec", "clusterManager", "name"), dropped),
        labels=dict(sorted(labels.items())),
        dropped=tuple(dropped),
    )


def _labels(found: Any, dropped: list[str]) -> dict[str, str]:
    labels: dict[str, str] = {}
    for key, value in found.items() if isinstance(found, Mapping) else ():
        if isinstance(value, str) and is_label_key(key) and is_label_value(value):
            labels[key] = value
        else:
            dropped.append(f"its label {key!r} is not legal")
    return labels


def _properties(found: Any, wanted: Mapping[str, str], dropped: list[str]) -> dict[str, str]:
    labels: dict[str, str] = {}
    for each in found if isinstance(found, list) else ():
        name, value = (each.get("name"), each.get("value")) if isinstance(each, Mapping) else (None, None)
        key = wanted.get(name) if isinstance(name, str) else None
        if key is None:
            continue
        if isinstance(value, str) and value and is_label_value(value):
            labels[key] = value
        else:
            dropped.append(f"its property {name!r} has no value that a label can have")
    return labels


def _text(found: Any, what: str, dropped: list[str]) -> str:
    if found is None or found == "":
        return ""
    if isinstance(found, str) and len(found) <= DISPLAY_NAME_MAX_CHARS and found.isprintable():
        return found
    dropped.append(f"its {what} is no text of one line with at most {DISPLAY_NAME_MAX_CHARS} characters")
    return ""


def _manager(found: Any, dropped: list[str]) -> str:
    if found is None:
        return ""
    if isinstance(found, str) and found and is_label_value(found):
        return found
    dropped.append("its clusterManager cannot be the value of a label")
    return ""
