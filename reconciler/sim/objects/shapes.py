"""Merging of trees: lists are keyed, sets or atomic, maps may be atomic.

A small table of our own for built-in kinds (a contract test compares it with the OpenAPI document of a real API
server), and the `x-kubernetes-…` extensions of a CustomResourceDefinition's schema for custom ones.
"""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.sim.objects.kinds import Resource
from reconciler.sim.objects.status import Body, Json

KEYED_LISTS: dict[str, tuple[str, ...]] = {
    "containers": ("name",),
    "initContainers": ("name",),
    "ephemeralContainers": ("name",),
    "env": ("name",),
    "volumes": ("name",),
    "volumeMounts": ("mountPath",),
    "volumeDevices": ("devicePath",),
    "imagePullSecrets": ("name",),
    "hostAliases": ("ip",),
    "resourceClaims": ("name",),
    "schedulingGates": ("name",),
    "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
    "claims": ("name",),
    "conditions": ("type",),
    "podIPs": ("ip",),
    "ownerReferences": ("uid",),
}
SET_LISTS = frozenset({"finalizers", "podCIDRs", "volumeLifecycleModes"})
ATOMIC_MAPS = frozenset(
    {
        "selector", "podSelector", "namespaceSelector", "labelSelector", "nodeSelector", "roleRef",
        "configMapKeyRef", "secretKeyRef", "fieldRef", "resourceFieldRef", "fileKeyRef", "secretRef", "configMapRef",
        "requiredDuringSchedulingIgnoredDuringExecution", "dataSource", "involvedObject", "scopeSelector",
        "nodePublishSecretRef",
    }
)  # fmt: skip
ATOMIC_ITEMS = frozenset({"imagePullSecrets", "ownerReferences", "secrets"})
CONTAINER_LISTS = frozenset({"containers", "initContainers", "ephemeralContainers"})
_KEY_DEFAULTS = {"protocol": "TCP"}


@dataclass(frozen=True, slots=True)
class Shape:
    """The merging of the value at one place of a built-in kind."""

    kind: str
    name: str = ""
    parent: str = ""
    is_item: bool = False

    def field(self, name: str) -> Shape:
        """The shape of a field of a map."""
        return Shape(self.kind, name, self.name)

    def item(self) -> Shape:
        """The shape of a list item."""
        return Shape(self.kind, self.name, self.parent, True)

    @property
    def is_atomic_map(self) -> bool:
        """Return whether a map here is owned as a whole."""
        if self.is_item:
            return self.name in ATOMIC_ITEMS
        if self.name in ("port", "resource"):
            return self.parent in ("service", "defaultBackend")
        return self.name in ATOMIC_MAPS

    @property
    def list_keys(self) -> tuple[str, ...]:
        """Key fields of the list here; empty unless it is keyed."""
        if self.name == "ports":
            if self.parent in CONTAINER_LISTS:
                return ("containerPort", "protocol")
            return ("port", "protocol") if self.kind == "Service" and self.parent == "spec" else ()
        if self.name == "secrets":
            return ("name",) if self.kind == "ServiceAccount" else ()
        if self.name == "imagePullSecrets" and self.kind == "ServiceAccount":
            return ()
        if self.name == "addresses":
            return ("type",) if self.kind == "Node" else ()
        if self.name == "conditions" and self.kind == "Job":
            return ()
        return KEYED_LISTS.get(self.name, ())

    @property
    def is_set(self) -> bool:
        """Return whether the list here is a set of scalars."""
        return self.name in SET_LISTS and self.parent == ("metadata" if self.name == "finalizers" else "spec")

    def key_default(self, key: str) -> Json:
        """The default of a key field that an item may leave out."""
        return _KEY_DEFAULTS.get(key)


class CustomShape(Shape):
    """The same, read from the schema of a custom resource."""

    __slots__ = ("schema",)

    def __init__(self, schema: Body, name: str = "") -> None:
        """Keep the schema node."""
        super().__init__("", name)
        object.__setattr__(self, "schema", schema)
        self.schema: Body

    def field(self, name: str) -> Shape:
        """The shape of a field; metadata is the same in every kind."""
        if name == "metadata" and not self.name:
            return Shape("", "metadata")
        node = (self.schema.get("properties") or {}).get(name)
        if node is None:
            extra = self.schema.get("additionalProperties")
            node = extra if isinstance(extra, dict) else {}
        return CustomShape(node, name)

    def item(self) -> Shape:
        """The shape of a list item."""
        return CustomShape(self.schema.get("items") or {}, self.name or "-")

    @property
    def is_atomic_map(self) -> bool:
        """`x-kubernetes-map-type: atomic`."""
        return self.schema.get("x-kubernetes-map-type") == "atomic"

    @property
    def list_keys(self) -> tuple[str, ...]:
        """`x-kubernetes-list-map-keys`."""
        if self.schema.get("x-kubernetes-list-type") != "map":
            return ()
        return tuple(self.schema.get("x-kubernetes-list-map-keys", ()))

    @property
    def is_set(self) -> bool:
        """`x-kubernetes-list-type: set`."""
        return self.schema.get("x-kubernetes-list-type") == "set"

    def key_default(self, key: str) -> Json:
        """`default` of the key's schema."""
        return ((self.schema.get("items") or {}).get("properties") or {}).get(key, {}).get("default")


def shape_of(resource: Resource) -> Shape:
    """The shape of a whole object."""
    return CustomShape(resource.schema or {}) if resource.is_custom else Shape(resource.kind)
