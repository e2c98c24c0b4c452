"""Kubernetes' rules for names, types, label keys, label values and JSON pointers."""

from __future__ import annotations

import re
from functools import lru_cache

from reconciler.regex import regex

_DNS_LABEL = regex(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_QUALIFIED = regex(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
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
