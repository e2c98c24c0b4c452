"""Schemas: the bundled table, a CustomResourceDefinition, an OpenAPI document."""

from __future__ import annotations

from typing import Any

from reconciler.api.plan import MISSING
from reconciler.api.refs import GVK
from reconciler.documents import (
    Format,
    NodeForm,
    Schema,
    SchemaNode,
    builtin_schema,
    object_meta,
    schema_of_crd,
    schema_of_openapi,
)


def at(schema: Schema | None, *names: str) -> SchemaNode:
    """The node below fields and list items (`*`)."""
    assert schema is not None
    node: SchemaNode | None = schema.root
    for name in names:
        assert node is not None, names
        node = node.item if name == "*" else node.child(name)
    assert node is not None, names
    return node


def test_knows_the_lists_of_a_deployment() -> None:
    schema = builtin_schema(GVK("apps", "v1", "Deployment"))
    pod = ("spec", "template", "spec")
    assert at(schema, *pod, "containers").keys == ("name",)
    assert at(schema, *pod, "tolerations").is_atomic
    assert at(schema, "metadata", "finalizers").is_set
    assert at(schema, "spec", "selector").is_atomic
    assert not at(schema, *pod, "containers", "*").is_atomic
    assert at(schema, *pod, "containers", "*", "ports").keys == ("containerPort", "protocol")
    assert at(schema, *pod, "containers", "*", "ports", "*", "protocol").default == "TCP"
    assert at(schema, *pod, "containers", "*", "resources", "limits", "cpu").format is Format.QUANTITY
    assert at(schema, *pod, "hostNetwork").drops_zero
    assert not at(schema, *pod, "automountServiceAccountToken").drops_zero
    assert at(schema, *pod, "containers", "*", "resources").is_inline
    assert not at(schema, *pod, "securityContext").is_inline


def test_knows_scalars_that_are_spelled_in_many_ways() -> None:
    assert at(builtin_schema(GVK("", "v1", "Secret")), "data", "k").format is Format.BYTES
    assert at(builtin_schema(GVK("", "v1", "ResourceQuota")), "spec", "hard", "pods").format is Format.QUANTITY
    assert at(builtin_schema(GVK("coordination.k8s.io", "v1", "Lease")), "spec", "renewTime").format is Format.TIME


def test_a_definition_may_contain_itself() -> None:
    schema = builtin_schema(GVK("apiextensions.k8s.io", "v1", "CustomResourceDefinition"))
    props = ("spec", "versions", "*", "schema", "openAPIV3Schema")
    assert at(schema, *props, "not", "not", "not", "type").shape is NodeForm.SCALAR


def test_is_ignorant_of_other_kinds_and_versions() -> None:
    assert builtin_schema(GVK("apps", "v1beta1", "Deployment")) is None
    assert builtin_schema(GVK("example.com", "v1", "Deployment")) is None


PROPERTIES: dict[str, Any] = {
    "list": {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["b", "a"],
        "items": {"type": "object", "properties": {"a": {"type": "string", "default": "x"}, "b": {"type": "integer"}}},
    },
    "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
    "plain": {"type": "array", "items": {"type": "string"}},
    "atomic": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": {"type": "string"}},
    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    "cpu": {"x-kubernetes-int-or-string": True, "pattern": "^.*$"},
    "port": {"x-kubernetes-int-or-string": True},
    "maybe": {"type": "string", "nullable": True},
    "pod": {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
}
OPENAPI: dict[str, Any] = {"type": "object", "properties": {"spec": {"type": "object", "properties": PROPERTIES}}}


def check_custom(schema: Schema | None) -> None:
    """Check what both sources have to tell."""
    assert schema is not None
    assert schema.keeps_empty
    assert at(schema, "spec", "list").keys == ("b", "a")
    assert at(schema, "spec", "list", "*", "a").default == "x"
    assert at(schema, "spec", "list", "*", "b").default is MISSING
    assert at(schema, "spec", "set").is_set
    assert at(schema, "spec", "plain").is_atomic
    assert at(schema, "spec", "atomic").is_atomic
    assert at(schema, "spec", "free", "anything").shape is NodeForm.ANY
    assert at(schema, "spec", "cpu").format is Format.QUANTITY
    assert at(schema, "spec", "port").format is Format.PLAIN
    assert at(schema, "spec", "maybe").is_nullable
    assert at(schema, "spec", "pod", "metadata") is object_meta()
    assert at(schema, "metadata") is object_meta()
    assert at(schema, "spec").child("unknown") is None


def test_reads_a_custom_resource_definition_by_version() -> None:
    crd = {"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": OPENAPI}}, {"name": "v2"}]}}
    check_custom(schema_of_crd(crd, "v1"))
    assert schema_of_crd(crd, "v2") is None
    assert schema_of_crd(crd, "v3") is None
    assert schema_of_crd({}, "v1") is None


def test_reads_an_openapi_document_of_a_member() -> None:
    meta = {"allOf": [{"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}]}
    gvk = {"group": "example.com", "version": "v1", "kind": "Thing"}
    definition = {
        **OPENAPI,
        "properties": {**OPENAPI["properties"], "metadata": meta},
        "x-kubernetes-group-version-kind": [gvk],
    }
    document = {"components": {"schemas": {"com.example.v1.Thing": definition}}}
    check_custom(schema_of_openapi(document, GVK("example.com", "v1", "Thing")))
    assert schema_of_openapi(document, GVK("example.com", "v1", "Other")) is None
    assert schema_of_openapi({}, GVK("example.com", "v1", "Thing")) is None
