"""An event of history as a CloudEvent in structured mode: the signature covers all of it.

Source: CloudEvents 1.0.2, "JSON Event Format" and "HTTP Protocol Binding"; the extension `sequence`.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final
from urllib.parse import quote

from reconciler.model.ledger import Event
from reconciler.model.tree import Json, canonical_bytes
from reconciler.report.history_text import Words, history_entry

CONTENT_TYPE: Final = "application/cloudevents+json; charset=utf-8"
BODY_MAX_BYTES: Final = 256 * 1024
"""Of a larger one the lists of `data` are left out: receivers commonly take no more."""


def event_id(journal: str, number: int, event: Event) -> str:
    """Return a unique, stable id of an event: a receiver counts each once by it.

    `journal`: the uuid of the journal. A rebuilt journal counts from one again, so the event's content is part of the
    id.
    """
    said = canonical_bytes([event.time, event.kind, event.subject, dict(event.data)])
    return f"{journal}-{number}-{hashlib.sha256(said).hexdigest()[:12]}"


def cloud_event(journal: str, fleet: str, number: int, event: Event, words: Words) -> dict[str, Json]:
    """Return the event. `data` is that of `history -o json`; `words`: of the authors of commits."""
    return {
        "specversion": "1.0",
        "id": event_id(journal, number, event),
        "source": f"/fleets/{quote(fleet or 'unnamed', safe='')}",
        "type": event_type(event.kind),
        "subject": event.subject,
        "time": event.time,
        "datacontenttype": "application/json",
        "sequence": f"{number:020d}",
        "data": history_entry(event, words),
    }


def event_type(kind: str) -> str:
    """`io.fleet-reconciler.drift.v1`."""
    return f"io.fleet-reconciler.{kind}.v1"


def event_body(document: dict[str, Any]) -> bytes:
    """Return the bytes that are signed and sent, at most `BODY_MAX_BYTES`; a shortened one has `cut: true`."""
    body = canonical_bytes(document)
    if len(body) <= BODY_MAX_BYTES:
        return body
    data = {key: value for key, value in document["data"].items() if not isinstance(value, list | dict)}
    data = {key: value[:1000] if isinstance(value, str) else value for key, value in data.items()}
    return canonical_bytes({**document, "data": {**data, "cut": True}})
