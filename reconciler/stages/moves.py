"""The effective placement while replicas or copies move: nothing is taken away before something else has taken it.

Source: design §3: E(c) = max(T(c), old(c)) until the new targets are healthy for what moves, then T. Jobs and bare
Pods that have started are never moved create-first; finished ones never move.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum

from msgspec import Struct, field

from reconciler.model.tree import JsonObject, dig

Replicas = int | None


class Run(Enum):
    """How far a Job or a bare Pod got."""

    PENDING = "pending"
    STARTED = "started"
    FINISHED = "finished"


def run_of(live: JsonObject) -> Run:
    """How far the live Job or Pod got, from its status."""
    status = dig(live, "status") or {}
    if live.get("kind") == "Pod":
        if status.get("phase") in ("Succeeded", "Failed"):
            return Run.FINISHED
        return Run.STARTED if dig(live, "spec", "nodeName") else Run.PENDING
    conditions = status.get("conditions") or ()
    if any(c.get("type") in ("Complete", "Failed") and c.get("status") == "True" for c in conditions):
        return Run.FINISHED
    begun = any(status.get(key) for key in ("active", "succeeded", "failed"))
    return Run.STARTED if begun else Run.PENDING


class Effective(Struct, frozen=True, kw_only=True):
    """What is in force now. `holds`: clusters whose reduction or deletion waits, with what it waits for.

    `waits`: clusters where nothing may be created yet, with why (a run that must end elsewhere first).
    """

    targets: Mapping[str, Replicas]
    holds: Mapping[str, str] = field(default_factory=dict)
    waits: Mapping[str, str] = field(default_factory=dict)


def effective(
    target: Mapping[str, Replicas],
    old: Mapping[str, Replicas],
    is_ready: Callable[[str], bool],
    *,
    is_new: bool = False,
) -> Effective:
    """The placement in force for `target`, given what lives where (`old`).

    `is_ready(cluster)`: the copy there equals what is wanted and is healthy. `is_new`: the target was decided just now,
    so that a copy with the right replicas is no arrival; a pure scale-down then waits for nothing. Later, what has not
    gone yet waits for somebody, and every target that is not ready may be the one.
    """
    losers = [cluster for cluster in sorted(old) if _loses(target, old, cluster)]
    if not losers:
        return Effective(targets=target)
    arrivals = [
        cluster for cluster in sorted(target) if _gains(target, old, cluster) or (not is_new and cluster not in losers)
    ]
    pending = [cluster for cluster in arrivals if not is_ready(cluster)]
    if not pending:
        return Effective(targets=target)
    why = f"waits for {', '.join(pending)} healthy"
    kept = {cluster: old[cluster] for cluster in losers}
    return Effective(targets={**target, **kept}, holds=dict.fromkeys(losers, why))


def pinned(
    target: Mapping[str, Replicas], old: Mapping[str, Replicas], runs: Mapping[str, Run], by_tick: bool
) -> Effective:
    """The placement in force of a Job or a bare Pod, which must not run twice.

    `runs`: how far the copies got. A finished run stays where it is and nothing is created elsewhere. A started one
    stays under an edit of the store; a tick takes it away first, and the new copy waits for that.
    """
    leaving = {cluster: runs[cluster] for cluster in old if cluster not in target and cluster in runs}
    begun = {cluster for cluster, run in leaving.items() if run is not Run.PENDING}
    if not begun:
        return effective(target, old, lambda cluster: cluster in old)
    arriving = [cluster for cluster in target if cluster not in old]
    finished = {cluster for cluster in begun if leaving[cluster] is Run.FINISHED}
    if by_tick and not finished:
        where = ", ".join(sorted(begun))
        return Effective(targets=target, waits=dict.fromkeys(arriving, f"waits until the run in {where} is gone"))
    kept = {cluster: old[cluster] for cluster in old if cluster in begun}
    staying = {cluster: replicas for cluster, replicas in target.items() if cluster in old}
    word = "finished" if finished else "has started"
    return Effective(
        targets={**staying, **kept},
        holds=dict.fromkeys(sorted(begun), f"the run {word} and is not moved"),
    )


def _loses(target: Mapping[str, Replicas], old: Mapping[str, Replicas], cluster: str) -> bool:
    if cluster not in target:
        return True
    after, before = target[cluster], old[cluster]
    return after is not None and before is not None and after < before


def _gains(target: Mapping[str, Replicas], old: Mapping[str, Replicas], cluster: str) -> bool:
    if cluster not in old:
        return True
    after, before = target[cluster], old[cluster]
    return after is not None and before is not None and after > before
