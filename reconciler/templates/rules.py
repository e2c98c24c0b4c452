"""Templates of documents, and faults that a careful reviewer refuses before any cluster sees them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Final

from reconciler.api.content import Content, Json, JsonObject, canonical_bytes, dig, with_value
from reconciler.api.fleet import Template
from reconciler.api.problem import Document, Problem, dotted
from reconciler.api.refs import GVK, Identity
from reconciler.documents import (
    DEFAULT_NAMESPACE,
    Findings,
    Schema,
    body_faults,
    builtin_schema,
    is_api_version,
    is_kind,
    is_namespaced,
    not_a_mapping,
    not_a_string,
    refused_kind,
    repeated_entries,
    surely_fits,
)
from reconciler.kinds.jobs import with_labels_of_its_pods
from reconciler.templates.field_values import check_field_values, has_field_rules
from reconciler.templates.hooks import check_hook
from reconciler.templates.metadata import (
    check_annotations,
    check_data,
    check_directives,
    check_foreign_marks,
    check_labels,
    check_name,
    check_namespace,
    check_server_fields,
    check_take_over,
)
from reconciler.templates.workloads import WORKLOADS, check_service, check_workload

MAX_OBJECT_BYTES: Final = 1_500_000
"""etcd takes 1.5 MiB a request; the API server adds fields of its own to ours."""

_BY_KIND: Final[Mapping[tuple[str, str], Callable[[JsonObject, Findings], None]]] = {
    ("", "ConfigMap"): partial(check_data, plain="data", encoded="binaryData"),
    ("", "Secret"): partial(check_data, plain="stringData", encoded="data"),
    ("", "Service"): check_service,
}

_LABELLED_AS_THEIR_PODS: Final = frozenset({("batch", "Job"), ("", "ReplicationController")})
"""Kinds that get the labels of their pod template from an API server if they have none."""


def read_template(document: Document) -> tuple[Template | None, tuple[Problem, ...]]:
    """Return the template of a document and every problem of it; None when one is an error.

    A built-in namespaced kind without metadata.namespace gets `default`, as with kubectl. The namespace of a kind that
    is not built in is taken as written; `assemble` corrects it when its definition is in the store.
    """
    findings = Findings(document)
    body = document.body
    gvk = _read_gvk(body, findings)
    metadata: Json = body.get("metadata")
    if metadata is None:
        message = "metadata is missing, or what belongs to it is not indented below it"
        findings.error("field-missing", message, "metadata")
    elif not isinstance(metadata, dict):
        findings.error("wrong-type", not_a_mapping(metadata), "metadata")
    if gvk is None or not isinstance(metadata, dict):
        return None, tuple(findings.problems)
    namespaced = is_namespaced(*gvk.group_kind)
    name = check_name(metadata, gvk.group_kind, findings)
    namespace = check_namespace(metadata, namespaced, findings)
    check_server_fields(body, metadata, findings)
    judge(gvk, body, findings)
    if gvk.group_kind in _LABELLED_AS_THEIR_PODS:
        body = with_labels_of_its_pods(body)
    if namespaced and not namespace:
        namespace = DEFAULT_NAMESPACE
        body = with_value(body, ("metadata", "namespace"), namespace)
    elif namespaced is False and "namespace" in metadata:
        body = without_namespace(body)
    # Writing every object as JSON only to count the bytes would be a tenth of the parse.
    if not document.is_small and (size := len(canonical_bytes(body))) > MAX_OBJECT_BYTES:
        message = f"{size:,} bytes as JSON, a cluster takes {MAX_OBJECT_BYTES:,}; split the object"
        findings.error("object-too-large", message)
    if findings.has_errors:
        return None, tuple(findings.problems)
    identity = Identity(gvk.group, gvk.kind, namespace, name)
    template = Template(gvk=gvk, identity=identity, content=Content(tree=body), source=document.source)
    return template, tuple(findings.problems)


def without_namespace(body: JsonObject) -> JsonObject:
    """Return a cluster-scoped object without metadata.namespace, which kubectl ignores."""
    metadata = {key: value for key, value in body["metadata"].items() if key != "namespace"}
    return with_value(body, ("metadata",), metadata)


def judge(gvk: GVK, body: JsonObject, findings: Findings, defined: Schema | None = None) -> None:
    """Report problems of an object, be it a template or the result of overrides, but for its identity.

    `defined`: the schema of the store's own definition of a custom kind.
    """
    metadata: JsonObject = dig(body, "metadata") or {}
    check_labels(metadata.get("labels"), findings, "metadata", "labels")
    check_annotations(metadata.get("annotations"), findings, "metadata", "annotations")
    check_take_over(metadata, findings)
    check_foreign_marks(metadata, findings)
    check_directives(gvk.kind, metadata, findings)
    check_hook(gvk.kind, body, findings)
    if gvk.group_kind in WORKLOADS:
        check_workload(body, gvk.group_kind, findings)
    elif (check := _BY_KIND.get(gvk.group_kind)) is not None:
        check(body, findings)
    check_field_values(body, gvk.group_kind, findings)
    check_schema(gvk, body, findings, defined)


def has_rules_of_its_own(group_kind: tuple[str, str]) -> bool:
    """Return whether the kind has more rules than its schema."""
    return group_kind in WORKLOADS or group_kind in _BY_KIND or has_field_rules(group_kind)


def _read_gvk(body: JsonObject, findings: Findings) -> GVK | None:
    api_version, kind = body.get("apiVersion"), body.get("kind")
    if api_version.__class__ is str and kind.__class__ is str and (gvk := _usual_gvk(api_version, kind)):
        return gvk
    api_version, kind = _required(body, "apiVersion", findings), _required(body, "kind", findings)
    if api_version and not is_api_version(api_version):
        message = f"{api_version[:80]!r} is no apiVersion; write v1, or GROUP/VERSION such as apps/v1"
        findings.error("api-version-illegal", message, "apiVersion")
        return None
    if kind and not is_kind(kind):
        findings.error("kind-illegal", f"{kind[:80]!r} is no kind; write it as in Deployment", "kind")
        return None
    if not api_version or not kind:
        return None
    if why := refused_kind(api_version, kind):
        findings.error("kind-refused", f"{kind} cannot be part of a store: {why}", "kind")
        return None
    return GVK.parse(api_version, kind)


@lru_cache(maxsize=1024)
def _usual_gvk(api_version: str, kind: str) -> GVK | None:
    """Return the type, if it has no problem: thousands of documents are of the same few."""
    is_usual = is_api_version(api_version) and is_kind(kind) and not refused_kind(api_version, kind)
    return GVK.parse(api_version, kind) if is_usual else None


def check_schema(gvk: GVK, body: JsonObject, findings: Findings, defined: Schema | None = None) -> None:
    """Report violations of a kind's schema, if no other problem has been reported there yet."""
    schema = defined or builtin_schema(gvk)
    if schema is None:
        return
    faults = repeated_entries(schema.root, body)
    if defined is not None or not surely_fits(gvk, body):
        faults += body_faults(schema.root, body)
    if not faults:
        return
    paths = {problem.path for problem in findings.problems}
    for steps, code, message in faults:
        places = [dotted(steps[:depth]) for depth in range(1, len(steps) + 1)]
        if paths.isdisjoint(places) and not any(path.startswith(places[-1]) for path in paths):
            findings.error(code, message, *steps)


