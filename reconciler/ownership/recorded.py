"""A manifest as the journal may keep it: Secret values become keyed hashes.

Equal values give equal hashes under one key, so that a later comparison finds changes; without the key nobody can try
words against them. Source: design#secrets: the journal keeps field paths and keyed hashes.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Iterable, Mapping

from reconciler.api.content import Json, JsonObject, Step, canonical_bytes, dig, with_leaf, with_value, without
from reconciler.api.refs import Identity
from reconciler.regex import regex

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""An annotation that holds a whole manifest, Secret values included."""

_OPEN = frozenset({"apiVersion", "kind", "metadata", "type", "immutable", "data", "stringData"})
"""Members of a Secret that hold no value, or are hashed one by one."""

_HASH_MARK = b'"hmac:'
_HASH_FORM = regex(r"hmac:[0-9a-f]{64}")


def recorded_form(body: JsonObject, key: bytes) -> JsonObject:
    """Return the manifest without any Secret value; itself if there is none to hide.

    A Secret's `stringData` is folded into `data`, where every value becomes `hmac:<64 hex>` over the decoded bytes.
    Applied to its own result it changes nothing: a hash is not base64, so it cannot be mistaken for a value.
    """
    if body.get("kind") == "Secret" and body.get("apiVersion") == "v1":
        body = _hashed_secret(body, key)
    last_applied = dig(body, "metadata", "annotations", LAST_APPLIED)
    if last_applied is None or _is_hash(last_applied):
        return body
    return with_value(body, ("metadata", "annotations", LAST_APPLIED), keyed_hash(_bytes_of(last_applied), key))


def hashed_leaves(body: JsonObject, leaves: Iterable[tuple[Step, ...]], key: bytes) -> JsonObject:
    """The body with keyed hashes in place of values that were decrypted; those of a Secret, `recorded_form` hashes."""
    is_secret = body.get("kind") == "Secret" and body.get("apiVersion") == "v1"
    for steps in leaves:
        if not (is_secret and steps[0] in ("data", "stringData")):
            body = with_leaf(body, steps, lambda value: _hashed(value, key))
    return body


def holds_hashes(recorded: JsonObject | None) -> bool:
    """Return whether anything of a recorded manifest was secret."""
    return recorded is not None and _HASH_MARK in canonical_bytes(recorded)


def keyed_hash(value: bytes, key: bytes) -> str:
    """HMAC-SHA256 of the bytes as `hmac:<64 hex>`."""
    return "hmac:" + hmac.new(key, value, hashlib.sha256).hexdigest()


def recorded_digest(digest: str, identity: Identity, key: bytes) -> str:
    """A manifest's digest as the journal may keep it: a Secret's is keyed, or its values could be guessed by it."""
    return keyed_hash(digest.encode(), key) if identity[:2] == ("", "Secret") else digest


def decoded(value: Json) -> bytes:
    """Return the decoded bytes of a Secret's `data` value; the text itself if it is no base64."""
    if isinstance(value, str):
        try:
            return base64.b64decode("".join(value.split()), validate=True)
        except (binascii.Error, ValueError):
            pass
    return _bytes_of(value)


def _hashed_secret(body: JsonObject, key: bytes) -> JsonObject:
    data, plain = body.get("data"), body.get("stringData")
    hashed: dict[str, Json] = {}
    for name, value in data.items() if isinstance(data, Mapping) else ():
        hashed[name] = value if _is_hash(value) else keyed_hash(decoded(value), key)
    for name, value in plain.items() if isinstance(plain, Mapping) else ():
        hashed[name] = keyed_hash(_bytes_of(value), key)
    # A misplaced field may be a value too.
    body = {name: below if name in _OPEN else _hashed(below, key) for name, below in body.items()}
    body = without(body, ("stringData",))
    # Neither `data: oops` nor an empty mapping may stay: the one could be a value, the other would differ from none.
    return {**body, "data": hashed} if hashed else without(body, ("data",))


def _hashed(value: Json, key: bytes) -> Json:
    return value if _is_hash(value) else keyed_hash(_bytes_of(value), key)


def _is_hash(value: Json) -> bool:
    return isinstance(value, str) and _HASH_FORM.fullmatch(value) is not None


def _bytes_of(value: Json) -> bytes:
    return value.encode(errors="surrogatepass") if isinstance(value, str) else canonical_bytes(value)
