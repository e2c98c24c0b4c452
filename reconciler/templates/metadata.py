"""Names, labels and annotations of templates, data of ConfigMaps and Secrets, and marks of other tools.

They are checked as the API server would judge them, without ever repeating a value of a Secret.
"""

from __future__ import annotations

import difflib
import re
from base64 import b64decode
from binascii import Error as InvalidBase64
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from reconciler.api.content import Json, JsonObject
from reconciler.documents import (
    BRING,
    POLICY_ANNOTATIONS,
    Findings,
    is_dns_label,
    is_dns_subdomain,
    is_label_key,
    is_label_value,
    not_a_mapping,
    not_a_string,
    parse_brings,
)
from reconciler.kinds.body_fields import SERVER_METADATA
from reconciler.kinds.cluster_fields import fields_of_the_cluster
from reconciler.ownership import FOREIGN_TOOLS, TAKE_OVER, DirectiveEffect, directives_of, foreign_mark, is_directive
from reconciler.regex import regex

MAX_ANNOTATIONS_BYTES: Final = 262_144
_SHORT_BYTES: Final = 4096
"""Annotations up to here are not counted together: there would have to be dozens of them."""
RESERVED_PREFIX: Final = "fleet.reconciler/"
DOCUMENTED_ANNOTATIONS: Final = frozenset(
    RESERVED_PREFIX + name
    for name in (
        *("context", "alias", "replace", "take-over", "bring"),
        *("hook", "hook-weight", "hook-failure", "hook-delete", "wave"),
    )
)
"""Annotations of ours that people write into templates; other marks of ours are written by the reconciler alone."""

