"""The diff's knowledge of a kind's fields: merging of lists and maps, scalars with several spellings.

Three sources give the same value: the bundled table of the built-in kinds, a CustomResourceDefinition in the store, and
the OpenAPI v3 document of a member. Source: Kubernetes server-side apply, merge strategy markers
(`x-kubernetes-list-type`, `-list-map-keys`, `-map-type`); without a marker lists are atomic and maps granular.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from typing import Any, Final

import orjson
from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.api.content import Json, JsonObject, dig
from reconciler.api.plan import MISSING
from reconciler.api.refs import GVK


class NodeForm(StrEnum):
    """The kind of value at a place."""

    SCALAR = "scalar"
    OBJECT = "object"
    LIST = "list"
    ANY = "any"
    """Free-form: the value decides. Maps merge by key, lists are atomic."""


class Format(StrEnum):
    """Scalars that the API server spells in its own way."""

    PLAIN = ""
    QUANTITY = "quantity"
    BYTES = "byte"
    TIME = "date-time"


class SchemaNode(Struct, frozen=True, kw_only=True, eq=False):
    """One place of a schema. `fields` are a struct's; `item` is the value of a map or the item of a list.

    A list is `keys` (map list), `is_set`, or atomic. `default` is the API server's default, MISSING if unknown.
    `drops_zero`: false, 0 and "" are left out when stored. `is_inline`: a struct that is always there, so that `{}`
    says nothing. `is_nullable`: null is a value of its own. `accepts`: the types of a scalar as JSON is read.
    `has_transition_rule`: a rule of the kind judges a new value by the old one.
    """

    shape: NodeForm
    format: Format = Format.PLAIN
    fields: Mapping[str, SchemaNode] = field(default_factory=dict)
    item: SchemaNode | None = None
    keys: tuple[str, ...] = ()
    is_set: bool = False
    is_atomic: bool = False
    default: Json = MISSING
    drops_zero: bool = False
    is_inline: bool = False
    is_nullable: bool = False
    accepts: frozenset[type] = frozenset()
    has_transition_rule: bool = False

    def child(self, name: str) -> SchemaNode | None:
        """The schema of a field or map entry; None when there is no such field."""
        return self.fields.get(name) or self.item


def key_names(node: SchemaNode) -> tuple[tuple[str, ...], tuple[Json, ...]]:
    """Key fields in name order, with the default of each (MISSING: none)."""
    names = tuple(sorted(node.keys))
    fields = node.item.fields if node.item is not None else {}
    return names, tuple(fields[name].default if name in fields else MISSING for name in names)


class Schema(Struct, frozen=True, kw_only=True, eq=False):
    """A kind's fields.

    `keeps_empty`: custom resources are stored as sent, `{}` and `[]` included; built-in kinds leave out empty maps and
    lists.
    """

    root: SchemaNode
    keeps_empty: bool = False


_TEXT: Final[frozenset[type]] = frozenset({str})
_AMOUNT: Final[frozenset[type]] = frozenset({str, int, float})
_TYPES: Final[Mapping[str, frozenset[type]]] = {
    "string": _TEXT,
    "integer": frozenset({int}),
    "number": frozenset({int, float}),
    "boolean": frozenset({bool}),
}

PLAIN: Final = SchemaNode(shape=NodeForm.SCALAR, accepts=_AMOUNT)
"""A string or a number."""
FREE: Final = SchemaNode(shape=NodeForm.ANY)
OPAQUE: Final = SchemaNode(shape=NodeForm.ANY, is_atomic=True)
"""Runtime objects embedded as they are: replaced as a whole."""

_WORDS: Final[Mapping[Any, SchemaNode]] = {
    0: PLAIN,
    "s": SchemaNode(shape=NodeForm.SCALAR, accepts=_TYPES["string"]),
    "i": SchemaNode(shape=NodeForm.SCALAR, accepts=_TYPES["integer"]),
    "n": SchemaNode(shape=NodeForm.SCALAR, accepts=_TYPES["number"]),
    "t": SchemaNode(shape=NodeForm.SCALAR, accepts=_TYPES["boolean"]),
    "q": SchemaNode(shape=NodeForm.SCALAR, format=Format.QUANTITY, accepts=_AMOUNT),
    "b": SchemaNode(shape=NodeForm.SCALAR, format=Format.BYTES, accepts=_TEXT),
    "d": SchemaNode(shape=NodeForm.SCALAR, format=Format.TIME, accepts=_TEXT),
    "a": FREE,
    "u": OPAQUE,
}


class _Bundle:
    def __init__(self, table: Mapping[str, Any]) -> None:
        self.kinds: Mapping[str, int] = table["kinds"]
        self._types: list[Any] = table["types"]
        self._fields: dict[int, dict[str, SchemaNode]] = {}

    def fields(self, index: int) -> dict[str, SchemaNode]:
        """Fields of a definition. Registered before they are filled, since definitions may contain themselves."""
        known = self._fields.get(index)
        if known is None:
            known = self._fields[index] = {}
            known.update((name, self.node(raw)) for name, raw in self._types[index]["f"].items())
        return known

    def node(self, raw: Any) -> SchemaNode:
        """Return the node of one compact entry."""
        if not isinstance(raw, dict):
            return _WORDS[raw]
        is_atomic = "a" in raw
        if "r" in raw:
            is_atomic = is_atomic or "a" in self._types[raw["r"]]
            fields = self.fields(raw["r"])
            return SchemaNode(shape=NodeForm.OBJECT, fields=fields, is_atomic=is_atomic, is_inline="v" in raw)
        if "x" in raw:
            plain = _WORDS[raw["x"]]
            return SchemaNode(
                shape=plain.shape, format=plain.format, default=raw.get("d", MISSING), drops_zero="z" in raw,
                accepts=plain.accepts,
            )  # fmt: skip
        if "m" in raw:
            return SchemaNode(shape=NodeForm.OBJECT, item=self.node(raw["m"]), is_atomic=is_atomic)
        if "l" in raw:
            keys = tuple(raw.get("k", ()))
            is_set = "s" in raw
            return SchemaNode(
                shape=NodeForm.LIST, item=self.node(raw["l"]), keys=keys, is_set=is_set,
                is_atomic=not keys and not is_set,
            )  # fmt: skip
        fields = {name: self.node(value) for name, value in raw["f"].items()}
        return SchemaNode(shape=NodeForm.OBJECT, fields=fields, is_atomic=is_atomic)


@cache
def _bundle() -> _Bundle:
    # importlib.resources would take longer to be imported than the table to be read.
    data = pkgutil.get_data("reconciler.documents", "builtin.json")
    assert data is not None, "the bundled table is not installed"
    return _Bundle(orjson.loads(data))


@cache
def builtin_schema(gvk: GVK) -> Schema | None:
    """The bundled schema of a built-in kind; None for any other kind or version.

    Source: OpenAPI v3 of Kubernetes 1.36 (scripts/bundle_schemas.py).
    """
    bundle = _bundle()
    index = bundle.kinds.get(f"{gvk.api_version}/{gvk.kind}")
    return None if index is None else Schema(root=SchemaNode(shape=NodeForm.OBJECT, fields=bundle.fields(index)))


@cache
def object_meta() -> SchemaNode:
    """The schema of `metadata`, which is the same for every kind, known or not."""
    schema = builtin_schema(GVK("", "v1", "ConfigMap"))
    assert schema is not None, "the bundled table lacks ConfigMap"
    return schema.root.fields["metadata"]


def schema_of_crd(crd: JsonObject, version: str) -> Schema | None:
    """The schema of one version of a CustomResourceDefinition; None when that version has none."""
    versions = dig(crd, "spec", "versions")
    for entry in versions if isinstance(versions, list) else ():
        if isinstance(entry, Mapping) and entry.get("name") == version:
            raw = dig(entry, "schema", "openAPIV3Schema")
            if not isinstance(raw, Mapping):
                return None
            return Schema(root=_open_node(raw, is_root=True), keeps_empty=True)
    return None


def defined_kind(crd: JsonObject) -> tuple[str, str] | None:
    """The group and kind that a CustomResourceDefinition defines; None if it is malformed."""
    group, kind = dig(crd, "spec", "group"), dig(crd, "spec", "names", "kind")
    return (group, kind) if isinstance(group, str) and isinstance(kind, str) else None


def served_versions(crd: JsonObject) -> list[str]:
    """The versions that a CustomResourceDefinition serves, as it lists them."""
    versions = dig(crd, "spec", "versions")
    listed = versions if isinstance(versions, list) else []
    return [str(entry.get("name")) for entry in listed if isinstance(entry, Mapping) and entry.get("served") is True]


def schema_of_openapi(document: JsonObject, gvk: GVK) -> Schema | None:
    """The schema of a kind in an OpenAPI v3 document of a member (`/openapi/v3/apis/GROUP/VERSION`); None if absent.

    Meant for custom resources: of built-in kinds the bundled table knows more.
    """
    definitions = dig(document, "components", "schemas")
    if not isinstance(definitions, Mapping):
        return None
    wanted = {"group": gvk.group, "version": gvk.version, "kind": gvk.kind}
    for name in sorted(definitions):
        kinds = dig(definitions[name], "x-kubernetes-group-version-kind")
        if isinstance(kinds, list) and len(kinds) == 1 and kinds[0] == wanted:
            return Schema(root=_open_node(definitions[name], is_root=True), keeps_empty=True)
    return None


def _open_node(raw: JsonObject, *, is_root: bool = False) -> SchemaNode:
    """Return a node from OpenAPI v3, with its validation rules. Source: Kubernetes, CEL: transition rules."""
    node = _plain_node(raw, is_root=is_root)
    rules = raw.get("x-kubernetes-validations")
    is_ruled = isinstance(rules, list) and any("oldSelf" in str(dig(rule, "rule")) for rule in rules)
    return replace(node, has_transition_rule=True) if is_ruled else node


def _plain_node(raw: JsonObject, *, is_root: bool) -> SchemaNode:
    """A node from OpenAPI v3 as CustomResourceDefinitions write it.

    They are structural: no recursion, and references only to the API machinery's own definitions.
    """
    ref = raw.get("$ref") or dig(raw, "allOf", 0, "$ref")
    if isinstance(ref, str):
        name = ref.rpartition("/")[2]
        if name.endswith("ObjectMeta"):
            return object_meta()
        if name.endswith("Quantity"):
            return _WORDS["q"]
        if name.endswith("Time"):
            return _WORDS["s"]
        return PLAIN if name.endswith("IntOrString") else FREE
    nullable = bool(raw.get("nullable"))
    default = raw.get("default", MISSING)
    kind = raw.get("type")
    if raw.get("x-kubernetes-int-or-string") or kind in ("integer", "number", "string", "boolean"):
        # A pattern on int-or-string is how generators write a quantity; a bare one is stored and compared as it is.
        quantity = bool(raw.get("x-kubernetes-int-or-string")) and "pattern" in raw
        scalar = Format.QUANTITY if quantity else Format.PLAIN
        accepts = _AMOUNT if raw.get("x-kubernetes-int-or-string") else _TYPES[str(kind)]
        return SchemaNode(shape=NodeForm.SCALAR, format=scalar, default=default, is_nullable=nullable, accepts=accepts)
    if kind == "array":
        items = raw.get("items")
        item = _open_node(items) if isinstance(items, Mapping) else FREE
        listed = raw.get("x-kubernetes-list-map-keys")
        is_map = raw.get("x-kubernetes-list-type") == "map" and isinstance(listed, list)
        keys = tuple(str(key) for key in listed) if is_map and isinstance(listed, list) else ()
        is_set = raw.get("x-kubernetes-list-type") == "set"
        return SchemaNode(
            shape=NodeForm.LIST, item=item, keys=keys, is_set=is_set, is_atomic=not keys and not is_set,
            default=default, is_nullable=nullable,
        )  # fmt: skip
    if kind == "object":
        properties = raw.get("properties")
        properties = properties if isinstance(properties, Mapping) else {}
        fields = {name: _open_node(value) for name, value in properties.items() if isinstance(value, Mapping)}
        if is_root or raw.get("x-kubernetes-embedded-resource"):
            fields = {**fields, "apiVersion": _WORDS["s"], "kind": _WORDS["s"], "metadata": object_meta()}
        rest = raw.get("additionalProperties")
        if isinstance(rest, Mapping):
            below: SchemaNode | None = _open_node(rest)
        else:
            # The root always gets apiVersion, kind and metadata, so without properties it is free-form nevertheless.
            below = FREE if raw.get("x-kubernetes-preserve-unknown-fields") or rest is True or not properties else None
        return SchemaNode(
            shape=NodeForm.OBJECT, fields=fields, item=below, is_atomic=raw.get("x-kubernetes-map-type") == "atomic",
            default=raw.get("default", MISSING), is_nullable=bool(raw.get("nullable")),
        )  # fmt: skip
    return FREE
