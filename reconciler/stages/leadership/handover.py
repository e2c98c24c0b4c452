"""What a leader leaves for the next one, as a ConfigMap beside the Lease.

Source: ADR 20: only what the marks in the clusters do not tell. It is packed, since an object has a limit of 1 MiB.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct, field

from reconciler.interpreters.reading import count, text
from reconciler.model.binding import PreviousPlacement
from reconciler.model.refs import Identity
from reconciler.model.tree import JsonObject, dig
from reconciler.stages.leadership.lease import lease_name
from reconciler.stages.observations import pack, packed_placements, read_placements, unpack

PACKED_BYTES_MAX: Final = 900_000
_BYTES_MAX: Final = 32 * 2**20
"""So much it may be unpacked: who can write the ConfigMap must not fill the memory."""
_LEADERS_MAX: Final = 50
_REVISION_MAX: Final = 200


class Handover(Struct, frozen=True, kw_only=True):
    """What is left. `journal`: of who wrote it. `leaders`: journals of all that ever led, the last one first.

    `revision`: of the store, that was in force; empty: an earlier version did not say. `unread`: clusters whose marks
    nobody could read since; `tables`: rows of the journal by table.
    """

    journal: str
    term: int
    revision: str = ""
    leaders: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    tables: Mapping[str, Any] = field(default_factory=dict)
    placements: Mapping[Identity, PreviousPlacement] = field(default_factory=dict)
    """Where everything was placed last, as far as it fits."""


class HandoverTooLarge(ValueError):
    """It does not fit into an object."""


def handover_name(fleet: str, shard: str = "") -> str:
    """The name of the ConfigMap of a fleet, or of one of its shards."""
    return f"{lease_name(fleet, shard)}-handover"


def handover_body(name: str, namespace: str, left: Handover) -> JsonObject:
    """The object that says it.

    Raises:
        HandoverTooLarge: it does not fit.
    """
    packed = pack({"tables": left.tables, "unread": left.unread})
    if len(packed) > PACKED_BYTES_MAX:
        raise HandoverTooLarge(f"what the next leader has to know is {len(packed)} bytes, and {PACKED_BYTES_MAX} fit")
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace},
        "data": {
            "journal": left.journal,
            "term": str(left.term),
            "revision": left.revision,
            "leaders": " ".join(left.leaders[:_LEADERS_MAX]),
            "state": packed,
            "placements": packed_placements(left.placements, PACKED_BYTES_MAX - len(packed)),
        },
    }


def read_handover(body: JsonObject) -> Handover | None:
    """What an object says; None when it names no journal. State that cannot be unpacked counts as none."""
    data = dig(body, "data")
    journal, term = text(dig(data, "journal")), text(dig(data, "term"))
    if not journal:
        return None
    state = _unpacked(text(dig(data, "state")))
    tables, unread = state.get("tables"), state.get("unread")
    return Handover(
        journal=journal,
        term=count(int(term), 0) if term.isascii() and term.isdigit() and len(term) < 16 else 0,
        revision=text(dig(data, "revision"))[:_REVISION_MAX],
        leaders=tuple(text(dig(data, "leaders")).split()[:_LEADERS_MAX]),
        tables=tables if isinstance(tables, dict) else {},
        unread=tuple(map(text, unread)) if isinstance(unread, list) else (),
        placements=read_placements(text(dig(data, "placements"))),
    )


def _unpacked(packed: str) -> dict[str, Any]:
    found = unpack(packed, _BYTES_MAX)
    return found if isinstance(found, dict) else {}
