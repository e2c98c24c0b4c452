"""Names, labels, metadata and durations as Kubernetes accepts them."""

from __future__ import annotations

import re
from datetime import datetime
from fractions import Fraction
from functools import lru_cache

from reconciler.api.content import Json
from reconciler.api.policies import Flavor
from reconciler.api.refs import PolicyRef
from reconciler.documents.document_kinds import FLAVORS
from reconciler.documents.field_reader import Fields, type_name
from reconciler.regex import regex

DNS_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
QUALIFIED = "[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"
_DNS_LABEL = regex(DNS_LABEL)
_QUALIFIED = regex(QUALIFIED)
_KIND = regex(r"[A-Za-z]([-A-Za-z0-9]{0,61}[A-Za-z0-9])?", re.ASCII)
_BAD_TILDE = regex(r"~(?![01])")


def is_dns_label(text: str) -> bool:
    """Return whether it may name a namespace: at most 63 lower-case letters, digits and dashes (RFC 1123)."""
    return len(text) <= 63 and _DNS_LABEL.fullmatch(text) is not None


def is_dns_subdomain(text: str) -> bool:
    """Return whether it may name an object: DNS labels joined by dots, at most 253 characters."""
    return len(text) <= 253 and all(_DNS_LABEL.fullmatch(part) for part in text.split("."))


@lru_cache(maxsize=1024)
def is_api_version(text: str) -> bool:
    """Return whether it is a version, or a group and a version.

    >>> is_api_version("v1"), is_api_version("apps/v1"), is_api_version("a/b/c"), is_api_version("/v1")
    (True, True, False, False)
    """
    group, slash, version = text.partition("/")
    return is_dns_label(version) and is_dns_subdomain(group) if slash else is_dns_label(text)


def is_kind(text: str) -> bool:
    """Return whether it may name a kind.

    >>> is_kind("Deployment"), is_kind("My Kind")
    (True, False)
    """
    return _KIND.fullmatch(text) is not None


def is_label_value(text: str) -> bool:
    """Return whether it may be a label's value: empty, or at most 63 characters with alphanumeric ends."""
    return not text or (len(text) <= 63 and _QUALIFIED.fullmatch(text) is not None)


def is_label_key(text: str) -> bool:
    """Return whether it may be the key of a label or an annotation: `[prefix/]name`.

    >>> is_label_key("app.kubernetes.io/name"), is_label_key("a b")
    (True, False)
    """
    prefix, slash, name = text.rpartition("/")
    if slash and not is_dns_subdomain(prefix):
        return False
    return bool(name) and is_label_value(name)


def is_json_pointer(text: str) -> bool:
    """Return whether it is an RFC 6901 pointer to something inside a document: it begins with a slash."""
    # A repeated group of a regular expression would take 300 bytes a step.
    return text.startswith("/") and _BAD_TILDE.search(text) is None


DEFAULT_NAMESPACE = "default"
"""The namespace of a namespaced object without metadata.namespace, as for kubectl."""


def read_flavor(document: Fields) -> Flavor | None:
    """The dialect of a policy, None with an error when its API version is not known."""
    api_version = document.text("apiVersion")
    flavor = FLAVORS.get(api_version)
    if flavor is None and api_version:
        known = ", ".join(FLAVORS)
        document.report.error("api-version-unknown", f"{api_version} is not known; write one of: {known}", "apiVersion")
    return flavor


def read_ref(document: Fields) -> PolicyRef | None:
    """The name of a policy, None with errors when it has no legal one.

    Source: "PropagationPolicy and OverridePolicy", namespace and name. A namespaced policy without a namespace is in
    `default`.
    """
    metadata = document.child("metadata")
    kind = document.text("kind")
    if metadata is None:
        return None
    name = read_name(metadata)
    if kind.startswith("Cluster"):
        if metadata.has("namespace"):
            message = f"a {kind} has no namespace; take it out, or write a {kind.removeprefix('Cluster')}"
            metadata.error("namespace-on-cluster-policy", message, "namespace")
        return PolicyRef(kind, "", name) if name else None
    namespace = read_namespace(metadata)
    return PolicyRef(kind, namespace, name) if name and namespace else None


