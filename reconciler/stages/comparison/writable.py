"""Where nothing may be written, and why: a cluster that may take nothing is no target of a move.

What may not be written takes nothing over, so that nothing may be taken away for it.
"""

from __future__ import annotations

from reconciler.model.observation import NotRead
from reconciler.model.refs import Identity
from reconciler.stages.comparison.compare import Comparison
from reconciler.stages.comparison.scene import Scene
from reconciler.stages.placement import closed_by_order


def why_not_written(scene: Scene, identity: Identity, cluster: str, comparison: Comparison | None) -> str | None:
    """Why a copy that is to come to a cluster cannot be made there now, as far as is known; None: it can.

    `comparison`: of the manifest with what is there; None: it could not be compared.
    """
    if comparison is None:
        member = scene.members.get(cluster)
        return member.why if isinstance(member, NotRead) else "it was not compared with what is there"
    if comparison.problem is not None:
        return f"{identity} {comparison.problem.message}"
    held = comparison.change.held if comparison.change is not None else None
    return held or scene.decision.hold(identity, cluster) or closed_by_order(scene.closed, identity, cluster)
