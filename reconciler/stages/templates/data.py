"""ConfigMaps and Secrets: keys, strings and base64, without ever repeating a value."""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as InvalidBase64
from collections.abc import Iterator, Mapping
from typing import Final

from reconciler.model.tree import JsonObject
from reconciler.regex import regex
from reconciler.stages.documents import Findings, not_a_string, type_name

_KEY: Final = regex(r"[-._a-zA-Z0-9]{1,253}", re.ASCII)
_MAX_BYTES: Final = 2**20
"""Kubernetes: MaxSecretSize, and the same for ConfigMaps."""


def check_config_map(body: JsonObject, findings: Findings) -> None:
    """Source: Kubernetes validation of ConfigMap."""
    size = sum(_size(value) for _, value in _strings(body, "data", findings))
    size += sum(
        _decoded_size(key, value, "binaryData", findings) for key, value in _strings(body, "binaryData", findings)
    )
    data, binary = body.get("data"), body.get("binaryData")
    if isinstance(data, dict) and isinstance(binary, Mapping):
        for key in sorted(data.keys() & binary.keys()):
            findings.error("duplicate-key", "the key is in data and in binaryData", "binaryData", key)
    _check_size(size, findings)


def check_secret(body: JsonObject, findings: Findings) -> None:
    """Source: Kubernetes validation of Secret; stringData replaces data of the same key."""
    size = sum(_decoded_size(key, value, "data", findings) for key, value in _strings(body, "data", findings))
    size += sum(_size(value) for _, value in _strings(body, "stringData", findings))
    _check_size(size, findings)


def _strings(body: JsonObject, field: str, findings: Findings) -> Iterator[tuple[str, str]]:
    """The entries of a field that are strings under legal keys; the others are errors."""
    entries = body.get(field)
    if entries is None:
        return
    if not isinstance(entries, dict):
        findings.error("wrong-type", f"{type_name(entries)} where a mapping is needed", field)
        return
    for key, value in entries.items():
        if not _KEY.fullmatch(key) or key in (".", ".."):
            findings.error("data-key-illegal", "a key holds letters, digits, dashes, dots and underscores", field, key)
        if isinstance(value, str):
            yield key, value
        else:
            findings.error("wrong-type", not_a_string(value), field, key)


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _decoded_size(key: str, value: str, field: str, findings: Findings) -> int:
    try:
        # Go's decoder, which the API server uses, passes over line ends.
        return len(b64decode(value.replace("\n", "").replace("\r", ""), validate=True))
    except (InvalidBase64, ValueError):
        message = f"the value is not base64; encode it{', or write it under stringData' if field == 'data' else ''}"
        findings.error("base64-invalid", message, field, key)
        return 0


def _check_size(size: int, findings: Findings) -> None:
    if size > _MAX_BYTES:
        findings.error("object-too-large", f"{size:,} bytes of data, Kubernetes takes {_MAX_BYTES:,}")