def read_namespace(metadata: Fields) -> str:
    """metadata.namespace, `default` when it is missing, and empty with an error when it is not legal."""
    namespace = metadata.text("namespace") or DEFAULT_NAMESPACE
    if is_dns_label(namespace):
        return namespace
    message = f"{namespace!r} cannot name a namespace: small letters, digits and dashes, at most 63"
    metadata.error("name-illegal", message, "namespace")
    return ""


def read_name(metadata: Fields) -> str:
    """metadata.name, empty with an error when it is missing or not legal."""
    name = metadata.text("name")
    if not metadata.has("name"):
        return ""  # reported as a missing field
    if not is_dns_subdomain(name):
        message = f"{name!r} cannot name an object: small letters, digits, dashes and dots, at most 253"
        metadata.error("name-illegal", message, "name")
        return ""
    return name


def not_a_mapping(value: Json) -> str:
    """Return the message about a value that must be a mapping."""
    # YAML takes `name:web` for a text.
    is_joined = isinstance(value, str) and ":" in value and ": " not in value
    tip = "write a space after the colon" if is_joined else "write its fields below it, indented, as key: value"
    return f"{type_name(value)} where a mapping is needed; {tip}"


def not_a_string(value: Json) -> str:
    """Return the message about a value that must be a string."""
    tip = "quote it" if isinstance(value, bool | int | float) else "write one text, without brackets and dashes"
    tip = 'write "" for an empty text, or take it out' if value is None else tip
    return f"{type_name(value)} where a string is needed; {tip}"


_DURATION = regex(r"(\d+(?:\.\d+)?(?:ns|us|µs|ms|s|m|h))+")
_DURATION_PART = regex(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)")
_RFC3339 = regex(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:\d\d)")
_UNIT_S = {
    "ns": Fraction(1, 10**9), "us": Fraction(1, 10**6), "µs": Fraction(1, 10**6), "ms": Fraction(1, 1000),
    "s": Fraction(1), "m": Fraction(60), "h": Fraction(3600),
}  # fmt: skip


def read_seconds(fields: Fields, name: str, default: int, *, least: int) -> int:
    """Return a duration in whole seconds; the default if missing, and with an error if invalid."""
    if not fields.has(name):
        return default
    text = fields.text(name)
    seconds = parse_duration(text)
    if seconds is None:
        message = f"{text!r} is no duration in whole seconds; write it as 30s, 2m or 1h30m"
        fields.error("duration-illegal", message, name)
        return default
    if seconds < least:
        fields.error("duration-illegal", f"{name} is at least {least}s, not {text}", name)
    return seconds


def read_moment(fields: Fields, name: str) -> str:
    """Return a moment (RFC 3339), empty if missing; with an error if invalid."""
    text = fields.text(name)
    try:
        # The form may be right, and the day or the hour not exist.
        is_time = _RFC3339.fullmatch(text) is not None and bool(datetime.fromisoformat(text))
    except ValueError:
        is_time = False
    if fields.has(name) and not is_time:
        fields.error("time-illegal", f"{text!r} is no time; write one as 2026-11-21T10:00:00Z", name)
    return text


def parse_duration(text: str) -> int | None:
    """A Kubernetes duration in whole seconds, None when it is malformed or has a fraction of a second.

    >>> parse_duration("1h30m"), parse_duration("500ms"), parse_duration("1.5m"), parse_duration("90")
    (5400, None, 90, None)
    """
    if len(text) > 64 or not _DURATION.fullmatch(text):
        return 0 if text == "0" else None
    total = sum((Fraction(number) * _UNIT_S[unit] for number, unit in _DURATION_PART.findall(text)), Fraction(0))
    return int(total) if total.denominator == 1 else None
