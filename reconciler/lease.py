"""The Lease of a fleet: when it may be taken, and the handover that a leader leaves."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

import msgspec
import orjson
from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.api.binding import PreviousPlacement, TargetCluster
from reconciler.api.content import Json, JsonObject, dig
from reconciler.api.refs import Identity
from reconciler.decoding import decompressed
from reconciler.kinds.body_fields import count, text

_DURATION_S_MAX: Final = 3600
"""Limit of a hand-written duration: it must not lock everybody out for days."""

TERM_MAX: Final = 2_000_000_000
"""A later term was written by hand: API servers keep it in 32 bits, and the next leader needs a higher one."""
_GIVEN_BACK_S: Final = 1
"""The duration of a Lease that its holder gave back, as client-go writes it; a hand that empties one leaves another."""


class Lease(Struct, frozen=True, kw_only=True):
    """The content of a Lease. `holder` is empty if it was given back.

    `transitions`: how often it changed hands. `acquired` and `renewed` are for people: no two clocks are compared.
    """

    holder: str = ""
    duration_s: int = 0
    transitions: int = 0
    acquired: str = ""
    renewed: str = ""

    @property
    def is_given_back(self) -> bool:
        """Return whether its holder wrote that it has ended."""
        return not self.holder and self.duration_s == _GIVEN_BACK_S


def lease_name(fleet: str) -> str:
    """The name of the Lease of a fleet."""
    return f"fleet-{fleet}"


def given_back(before: Lease, now: str) -> Lease:
    """The Lease as its holder leaves it, once it has ended. `now`: RFC 3339."""
    return replace(before, holder="", duration_s=_GIVEN_BACK_S, renewed=now)


def read_term(number: int) -> int:
    """Return the number as a term; 0 if invalid."""
    return number if 0 <= number <= TERM_MAX else 0


def read_lease(body: JsonObject) -> Lease:
    """Return the content of an object. Invalid values count as missing."""
    spec = dig(body, "spec")
    return Lease(
        holder=text(dig(spec, "holderIdentity")),
        duration_s=min(count(dig(spec, "leaseDurationSeconds"), 0), _DURATION_S_MAX),
        transitions=read_term(count(dig(spec, "leaseTransitions"), 0)),
        acquired=text(dig(spec, "acquireTime")),
        renewed=text(dig(spec, "renewTime")),
    )


def lease_body(fleet: str, namespace: str, lease: Lease) -> JsonObject:
    """Return the object. Times have the microseconds that the API wants."""
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": lease_name(fleet), "namespace": namespace},
        "spec": {
            "holderIdentity": lease.holder,
            "leaseDurationSeconds": max(lease.duration_s, 1),
            "leaseTransitions": lease.transitions,
            **({"acquireTime": _micro(lease.acquired)} if lease.acquired else {}),
            **({"renewTime": _micro(lease.renewed)} if lease.renewed else {}),
        },
    }


def _micro(time: str) -> str:
    return f"{time.removesuffix('Z')}.000000Z" if time.endswith("Z") and "." not in time else time


_WRITING_SHARE = 2 / 3
"""The share of its duration for which a holder may write after a renewal: writes end before the Lease does."""


class ObservedLease(Struct, frozen=True, kw_only=True):
    """A Lease as last read. `resource_version` is empty without one.

    `since_s`: the first reading of this version, by the observer's clock.
    """

    lease: Lease = Lease()
    resource_version: str = ""
    since_s: float


class Leader(Struct, frozen=True, kw_only=True):
    """Whoever holds the Lease. `term`: how often it changed hands; each leader has a higher one than those before.

    `renewed_s`: before the request was sent that renewed it last. `writes_from_s`: who made the Lease waits until a
    holder of one that was deleted has ended writing, too.
    """

    term: int
    renewed_s: float
    duration_s: float
    writes_from_s: float

    def writing_left_s(self, now_s: float) -> float:
        """So long a request that begins now may take; 0: nothing may be written."""
        if now_s < self.writes_from_s:
            return 0.0
        return max(self.renewed_s + self.duration_s * _WRITING_SHARE - now_s, 0.0)

    def is_run_out(self, now_s: float) -> bool:
        """Return whether another process may act by now."""
        return now_s >= self.renewed_s + self.duration_s


def sighted(before: ObservedLease | None, lease: Lease, resource_version: str, now_s: float) -> ObservedLease:
    """Return a Lease as read now; an unchanged one keeps its first time."""
    if before is not None and before.resource_version == resource_version:
        return before
    if before is not None and not resource_version:
        # Somebody deleted it: its holder makes it again, and goes on.
        return ObservedLease(lease=before.lease, resource_version="", since_s=now_s)
    return ObservedLease(lease=lease, resource_version=resource_version, since_s=now_s)


def wait_for_lease_s(observed: ObservedLease, holder: str, duration_s: float, now_s: float) -> float:
    """Return the seconds until `holder` may take the Lease, if nobody renews it; 0: now.

    A Lease without holder that was not given back was emptied by a person: its holder may not know yet. `duration_s`:
    from the store. A longer duration promised to the holder counts.
    """
    lease = observed.lease
    if lease.is_given_back or (lease.holder == holder and holder) or not (lease.holder or observed.resource_version):
        return 0.0
    return max(observed.since_s + max(observed.lease.duration_s, duration_s) - now_s, 0.0)


def taken_by(holder: str, before: Lease, duration_s: int, now: str) -> Lease:
    """The Lease as a new holder writes it. `now`: RFC 3339."""
    return Lease(holder=holder, duration_s=duration_s, transitions=before.transitions + 1, acquired=now, renewed=now)


def renewed(before: Lease, duration_s: int, now: str) -> Lease:
    """The Lease as its holder renews it."""
    return replace(before, duration_s=duration_s, renewed=now)


def raised(before: Lease, over: int, now: str) -> Lease:
    """Return the Lease with a term above one that was seen: a deleted Lease begins to count again."""
    return replace(before, transitions=max(before.transitions, over + 1), renewed=now)


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
    """Return the object. Raises HandoverTooLarge: it does not fit."""
    packed = _pack({"tables": left.tables, "unread": left.unread})
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
    value = _unpack(text(dig(data, "state")), _BYTES_MAX)
    state = value if isinstance(value, dict) else {}
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
    digits = text(value)
    return read_term(int(digits)) if digits.isascii() and digits.isdigit() and len(digits) < 16 else 0


PLACEMENTS_BYTES_MAX: Final = 64 * 2**20
"""Limit of their unpacked size: who can write the ConfigMap must not fill the memory."""


def packed_placements(placements: Mapping[Identity, PreviousPlacement], bytes_max: int) -> str:
    """As text of at most so many bytes; empty where not even those on one cluster fit. Equal ones stand there once.

    If not all fit, those on one cluster are kept, since they would be placed a second time. Source: ADR 20.
    """
    single = {identity: placement for identity, placement in placements.items() if len(placement.targets) == 1}
    for chosen in (placements, single):
        alike: dict[tuple[TargetCluster, ...], int] = {}
        rows = [
            (*identity, placement.affinity_name, alike.setdefault(placement.targets, len(alike)))
            for identity, placement in sorted(chosen.items())
        ]
        text = _pack({"alike": [[tuple(target) for target in targets] for targets in alike], "placed": rows})
        if len(text) <= bytes_max:
            return text
    return ""


def read_placements(text: str) -> dict[Identity, PreviousPlacement]:
    """Return the unpacked placements. Malformed ones are left out."""
    document = _unpack(text, PLACEMENTS_BYTES_MAX)
    if not isinstance(document, dict):
        return {}
    placements: dict[Identity, PreviousPlacement] = {}
    alike, rows = document.get("alike"), document.get("placed")
    if not isinstance(alike, list) or not isinstance(rows, list):
        return {}
    for row in rows:
        # Another version may have written it, or a person.
        with suppress(msgspec.ValidationError, IndexError):
            *names, group, index = msgspec.convert(row, tuple[str, str, str, str, str, int])
            pairs = msgspec.convert(alike[index], list[tuple[str, int | None]])
            targets = tuple(TargetCluster(*each) for each in pairs)
            if targets and all((target.replicas or 0) >= 0 for target in targets):
                identity = Identity(*names)
                placements[identity] = PreviousPlacement(identity=identity, targets=targets, affinity_name=group)
    return placements


def _pack(tree: Any) -> str:
    return base64.b64encode(zlib.compress(orjson.dumps(tree))).decode()


def _unpack(text: str, bytes_max: int) -> Any:
    """Return the tree; None: invalid, or larger than that. A writer of the object must not fill the memory."""
    try:
        return orjson.loads(decompressed(base64.b64decode(text, validate=True), bytes_max, is_gzip=False))
    except ValueError:  # of base64, zlib or JSON
        return None
