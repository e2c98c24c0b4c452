"""Since when applications have been unhealthy: remembered from look to look, and across restarts.

Source: design#timers: they survive restarts. A cluster's own conditions may begin anew with every flap of a probe, and
many kinds have none.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from reconciler.model.observation import ClusterObservation, Health, Observations, Workload
from reconciler.model.refs import Identity
from reconciler.stages.moves import is_timer

LOOKED = "looked for replicas without a node"
"""Timer key: the first descheduling check after a start of the service."""


def told(event: str, identity: Identity, cluster: str) -> str:
    """Return the timer key: a failed application has been reported."""
    return f"{event} {identity} @ {cluster}"


def remembered_times(observations: Observations, timers: Mapping[str, str]) -> tuple[Observations, dict[str, str]]:
    """The observations with the earliest known times, and the timers from now on: name to RFC 3339.

    A timer ends when the workload is seen in another state, or no longer. A cluster that does not answer ends none.
    """
    clusters: dict[str, ClusterObservation] = {}
    after: dict[str, str] = {}
    for name, seen in observations.clusters.items():
        if not seen.reachable:
            after |= {key: since for key, since in timers.items() if key.endswith(f" @ {name}")}
        changed: dict[Identity, Workload] = {}
        for identity, workload in seen.workloads.items() if seen.reachable else ():
            if workload.health is Health.UNHEALTHY:
                key = f"unhealthy {identity} @ {name}"
                after[key] = since = min(timers.get(key, workload.unhealthy_since), workload.unhealthy_since)
                ended = f"ended by itself {identity} @ {name}"
                # The pods that show it may be gone by now, with their failed node.
                by_itself = workload.ended_by_itself or timers.get(ended) == workload.unhealthy_since
                if by_itself:
                    after[ended] = workload.unhealthy_since
                if since != workload.unhealthy_since or by_itself != workload.ended_by_itself:
                    changed[identity] = replace(workload, unhealthy_since=since, ended_by_itself=by_itself)
        clusters[name] = replace(seen, workloads={**seen.workloads, **changed}) if changed else seen
    after |= {key: since for key, since in timers.items() if _lasts(key, after)}
    return replace(observations, clusters=clusters), dict(sorted(after.items()))


def _lasts(key: str, after: Mapping[str, str]) -> bool:
    """Return whether a timer that no workload renews is still valid: a report is, while its reason lasts."""
    event, _, about = key.partition(" ")
    return key == LOOKED or is_timer(key) or (event.startswith("Failover") and f"unhealthy {about}" in after)
