"""Copies in clusters that another process applies to: known by placement and by observations, never looked at.

Source: ADR 21. Where nothing was observed, a copy counts as what was assigned to it last; nobody relies on it alone.
"""

from __future__ import annotations

from reconciler.interpreters.registry import GENERIC
from reconciler.model.observation import Health
from reconciler.model.refs import Identity
from reconciler.stages.comparison.scene import Scene
from reconciler.stages.moves import Available, Lacking, Replicas, Serving, Silence, UnknownAvailability


def copies_elsewhere(scene: Scene, identity: Identity) -> dict[str, Replicas]:
    """Clusters of other processes where a copy lives, as far as is known, with the replicas assigned to it last."""
    found: dict[str, Replicas] = {}
    for cluster in scene.elsewhere:
        seen = scene.observed.get(cluster)
        workload = seen.workloads.get(identity) if seen is not None else None
        if workload is not None:
            found[cluster] = workload.replicas
    previous = scene.previous.get(identity)
    assigned = previous.targets if previous is not None else ()
    found |= {cluster: replicas for cluster, replicas in assigned if cluster in scene.elsewhere}
    return dict(sorted(found.items()))


def serving_elsewhere(scene: Scene, identity: Identity, wanted: Replicas, cluster: str) -> Serving | None:
    """What a copy serves in a cluster of another process; None: the cluster is none of these."""
    if cluster not in scene.elsewhere:
        return None
    previous = scene.previous.get(identity)
    assigned = dict(previous.targets) if previous is not None else {}
    established = (assigned[cluster] or 0) if cluster in assigned else None
    seen = scene.observed.get(cluster)
    if seen is None or not seen.reachable:
        silent = UnknownAvailability(Silence.CLUSTER)
        return Serving(availability=silent, established=established, base=established or 0)
    workload = seen.workloads.get(identity)
    if workload is not None:
        manifest, _ = scene.render(identity, cluster, wanted)
        # Where nobody tells what was applied there, what is ready is what serves.
        is_written = not workload.manifest_digest or (
            manifest is not None and manifest.digest == workload.manifest_digest
        )
        is_all = is_written and workload.ready >= (wanted or 0) and workload.health is Health.HEALTHY
        return Serving(
            availability=Available(workload.ready) if is_all else Lacking(workload.ready),
            is_written=is_written,
            established=workload.established,
            base=workload.established or 0,
        )
    interpreter = scene.decision.interpreters.of(*identity[:2])
    runs_pods = bool(interpreter.replicas_path) or interpreter.pod_template is not GENERIC.pod_template
    if runs_pods or established is None:
        return Serving(availability=Lacking(0))
    # Observations tell of what runs pods alone; of the rest, that it belonged there when they were made.
    return Serving(availability=Available(), is_written=True, established=established, base=established)
