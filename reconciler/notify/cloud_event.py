"""An event of history as a signed CloudEvent in structured mode: the signature covers all of it.

Source: CloudEvents 1.0.2, "JSON Event Format" and "HTTP Protocol Binding"; the extension `sequence`; Standard Webhooks
1.0.0, "Webhook scheme": HMAC-SHA256 of `ID.TIMESTAMP.BODY`.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import quote

from reconciler.api.content import Json, canonical_bytes
from reconciler.api.ledger import Event
from reconciler.errors import ConfigurationError
from reconciler.report.status.history_text import Words, history_entry

CONTENT_TYPE: Final = "application/cloudevents+json; charset=utf-8"
BODY_MAX_BYTES: Final = 256 * 1024
"""Of a larger one the lists of `data` are left out: receivers commonly take no more."""


def event_id(journal: str, number: int, event: Event) -> str:
    """Return a stable unique id: journal uuid, number and content, as a rebuilt journal counts again."""
    content = canonical_bytes([event.time, event.kind, event.subject, dict(event.data)])
    return f"{journal}-{number}-{hashlib.sha256(content).hexdigest()[:12]}"


def cloud_event(journal: str, fleet: str, number: int, event: Event, words: Words) -> dict[str, Json]:
    """Return the event. `data` is that of `history -o json`; `words`: of the authors of commits."""
    return {
        "specversion": "1.0",
        "id": event_id(journal, number, event),
        "source": f"/fleets/{quote(fleet or 'unnamed', safe='')}",
        "type": f"io.fleet-reconciler.{event.kind}.v1",
        "subject": event.subject,
        "time": event.time,
        "datacontenttype": "application/json",
        "sequence": f"{number:020d}",
        "data": history_entry(event, words),
    }


def event_body(document: dict[str, Any]) -> bytes:
    """Return the bytes that are signed and sent, at most `BODY_MAX_BYTES`; a shortened one has `cut: true`."""
    body = canonical_bytes(document)
    if len(body) <= BODY_MAX_BYTES:
        return body
    data = {key: value for key, value in document["data"].items() if not isinstance(value, list | dict)}
    data = {key: value[:1000] if isinstance(value, str) else value for key, value in data.items()}
    return canonical_bytes({**document, "data": {**data, "cut": True}})


_PREFIX: Final = "whsec_"
_KEY_MIN_BYTES: Final = 16


def keys_in(text: str, where: str) -> tuple[bytes, ...]:
    """Return the keys of a secret file, one a line, `whsec_…` as base64. Raises ConfigurationError, without them."""
    keys = []
    for line in filter(None, map(str.strip, text.splitlines())):
        key = line.encode()
        if line.startswith(_PREFIX):
            try:
                key = base64.b64decode(line.removeprefix(_PREFIX), validate=True)
            except ValueError as error:
                why = "a secret begins with whsec_ and goes on with no base64; is it cut off?"
                raise ConfigurationError(f"{where}: {why}") from error
        if len(key) < _KEY_MIN_BYTES:
            why = f"a secret is shorter than {_KEY_MIN_BYTES} bytes; is it cut off?"
            raise ConfigurationError(f"{where}: {why}")
        keys.append(key)
    return tuple(keys)


def signed_headers(message_id: str, timestamp: int, body: bytes, keys: Sequence[bytes]) -> dict[str, str]:
    """`webhook-id`, `webhook-timestamp` (Unix seconds) and, where there are keys, `webhook-signature`."""
    headers = {"webhook-id": message_id, "webhook-timestamp": str(timestamp)}
    if keys:
        content = f"{message_id}.{timestamp}.".encode() + body
        digests = (hmac.new(key, content, hashlib.sha256).digest() for key in keys)
        headers["webhook-signature"] = " ".join(f"v1,{base64.b64encode(digest).decode()}" for digest in digests)
    return headers