# Thousands of templates have the same few keys and values.
_is_key: Final = lru_cache(maxsize=8192)(is_label_key)
_is_value: Final = lru_cache(maxsize=8192)(is_label_value)
_DNS_1035: Final = regex(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?", re.ASCII)
_LABEL_NAMED: Final = frozenset({("", "Namespace")})
_DNS_1035_NAMED: Final = frozenset({("", "Service")})
_FREELY_NAMED: Final = frozenset({("networking.k8s.io", "IPAddress"), ("certificates.k8s.io", "ClusterTrustBundle")})
_FREELY_NAMED_GROUPS: Final = ("rbac.authorization.k8s.io", "openshift.io")

_MOST_TELLING: Final = ("uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
                        "deletionGracePeriodSeconds", "selfLink", "managedFields", "ownerReferences",
                        "finalizers")  # fmt: skip
"""The order in which fields of the API server are named."""


def check_name(metadata: JsonObject, group_kind: tuple[str, str], findings: Findings) -> str:
    """metadata.name, empty with an error when it is missing or not legal for the kind.

    Source: Kubernetes "Object Names and IDs".
    """
    name = metadata.get("name")
    if name is None or name == "":
        if metadata.get("generateName"):
            message = "generateName makes a new object each time; write metadata.name"
            findings.error("generate-name", message, "metadata", "generateName")
        else:
            findings.error("name-missing", "metadata.name is missing; every object of the store has a name", "metadata")
        return ""
    if not isinstance(name, str):
        findings.error("wrong-type", not_a_string(name), "metadata", "name")
        return ""
    rule = _broken_name_rule(name, group_kind)
    if rule:
        findings.error("name-illegal", f"{name[:80]!r} cannot name this kind: {rule}", "metadata", "name")
        return ""
    if "generateName" in metadata:
        message = "generateName has no effect: metadata.name names the object; take it out"
        findings.warning("field-without-effect", message, "metadata", "generateName")
    return name


def _broken_name_rule(name: str, group_kind: tuple[str, str]) -> str:
    if group_kind in _FREELY_NAMED or group_kind[0].endswith(_FREELY_NAMED_GROUPS):
        is_legal = name not in (".", "..") and "/" not in name and "%" not in name
        return "" if is_legal else "it must not be . or .. or hold / or %"
    if group_kind in _DNS_1035_NAMED:
        is_legal = _DNS_1035.fullmatch(name) is not None
        return "" if is_legal else "small letters, digits and dashes, beginning with a letter, at most 63"
    if group_kind in _LABEL_NAMED:
        return "" if is_dns_label(name) else "small letters, digits and dashes, at most 63"
    return "" if is_dns_subdomain(name) else "small letters, digits, dashes and dots, at most 253"


def check_namespace(metadata: JsonObject, namespaced: bool | None, findings: Findings) -> str:
    """The namespace of the object; empty when it has none, and with an error when it is not legal.

    That of a cluster-scoped object is dropped, as kubectl does.
    """
    namespace = metadata.get("namespace")
    if namespace is None or namespace == "":
        return ""
    if not isinstance(namespace, str):
        findings.error("wrong-type", not_a_string(namespace), "metadata", "namespace")
        return ""
    if namespaced is False:
        message = "this kind is cluster-scoped: metadata.namespace is ignored; take it out"
        findings.hint("namespace-on-cluster-kind", message, "metadata", "namespace")
        return ""
    if not is_dns_label(namespace):
        message = f"{namespace[:80]!r} cannot name a namespace: small letters, digits and dashes, at most 63"
        findings.error("namespace-illegal", message, "metadata", "namespace")
        return ""
    return namespace


def _are_usual(labels: dict[str, Json]) -> bool:
    for key, value in labels.items():  # noqa: SIM110  # A generator costs as much as the look.
        if value.__class__ is not str or not _is_usual_label(key, value):
            return False
    return True


@lru_cache(maxsize=8192)
def _is_usual_label(key: str, value: str) -> bool:
    return _is_key(key) and _is_value(value) and not key.startswith(RESERVED_PREFIX)


def may_be_refused(field: str, key: str, value: Json) -> bool:
    """Return whether an entry of `labels` or `annotations` may have a problem: then it is checked as a whole."""
    if not isinstance(value, str) or key.startswith(RESERVED_PREFIX) or is_directive(key):
        return True
    if field == "labels":
        return not _is_usual_label(key, value) or _is_mark(field, key, value)
    is_short = len(value) <= _SHORT_BYTES
    return not (is_short and _is_key(key.lower())) or _is_mark(field, key, value)


@lru_cache(maxsize=8192)
def _is_mark(field: str, key: str, value: str) -> bool:
    return foreign_mark({"metadata": {field: {key: value}}}) is not None


def check_labels(labels: Json, findings: Findings, *steps: str) -> None:
    """Report label keys and values that the API server refuses."""
    if labels is None or (labels.__class__ is dict and _are_usual(labels)):
        return
    for key, value in _entries(labels, findings, *steps):
        if not _is_key(key):
            findings.error("label-illegal", f"{key[:80]!r} cannot be a label key", *steps, key)
        elif not _is_value(value):
            rule = "at most 63 letters, digits, dashes, dots and underscores, beginning and ending alphanumerically"
            findings.error("label-illegal", f"not the value of a label: {rule}", *steps, key)
        elif key.startswith(RESERVED_PREFIX):
            findings.error("mark-reserved", f"only the reconciler writes the label {key}; take it out", *steps, key)


def check_annotations(annotations: Json, findings: Findings, *steps: str) -> None:
    """Report annotation keys, values and sizes that the API server refuses."""
    if annotations is None:
        return
    size = 0
    for key, value in _entries(annotations, findings, *steps):
        size += len(key) + _size(value)
        if not _is_key(key.lower()):
            findings.error("annotation-illegal", f"{key[:80]!r} cannot be an annotation key", *steps, key)
        elif key.startswith(RESERVED_PREFIX) and key not in DOCUMENTED_ANNOTATIONS:
            why = f"only the reconciler writes the annotation {key}; take it out"
            if key in POLICY_ANNOTATIONS:
                why = f"{key} belongs on a propagation policy and means nothing here; move it there"
            findings.error("mark-reserved", why, *steps, key)
        elif key == f"{RESERVED_PREFIX}replace" and value != "allowed":
            message = f"{key}: {value[:80]} has no effect: write allowed, or take it out"
            findings.warning("directive-unknown", message, *steps, key)
        elif key == BRING and (unknown := parse_brings(value)[1]):
            findings.error("bring-unknown", f"{BRING}: {unknown}", *steps, key)
    if size > MAX_ANNOTATIONS_BYTES:
        message = f"{size:,} bytes of annotations, Kubernetes takes {MAX_ANNOTATIONS_BYTES:,}"
        findings.error("annotations-too-large", message, *steps)


def _entries(mapping: Json, findings: Findings, *steps: str) -> list[tuple[str, str]]:
    """The entries whose values are strings; the others are errors."""
    if mapping is None:
        return []
    if not isinstance(mapping, dict):
        findings.error("wrong-type", not_a_mapping(mapping), *steps)
        return []
    entries = []
    for key, value in mapping.items():
        if isinstance(value, str):
            entries.append((key, value))
        else:
            findings.error("wrong-type", not_a_string(value), *steps, key)
    return entries


def check_server_fields(body: JsonObject, metadata: JsonObject, findings: Findings) -> None:
    """Warn once of fields that only an API server writes, and of each field of the cluster; rendering omits them."""
    # Set operations on the keys: nearly no template has any of them.
    written = sorted(metadata.keys() & SERVER_METADATA, key=_MOST_TELLING.index) if metadata else ()
    fields = [f"metadata.{name}" for name in written if metadata[name]]
    if body.get("status"):
        fields.append("status")
    if fields:
        steps = tuple(fields[0].split("."))
        message = f"left out, since only a live object has it: {', '.join(fields)}; take it out"
        findings.warning("server-field", message, *steps)
    for place, field in fields_of_the_cluster(body):
        if field.is_sent:
            message = f"sent as an export has it; {field.why}; take it out unless it is meant"
            findings.warning("exported-field", message, *place)
        else:
            findings.warning("server-field", f"left out, since {field.why}; take it out", *place)


_KEY: Final = regex(r"[-._a-zA-Z0-9]{1,253}", re.ASCII)
_MAX_BYTES: Final = 2**20
"""Kubernetes: MaxSecretSize, and the same for ConfigMaps."""


def check_data(body: JsonObject, findings: Findings, *, plain: str, encoded: str) -> None:
    """Source: Kubernetes validation of ConfigMap and Secret; stringData of a Secret replaces data of the same key."""
    size = sum(map(_size, _texts_of(body, plain, findings).values()))
    for key, value in _texts_of(body, encoded, findings).items():
        try:
            # Go's decoder, which the API server uses, passes over line ends.
            size += len(b64decode(value.replace("\n", "").replace("\r", ""), validate=True))
        except (InvalidBase64, ValueError):
            tip = ", or write it under stringData" if encoded == "data" else ""
            findings.error("base64-invalid", f"the value is not base64; encode it{tip}", encoded, key)
    texts, binary = body.get(plain), body.get(encoded)
    if plain == "data" and isinstance(texts, dict) and isinstance(binary, Mapping):
        for key in sorted(texts.keys() & binary.keys()):
            findings.error("duplicate-key", "the key is in data and in binaryData", encoded, key)
    if size > _MAX_BYTES:
        findings.error("object-too-large", f"{size:,} bytes of data, Kubernetes takes {_MAX_BYTES:,}")


def _texts_of(body: JsonObject, field: str, findings: Findings) -> dict[str, str]:
    """The entries of a field that are strings; the others are errors, and so are illegal keys.

    A null of a ConfigMap is the empty text that an API server stores.
    """
    entries = body.get(field)
    for key in entries if isinstance(entries, dict) else ():
        if not _KEY.fullmatch(key) or key in (".", ".."):
            findings.error("data-key-illegal", "a key holds letters, digits, dashes, dots and underscores", field, key)
    if field == "data" and body.get("kind") == "ConfigMap" and isinstance(entries, dict):
        entries = {key: value for key, value in entries.items() if value is not None}
    return dict(_entries(entries, findings, field))


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


_BY_LETTERS: Final = {re.sub(r"[^a-z0-9]", "", tool.lower()): tool for tool in FOREIGN_TOOLS}
_OBJECT: Final = regex(r"[A-Z][A-Za-z0-9]* \S+", re.ASCII)
"""Kind and name of an object that controls another, as in `object-of-another-tool`."""


def check_take_over(metadata: JsonObject, findings: Findings) -> None:
    """Warn of a name to take over from that is no tool's; names of other fleets and of objects are not known here."""
    annotations = metadata.get("annotations")
    if not isinstance(annotations, dict) or TAKE_OVER not in annotations:
        return
    name = annotations[TAKE_OVER]
    if not isinstance(name, str) or name in FOREIGN_TOOLS:
        return
    close = difflib.get_close_matches(re.sub(r"[^a-z0-9]", "", name.lower()), _BY_LETTERS, n=1, cutoff=0.8)
    if close:
        hint = f"did you mean {_BY_LETTERS[close[0]]}?"
    elif is_dns_subdomain(name) or _OBJECT.fullmatch(name):
        return
    else:
        hint = f"known are {', '.join(FOREIGN_TOOLS)}, other fleets by their name, and objects by kind and name"
    findings.warning(
        "take-over-unknown", f"{name[:80]!r} is no tool that is known; {hint}", "metadata", "annotations", TAKE_OVER
    )


def check_foreign_marks(metadata: JsonObject, findings: Findings) -> None:
    """Warn of a label or annotation by which another tool would hold the objects of the template for its own."""
    entries = {place: metadata.get(place) for place in ("labels", "annotations")}
    mark = foreign_mark({"metadata": {place: each for place, each in entries.items() if isinstance(each, dict)}})
    if mark is None or mark.is_stated:
        return
    message = f"{mark.tool} knows by {mark} what it holds, and may delete the object; take it out"
    findings.warning("template-of-another-tool", message, "metadata", mark.place.value, mark.key)


def check_directives(kind: str, metadata: JsonObject, findings: Findings) -> None:
    """Name what an object says to another tool and nothing here does. Source: design#directives."""
    for directive in directives_of(metadata):
        says = f"{kind} {metadata.get('name')} says {directive}"
        steps = ("metadata", directive.place.value, directive.key)
        match directive.effect:
            case DirectiveEffect.UNKNOWN | DirectiveEffect.DROPPED:
                code = "directive-unknown" if directive.effect is DirectiveEffect.UNKNOWN else "directive-dropped"
                findings.warning(code, f"{says}, which has no effect: {directive.here}", *steps)
            case DirectiveEffect.REFUSED | DirectiveEffect.HOOK | DirectiveEffect.LEFT_OUT:
                findings.error("directive-refused", f"{says}: {directive.here}", *steps)
