"""What becomes of the volumes of a StatefulSet whose copy goes: they belong to the cluster that it leaves.

Source: Kubernetes: claims that volumeClaimTemplates make outlive the StatefulSet, unless its
persistentVolumeClaimRetentionPolicy says otherwise, and no claim leads out of its cluster.
"""

from __future__ import annotations

from typing import Final

from reconciler.interpreters.reading import mappings, text
from reconciler.model.refs import Identity
from reconciler.model.tree import JsonObject, dig

_STATEFUL: Final = ("apps", "StatefulSet")


def claims_of(identity: Identity, body: JsonObject) -> tuple[str, ...]:
    """The names of the volume claim templates of a StatefulSet; none for everything else."""
    if identity[:2] != _STATEFUL:
        return ()
    return tuple(
        text(dig(claim, "metadata", "name")) for _, claim in mappings(dig(body, "spec", "volumeClaimTemplates"))
    )


def why_confirmed(identity: Identity, live: JsonObject, cluster: str, *, moves: bool) -> str:
    """Why a person must confirm that a copy goes, as the end of a sentence; empty: no data stay behind or go with it.

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
