"""A Lease of the coordination API, as an object and as a value.

Source: Kubernetes, coordination.k8s.io/v1 LeaseSpec; client-go, tools/leaderelection/resourcelock.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from reconciler.interpreters.reading import count, text
from reconciler.model.tree import JsonObject, dig
from reconciler.stages.shards import shard_object_name

_DURATION_S_MAX: Final = 3600
"""What somebody wrote by hand must not lock everybody out for days."""


class Lease(Struct, frozen=True, kw_only=True):
    """What a Lease says. `holder` is empty where it was given back.

    `transitions`: how often it changed hands. `acquired` and `renewed` are for people: no two clocks are compared.
    """

    holder: str = ""
    duration_s: int = 0
    transitions: int = 0
    acquired: str = ""
    renewed: str = ""


def lease_name(fleet: str, shard: str = "") -> str:
    """The name of the Lease of a fleet, or of one of its shards."""
    return shard_object_name(shard, fleet) if shard else f"fleet-{fleet}"


def read_lease(body: JsonObject) -> Lease:
    """What an object says. What has no sense counts as nothing."""
    spec = dig(body, "spec")
    return Lease(
        holder=text(dig(spec, "holderIdentity")),
        duration_s=min(count(dig(spec, "leaseDurationSeconds"), 0), _DURATION_S_MAX),
        transitions=count(dig(spec, "leaseTransitions"), 0),
        acquired=text(dig(spec, "acquireTime")),
        renewed=text(dig(spec, "renewTime")),
    )


def lease_body(name: str, namespace: str, lease: Lease) -> JsonObject:
    """The object that says it. Times are written with the microseconds that the API wants."""
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "namespace": namespace},
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
