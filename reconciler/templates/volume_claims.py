"""Volumes of a StatefulSet whose copy or replicas move away: they belong to its cluster.

Source: Kubernetes: claims of volumeClaimTemplates outlive the StatefulSet and its replicas, unless its
persistentVolumeClaimRetentionPolicy says otherwise, and no claim leads out of its cluster.
"""

from __future__ import annotations

from typing import Final

from reconciler.api.plan import Cause, Change
from reconciler.api.refs import Identity
from reconciler.api.tree import JsonObject, dig
from reconciler.kinds.body_fields import mappings, text

_STATEFUL: Final = ("apps", "StatefulSet")


def claims_of(identity: Identity, body: JsonObject) -> tuple[str, ...]:
    """The names of the volume claim templates of a StatefulSet; none for everything else."""
    if identity[:2] != _STATEFUL:
        return ()
    return tuple(
        text(dig(claim, "metadata", "name")) for _, claim in mappings(dig(body, "spec", "volumeClaimTemplates"))
    )


def why_confirmed(identity: Identity, live: JsonObject, cluster: str, *, moves: bool) -> str:
    """Return why a person must confirm a deletion, as the end of a sentence; empty: no data are at stake.

    `moves`: new copies are to take over elsewhere.
    """
    names = ", ".join(claims_of(identity, live))
    if not names:
        return ""
    if dig(live, "spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted") == "Delete":
        return f"its volume claims ({names}) in {cluster} are deleted with it"
    return (
        f"its volume claims ({names}) stay in {cluster}, and copies elsewhere have none of their data" if moves else ""
    )


def why_share_confirmed(identity: Identity, live: JsonObject, cluster: str) -> str:
    """Return why a person must confirm a move of replicas; empty: no data are at stake."""
    names = ", ".join(claims_of(identity, live))
    if not names:
        return ""
    if dig(live, "spec", "persistentVolumeClaimRetentionPolicy", "whenScaled") == "Delete":
        return f"the volume claims ({names}) of the replicas that go are deleted with them in {cluster}"
    return (
        f"the volume claims ({names}) of the replicas that go stay in {cluster}, and replicas elsewhere have none of "
        "their data"
    )


def replicas_moved(change: Change) -> int:
    """Return the change of replicas by placement in an update; negative: taken away."""
    for one in change.fields:
        is_placed = one.path == "spec.replicas" and one.cause is Cause.PLACEMENT
        if is_placed and isinstance(one.before, int) and isinstance(one.after, int):
            return one.after - one.before
    return 0