def _required(body: JsonObject, field: str, findings: Findings) -> str:
    value: Json = body.get(field)
    if value is None or value == "":
        near = next(
            (f"; {key} is to be written so" for key in body if key != field and key.lower() == field.lower()), ""
        )
        findings.error("field-missing", f"{field} is missing{near}", field)
    elif isinstance(value, str):
        return value
    else:
        findings.error("wrong-type", not_a_string(value), field)
    return ""


def identities_in(body: JsonObject) -> frozenset[Identity]:
    """Return the identity in a document that cannot be used; empty if there is none.

    If the scope of the kind is unknown, both possible identities.
    """
    api_version, kind, metadata = body.get("apiVersion"), body.get("kind"), body.get("metadata")
    if not isinstance(api_version, str) or not isinstance(kind, str) or not isinstance(metadata, dict):
        return frozenset()
    name, namespace = metadata.get("name"), metadata.get("namespace")
    if not isinstance(name, str) or not name or not (namespace is None or isinstance(namespace, str)):
        return frozenset()
    gvk = GVK.parse(api_version, kind)
    namespaced = is_namespaced(*gvk.group_kind)
    if namespaced is False:
        return frozenset({Identity(gvk.group, gvk.kind, "", name)})
    places = {namespace} if namespace else {DEFAULT_NAMESPACE} if namespaced else {"", DEFAULT_NAMESPACE}
    if namespaced is None and namespace:
        places.add("")
    return frozenset(Identity(gvk.group, gvk.kind, place, name) for place in places)
