"""A Lease of the coordination API, as an object and as a value.

Source: Kubernetes, coordination.k8s.io/v1 LeaseSpec; client-go, tools/leaderelection/resourcelock.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from reconciler.interpreters.reading import count, text
from reconciler.model.tree import JsonObject, dig

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
