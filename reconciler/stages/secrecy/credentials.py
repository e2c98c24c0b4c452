"""Detection of credentials in a text or document: output redacts them, caches omit them."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Final

from reconciler.model.tree import Json
from reconciler.regex import regex
from reconciler.stages.secrecy.forms import (
    BASE64_JSON,
    BASE64_PEM,
    BEARER,
    JWT,
    KIND_MARK,
    KUBECONFIG_KIND,
    LOWER_MARKS,
    MARKS,
    NAMED_KEY,
    PRIVATE_KEY,
    REGISTRY_LOGIN,
    SECRET_MANIFEST,
    SIGNATURE,
    TOKENS,
    URL_MARK,
    USERINFO,
    is_secret_kind,
)

_ACCOUNT_MAX: Final = 16
"""`ssh://git@host` names an account: a token is longer, a password comes after a colon."""
_ONE_ALPHABET: Final = str.maketrans("-_", "+/")
_PLAIN: Final = (PRIVATE_KEY, JWT, SIGNATURE, TOKENS, NAMED_KEY, BEARER)
_KIND: Final = regex(rb"[\"']?kind[\"']?[ \t]*:[\s\[\"']{0,20}([A-Za-z]{4,12})", re.IGNORECASE)


def has_credential(text: str) -> bool:
    """Return whether anything in a text has the form of a credential."""
    return (
        is_file_of_secrets(text)
        or ("://" in text and "@" in text and any(is_password(found) for found in USERINFO.finditer(text)))
        or any(form.search(text) for form in _PLAIN)
        or any(is_private_key(found[0]) for found in BASE64_PEM.finditer(text))
        or any(has_credential(base64_text(found[0])) for found in BASE64_JSON.finditer(text))
    )


def is_file_of_secrets(text: str) -> bool:
    """Return whether a text is a file that is secret as a whole: a Secret, a kubeconfig, credentials for registries."""
    is_kubeconfig = "Config" in text and "users" in text and KUBECONFIG_KIND.search(text) is not None
    is_login = "auths" in text and REGISTRY_LOGIN.search(text) is not None
    return is_kubeconfig or is_login or SECRET_MANIFEST.search(text) is not None


def is_password(found: re.Match[str]) -> bool:
    """Return whether the userinfo of a URL, as USERINFO finds it, is more than an account's name."""
    userinfo = found[1] or found[2]
    return ":" in userinfo or len(userinfo) >= _ACCOUNT_MAX


def is_private_key(text: str) -> bool:
    """Return whether base64 that begins like PEM is a private key; a cut-off one counts as one."""
    try:
        return b"PRIVATE KEY" in base64.b64decode(text[:64])
    except binascii.Error:
        return True


def base64_text(text: str) -> str:
    """Return decoded base64 of either alphabet; an incomplete group is left out."""
    whole = text.partition("=")[0].translate(_ONE_ALPHABET)
    return base64.b64decode(whole[: len(whole) // 4 * 4]).decode(errors="replace")


def may_hold_credentials(data: bytes) -> bool:
    """A quick search through a document as JSON or YAML, or another form that keeps texts; False: it has none."""
    if any(mark in data for mark in MARKS):
        return True
    lower = data.lower()
    if any(mark in lower for mark in LOWER_MARKS):
        return True
    is_url = b"://" in data and b"@" in data and URL_MARK.search(data) is not None
    return is_url or KIND_MARK.search(data) is not None


def holds_credential(value: Json) -> bool:
    """Return whether any text of a document, names of members among them, holds a credential."""
    if isinstance(value, str):
        return has_credential(value)
    if isinstance(value, Mapping):
        return any(has_credential(name) or holds_credential(below) for name, below in value.items())
    return isinstance(value, list | tuple) and any(map(holds_credential, value))


def names_secrets(data: bytes) -> bool:
    """Return whether a file names a kind that is like a Secret anywhere, misspelt or not."""
    return any(is_secret_kind(found[1].decode()) for found in _KIND.finditer(data))
