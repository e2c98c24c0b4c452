"""Resource selectors and label selectors of policies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Final

from reconciler.api.content import Json, JsonObject, dig
from reconciler.api.policies import Flavor, LabelRequirement, LabelSelector, Operator, ResourceSelector
from reconciler.api.problem import Document
from reconciler.api.refs import PolicyRef
from reconciler.documents import (
    DEFAULT_NAMESPACE,
    LABEL_SELECTOR_SHAPE,
    Fields,
    Report,
    is_label_key,
    is_label_value,
    is_system_namespace,
    type_fault,
    types_meant,
)

_PARTS: Final = ("apiVersion", "kind", "namespace", "name", "labelSelector")


def read_selectors(spec: Fields, ref: PolicyRef, flavor: Flavor) -> tuple[ResourceSelector, ...]:
    """The resource selectors in order, each with its namespace filled in for a namespaced policy.

    Source: "resourceSelector parameters"; Karmada: the defaults and checks of its webhook.
    """
    return tuple(_selector(fields, ref, flavor) for fields in spec.children("resourceSelectors"))


def _selector(fields: Fields, ref: PolicyRef, flavor: Flavor) -> ResourceSelector:
    namespace, name, kind = fields.text("namespace"), fields.text("name"), fields.text("kind")
    system = namespace if is_system_namespace(namespace) else ""
    if kind == "Namespace" and fields.text("apiVersion") == "v1" and is_system_namespace(name):
        system = name
    if system:
        message = f"nothing is distributed in the system namespace {system}; take this selector out"
        fields.report.error("system-namespace", message, *fields.path("name" if system == name else "namespace"))
    elif ref.namespace and namespace and namespace != ref.namespace:
        _elsewhere(fields, ref, flavor, namespace)
    api_version = fields.text("apiVersion")
    fault = type_fault(api_version, kind) if api_version and kind else None
    if fault is not None:
        fields.report.error(fault.code, fault.message, *fields.path(fault.field))
    labels = fields.child("labelSelector")
    return ResourceSelector(
        api_version=api_version,
        kind=kind,
        namespace=namespace or ref.namespace,
        name=name,
        labels=read_label_selector(labels) if labels else None,
        source=fields.source(),
    )


def _elsewhere(fields: Fields, ref: PolicyRef, flavor: Flavor, namespace: str) -> None:
    """A namespaced policy reaches only its own namespace. The page: other values take no effect; Karmada: refused."""
    message = (
        f"{ref.kind} {ref.name} reaches only its own namespace {ref.namespace}, so a selector for {namespace} selects "
        f"nothing; move it to a policy in {namespace}, or write a Cluster{ref.kind}"
    )
    if flavor.is_ack:
        fields.report.warning("selector-namespace-elsewhere", message, *fields.path("namespace"))
    else:
        fields.report.error("selector-namespace-elsewhere", message, *fields.path("namespace"))


def read_label_selector(fields: Fields) -> LabelSelector:
    """A label selector; matchLabels entries become In with one value. Illegal keys and values are errors."""
    requirements = []
    for key, value in fields.text_map("matchLabels").items():
        _check_label(fields, key, (value,), *fields.path("matchLabels", key))
        requirements.append(LabelRequirement(key=key, operator=Operator.IN, values=frozenset({value})))
    for expression in fields.children("matchExpressions"):
        requirement = _requirement(expression)
        if requirement is not None:
            requirements.append(requirement)
    return LabelSelector(requirements=tuple(requirements))


def _requirement(fields: Fields) -> LabelRequirement | None:
    key, operator, values = fields.text("key"), fields.text("operator"), fields.texts("values")
    if not operator or not fields.has("key"):
        return None  # reported as a missing field or an unknown value
    _check_label(fields, key, values, *fields.path("key"))
    takes_values = operator in (Operator.IN, Operator.NOT_IN)
    if takes_values and not values:
        fields.report.error("label-selector-invalid", f"{operator} needs at least one value", *fields.path("values"))
    if not takes_values and values:
        message = f"{operator} takes no values; take them out, or write In"
        fields.report.error("label-selector-invalid", message, *fields.path("values"))
    return LabelRequirement(key=key, operator=Operator(operator), values=frozenset(values))


def _check_label(fields: Fields, key: str, values: tuple[str, ...], *steps: str | int) -> None:
    if not is_label_key(key):
        fields.report.error("label-selector-invalid", f"{key!r} cannot be a label key", *steps)
    for value in values:
        if not is_label_value(value):
            fields.report.error("label-selector-invalid", f"{value!r} cannot be the value of a label", *steps)


def readable_selectors(document: Document) -> tuple[ResourceSelector, ...] | None:
    """Return the selectors that a broken policy may have, never narrower than the mended ones; None if unknown.

    An unreadable part of a selector is left out, which widens it: without a kind it means any kind, and a misspelt or
    removed type means its probable one. Never empty: a policy with missing or empty resourceSelectors may have meant
    anything.
    """
    given = dig(document.body, "spec", "resourceSelectors")
    entries = [given] if isinstance(given, Mapping) else given
    if not isinstance(entries, list | tuple) or not entries or not all(map(_says_something, entries)):
        return None
    return tuple(chain.from_iterable(_widened(document, index, entry) for index, entry in enumerate(entries)))


def _says_something(entry: Json) -> bool:
    return isinstance(entry, Mapping) and any(entry.get(part) for part in _PARTS)


def _widened(document: Document, index: int, entry: Json) -> Iterator[ResourceSelector]:
    own = _own_namespace(document.body)
    namespace, name = dig(entry, "namespace"), dig(entry, "name")
    for api_version, kind in sorted(types_meant(dig(entry, "apiVersion"), dig(entry, "kind"))):
        yield ResourceSelector(
            api_version=api_version,
            kind=kind,
            namespace=own or (namespace if isinstance(namespace, str) else ""),
            name=name if isinstance(name, str) else "",
            labels=_readable_labels(document, dig(entry, "labelSelector")),
            source=document.at("spec", "resourceSelectors", index),
        )


def _own_namespace(body: JsonObject) -> str:
    """Return the one namespace of a namespaced policy, empty for a cluster policy or if unknown."""
    kind, namespace = body.get("kind"), dig(body, "metadata", "namespace")
    if not isinstance(kind, str) or kind.startswith("Cluster"):
        return ""
    if namespace is None:
        return DEFAULT_NAMESPACE
    return namespace if isinstance(namespace, str) else ""


def _readable_labels(document: Document, selector: Json) -> LabelSelector | None:
    if not isinstance(selector, Mapping):
        return None
    report = Report(document, LABEL_SELECTOR_SHAPE)
    labels = read_label_selector(Fields(report, LABEL_SELECTOR_SHAPE, selector))
    return None if report.has_errors else labels
