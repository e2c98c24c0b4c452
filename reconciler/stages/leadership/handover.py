"""The handover of a leader to the next one, as a ConfigMap beside the Lease.

Source: ADR 20: only state that the marks in the clusters lack. It is packed, since an object has a limit of 1 MiB.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct, field

from reconciler.interpreters.reading import text
from reconciler.model.binding import PreviousPlacement
from reconciler.model.refs import Identity
from reconciler.model.tree import Json, JsonObject, dig
from reconciler.stages.leadership.lease import read_term
from reconciler.stages.observations import pack, packed_placements, read_placements, unpack

PACKED_BYTES_MAX: Final = 900_000
_BYTES_MAX: Final = 32 * 2**20
"""Limit of the unpacked size: who can write the ConfigMap must not fill the memory."""
_LEADERS_MAX: Final = 50
_REVISION_MAX: Final = 200


class Handover(Struct, frozen=True, kw_only=True):
    """The state for the next leader. `journal`: of its writer. `leaders`: former leading journals, the last first.

    `number`: count of changed handovers of that journal; a lower count is an older copy. `revision`: the active one of
    the store; empty: an earlier version did not record it. `unread`: clusters whose marks nobody could read since;
    `tables`: rows of the journal by table.
    """

    journal: str
    term: int
    number: int = 0
    revision: str = ""
    leaders: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    tables: Mapping[str, Any] = field(default_factory=dict)
    placements: Mapping[Identity, PreviousPlacement] = field(default_factory=dict)
    """The last placements, as far as they fit."""


class HandoverTooLarge(ValueError):
    """It does not fit into an object."""


def handover_name(fleet: str) -> str:
    """The name of the ConfigMap of a fleet."""
    return f"fleet-{fleet}-handover"


def handover_body(fleet: str, namespace: str, left: Handover) -> JsonObject:
    """Return the object.

    Raises:
        HandoverTooLarge: it does not fit.
    """
    packed = pack({"tables": left.tables, "unread": left.unread})
    if len(packed) > PACKED_BYTES_MAX:
        raise HandoverTooLarge(f"what the next leader has to know is {len(packed)} bytes, and {PACKED_BYTES_MAX} fit")
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": handover_name(fleet), "namespace": namespace},
        "data": {
            "journal": left.journal,
            "term": str(left.term),
            "number": str(left.number),
            "revision": left.revision,
            "leaders": " ".join(left.leaders[:_LEADERS_MAX]),
            "state": packed,
            "placements": packed_placements(left.placements, PACKED_BYTES_MAX - len(packed)),
        },
    }


def read_handover(body: JsonObject) -> Handover | None:
    """Return the handover of an object; None when it names no journal. State that cannot be unpacked counts as none."""
    data = dig(body, "data")
    journal = text(dig(data, "journal"))
    if not journal:
        return None
    state = _unpacked(text(dig(data, "state")))
    tables, unread = state.get("tables"), state.get("unread")
    return Handover(
        journal=journal,
        term=_number(dig(data, "term")),
        number=_number(dig(data, "number")),
        revision=text(dig(data, "revision"))[:_REVISION_MAX],
        leaders=tuple(text(dig(data, "leaders")).split()[:_LEADERS_MAX]),
        tables=tables if isinstance(tables, dict) else {},
        unread=tuple(map(text, unread)) if isinstance(unread, list) else (),
        placements=read_placements(text(dig(data, "placements"))),
    )


def _number(value: Json) -> int:
    found = text(value)
    return read_term(int(found)) if found.isascii() and found.isdigit() and len(found) < 16 else 0


def _unpacked(packed: str) -> dict[str, Any]:
    found = unpack(packed, _BYTES_MAX)
    return found if isinstance(found, dict) else {}
