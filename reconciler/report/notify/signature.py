"""The headers by which a receiver verifies that a message is ours, and no replayed one.

Source: Standard Webhooks 1.0.0, "Webhook scheme": HMAC-SHA256 of `ID.TIMESTAMP.BODY`.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Sequence
from typing import Final

from reconciler.errors import ConfigurationError

_PREFIX: Final = "whsec_"
_KEY_MIN_BYTES: Final = 16


def keys_in(text: str) -> tuple[bytes, ...]:
    """The keys of a secret file, one a line: while one is exchanged there are two, and each message has both.

    `whsec_…` is base64 of the key, as the convention writes it; anything else is the key itself.

    Raises:
        ConfigurationError: one is no base64, or shorter than 16 bytes. The message holds nothing of it.
    """
    found = tuple(_key(line.strip()) for line in text.splitlines() if line.strip())
    if not found:
        raise ConfigurationError("the secret of the webhook is empty")
    return found


def _key(line: str) -> bytes:
    key = line.encode()
    if line.startswith(_PREFIX):
        try:
            key = base64.b64decode(line.removeprefix(_PREFIX), validate=True)
        except ValueError as error:
            raise ConfigurationError(
                "the secret of the webhook begins with whsec_ and goes on with no base64"
            ) from error
    if len(key) < _KEY_MIN_BYTES:
        raise ConfigurationError(f"the secret of the webhook is shorter than {_KEY_MIN_BYTES} bytes")
    return key


def signed_headers(message_id: str, timestamp: int, body: bytes, keys: Sequence[bytes]) -> dict[str, str]:
    """`webhook-id`, `webhook-timestamp` (Unix seconds) and, where there are keys, `webhook-signature`."""
    headers = {"webhook-id": message_id, "webhook-timestamp": str(timestamp)}
    if keys:
        content = f"{message_id}.{timestamp}.".encode() + body
        digests = (hmac.new(key, content, hashlib.sha256).digest() for key in keys)
        headers["webhook-signature"] = " ".join(f"v1,{base64.b64encode(digest).decode()}" for digest in digests)
    return headers
