"""Resource selectors and label selectors of policies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Final, TypeVar

from reconciler.api.content import Json, dig
from reconciler.api.policies import Flavor, LabelRequirement, LabelSelector, Operator, ResourceSelector
from reconciler.api.problem import Document, Problem
from reconciler.api.refs import PolicyRef
from reconciler.documents import (
    DEFAULT_NAMESPACE,
    LABEL_SELECTOR_SHAPE,
    Fields,
    Findings,
    Shape,
    document_fields,
    is_label_key,
    is_label_value,
    read_flavor,
    read_ref,
    type_fault,
    types_meant,
)

Policy = TypeVar("Policy")

_PARTS: Final = ("apiVersion", "kind", "namespace", "name", "labelSelector")


def parse_policy(
    document: Document, fields_of: Shape, read: Callable[[Fields, Fields, PolicyRef, Flavor], Policy]
) -> tuple[Policy | None, tuple[Problem, ...]]:
    """Return the policy of a document, None when a problem is an error, and its problems in the order of the file.

    `read`: document, spec, reference and dialect to the policy.
    """
    fields = document_fields(document, fields_of)
    flavor, ref, spec = read_flavor(fields), read_ref(fields), fields.child("spec")
    # With a broken name or group the spec is read all the same, so that all errors come at once.
    shown = ref or PolicyRef(fields.text("kind"), "", "")
    policy = read(fields, spec, shown, flavor or Flavor.ACK) if spec is not None else None
    return fields.result(policy)


def read_selectors(spec: Fields, ref: PolicyRef, flavor: Flavor) -> tuple[ResourceSelector, ...]:
    """The resource selectors in order, each with its namespace filled in for a namespaced policy.

    Source: "resourceSelector parameters"; Karmada: the defaults and checks of its webhook.
    """
    return tuple(_selector(fields, ref, flavor) for fields in spec.children("resourceSelectors"))


def _selector(fields: Fields, ref: PolicyRef, flavor: Flavor) -> ResourceSelector:
    namespace, name, kind = fields.text("namespace"), fields.text("name"), fields.text("kind")
    if ref.namespace and namespace and namespace != ref.namespace:
        # The page: other values take no effect; Karmada: refused.
        message = (
            f"{ref.kind} {ref.name} reaches only its own namespace {ref.namespace}, so a selector for {namespace} "
            f"selects nothing; move it to a policy in {namespace}, or write a Cluster{ref.kind}"
        )
        tell = fields.warning if flavor.is_ack else fields.error
        tell("selector-namespace-elsewhere", message, "namespace")
    api_version = fields.text("apiVersion")
    fault = type_fault(api_version, kind) if api_version and kind else None
    if fault is not None:
        fields.error(fault.code, fault.message, fault.field)
    labels = fields.child("labelSelector")
    return ResourceSelector(
        api_version=api_version,
        kind=kind,
        namespace=namespace or ref.namespace,
        name=name,
        labels=read_label_selector(labels) if labels else None,
        source=fields.source(),
    )


def read_label_selector(fields: Fields) -> LabelSelector:
    """A label selector; matchLabels entries become In with one value. Illegal keys and values are errors."""
    requirements = []
    for key, value in fields.text_map("matchLabels").items():
        _check_label(fields, key, (value,), *fields.path("matchLabels", key))
        requirements.append(LabelRequirement(key=key, operator=Operator.IN, values=frozenset({value})))
    found = map(_requirement, fields.children("matchExpressions"))
    requirements += [requirement for requirement in found if requirement is not None]
    return LabelSelector(requirements=tuple(requirements))


def _requirement(fields: Fields) -> LabelRequirement | None:
    key, operator, values = fields.text("key"), fields.text("operator"), fields.texts("values")
    if not operator or not fields.has("key"):
        return None  # reported as a missing field or an unknown value
    _check_label(fields, key, values, *fields.path("key"))
    takes_values = operator in (Operator.IN, Operator.NOT_IN)
    if takes_values and not values:
        fields.error("label-selector-invalid", f"{operator} needs at least one value", "values")
    if not takes_values and values:
        fields.error("label-selector-invalid", f"{operator} takes no values; take them out, or write In", "values")
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
    if not isinstance(entries, list | tuple) or not entries:
        return None
    if not all(isinstance(entry, Mapping) and any(entry.get(part) for part in _PARTS) for entry in entries):
        return None
    return tuple(chain.from_iterable(_widened(document, index, entry) for index, entry in enumerate(entries)))


def _widened(document: Document, index: int, entry: Json) -> Iterator[ResourceSelector]:
    of_policy, own = document.body.get("kind"), dig(document.body, "metadata", "namespace")
    if not isinstance(of_policy, str) or of_policy.startswith("Cluster"):
        own = ""
    elif own is None:
        own = DEFAULT_NAMESPACE
    namespace, name, selector = dig(entry, "namespace"), dig(entry, "name"), dig(entry, "labelSelector")
    labels = None
    if isinstance(selector, Mapping):
        report = Findings(document, LABEL_SELECTOR_SHAPE)
        labels = read_label_selector(Fields(report, LABEL_SELECTOR_SHAPE, selector))
        labels = None if report.has_errors else labels
    for api_version, kind in sorted(types_meant(dig(entry, "apiVersion"), dig(entry, "kind"))):
        yield ResourceSelector(
            api_version=api_version,
            kind=kind,
            namespace=next((each for each in (own, namespace) if isinstance(each, str) and each), ""),
            name=name if isinstance(name, str) else "",
            labels=labels,
            source=document.at("spec", "resourceSelectors", index),
        )
