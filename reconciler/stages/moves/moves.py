"""The one rule of moves: what serves is not taken away before the copies that take over are available.

Available is what a copy's own cluster says of it: it is there as it is wanted, its controller has seen that, and all of
its replicas are available. Two facts decide, and neither depends on which round, commit or process it is:

- whether the copies that take over are available *now*; of a cluster that does not answer, nothing is known;
- with how many replicas each copy is *established*: it was seen available with so many while nothing waited for it.
  That is recorded beside what was applied there, and ends with the object (its uid).

A copy that exists and never served is an arrival for ever, whatever came in between. Source: design#moves;
design#effective-placement: in each cluster max(target, old) until those that take over are available, then the target;
design#runs-once: Jobs and bare Pods that have started are never moved create-first, finished ones never.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from enum import Enum

from msgspec import Struct, field

from reconciler.interpreters.reading import condition, mapping
from reconciler.model.ledger import AppliedRow
from reconciler.model.tree import JsonObject, dig

Replicas = int | None

NOBODY_TAKES_IT = "waits for a cluster that can take it"


class Run(Enum):
    """How far a Job or a bare Pod got."""

    PENDING = "pending"
    STARTED = "started"
    FINISHED = "finished"


def run_of(live: JsonObject) -> Run:
    """How far the live Job or Pod got, from its status."""
    status = mapping(live.get("status"))
    if live.get("kind") == "Pod":
        if status.get("phase") in ("Succeeded", "Failed"):
            return Run.FINISHED
        return Run.STARTED if dig(live, "spec", "nodeName") else Run.PENDING
    if any(condition(live, kind).get("status") == "True" for kind in ("Complete", "Failed")):
        return Run.FINISHED
    begun = any(status.get(key) for key in ("active", "succeeded", "failed"))
    return Run.STARTED if begun else Run.PENDING


class Serving(Struct, frozen=True, kw_only=True):
    """What the copy in one cluster serves, as that cluster says.

    `is_available`: all of what is wanted there serves now. `is_written`: it is there as it is wanted, serving or not.
    `replicas`: how many are available now; None: it has none, or it is not known. `established`: with how many it was
    seen available while nothing waited for it, 0 for what has none; None: never. `is_known` False: the cluster did not
    answer.
    """

    is_available: bool = False
    is_written: bool = False
    replicas: int | None = None
    established: int | None = None
    is_known: bool = True


class Effective(Struct, frozen=True, kw_only=True):
    """What is in force now. `holds`: clusters whose reduction or deletion waits, with what it waits for.

    `waits`: clusters where nothing may be created yet, with why (a run that must end elsewhere first).
    """

    targets: Mapping[str, Replicas]
    holds: Mapping[str, str] = field(default_factory=dict)
    waits: Mapping[str, str] = field(default_factory=dict)


def effective(
    target: Mapping[str, Replicas], old: Mapping[str, Replicas], serving: Callable[[str], Serving]
) -> Effective:
    """The placement in force for `target`, given what lives where (`old`) and what it serves (`serving(cluster)`).

    Where a cluster is left, every target takes over and has to be available; one that is established with what is
    wanted there is not waited for while its cluster does not answer, as long as another target is available. Where
    clusters only shrink, those take over that need more than they are established with: a mere scale-down waits for
    nobody. A copy that does not serve more than it is to keep shrinks at once: that takes nothing away.
    """
    losers = [cluster for cluster in sorted(old) if _loses(target, old, cluster)]
    if not losers:
        return Effective(targets=target)
    if not target:
        return Effective(targets=old, holds=dict.fromkeys(losers, NOBODY_TAKES_IT))
    kept = {c: old[c] for c in losers if c not in target or _takes_away(target[c], serving(c))}
    pending = _pending(target, losers, serving) if kept else []
    if not pending:
        return Effective(targets=target)
    why = f"waits for {', '.join(pending)} healthy"
    return Effective(targets={**target, **kept}, holds=dict.fromkeys(kept, why))


def _pending(target: Mapping[str, Replicas], losers: list[str], serving: Callable[[str], Serving]) -> list[str]:
    """The targets that have to be available before anything is taken away, and are not."""
    copies = {cluster: serving(cluster) for cluster in sorted(target)}
    lacking = [cluster for cluster, copy in copies.items() if not copy.is_available]
    arriving = [cluster for cluster in lacking if not _is_established(copies[cluster], target[cluster])]
    left = [cluster for cluster in losers if cluster not in target]
    if not left:
        return [cluster for cluster in arriving if cluster not in losers or _lacks(copies[cluster], target[cluster])]
    if len(lacking) < len(copies):
        lacking = [cluster for cluster in lacking if copies[cluster].is_known or cluster in arriving]
    # A DaemonSet may be healthy on no node at all.
    is_empty = all(copy.replicas == 0 and target[cluster] is None for cluster, copy in copies.items())
    if not lacking and is_empty and any(serving(cluster).replicas for cluster in left):
        return list(copies)
    return lacking


def _is_established(copy: Serving, wanted: Replicas) -> bool:
    return copy.established is not None and copy.established >= (wanted or 0)


def _lacks(copy: Serving, wanted: Replicas) -> bool:
    """Whether a copy that is to shrink serves not even what it is to keep. Else it would wait for itself."""
    return copy.replicas is not None and copy.replicas < (wanted or 0)


def _takes_away(wanted: Replicas, copy: Serving) -> bool:
    """Whether a copy that is to shrink may serve more than it is to keep, or did when all was well."""
    if not copy.is_known or wanted is None or (copy.established or 0) > wanted:
        return True
    return copy.replicas is None or copy.replicas > wanted


def still_established(row: AppliedRow | None, uid: str, replicas: Replicas) -> int | None:
    """What is known of an object once so many replicas are assigned to it: it serves no more than these."""
    if row is None or row.uid != uid or row.established is None or replicas is None:
        return row.established if row is not None and row.uid == uid else None
    return min(row.established, replicas)


def pinned(
    target: Mapping[str, Replicas],
    old: Mapping[str, Replicas],
    runs: Mapping[str, Run],
    ticked: Collection[str],
    why_not_written: Callable[[str], str | None] = lambda cluster: None,
) -> Effective:
    """The placement in force of a Job or a bare Pod, which must not run twice: it goes before it comes elsewhere.

    `runs`: how far the copies got. A finished run stays where it is and nothing is created elsewhere. A started one
    stays under an edit of the store; in a cluster that is `ticked`, a tick or a person takes it away. One that has not
    begun goes in either case, since it may begin at any moment. `why_not_written`: why the new copy cannot be made in a
    cluster, None: it can. For one that cannot, nothing is taken away.
    """
    leaving = {cluster: runs[cluster] for cluster in old if cluster not in target and cluster in runs}
    if not leaving:
        return effective(target, old, lambda cluster: Serving(is_available=cluster in old))
    begun = {cluster for cluster, run in leaving.items() if run is not Run.PENDING}
    finished = {cluster for cluster in begun if leaving[cluster] is Run.FINISHED}
    word = "finished" if finished else "has started"
    why = f"the run {word} and is not moved"
    if not finished and begun.issubset(ticked):
        arriving = [cluster for cluster in target if cluster not in old]
        closed = {cluster: found for cluster in sorted(arriving) if (found := why_not_written(cluster)) is not None}
        if target and not closed:
            where = ", ".join(sorted(leaving))
            return Effective(targets=target, waits=dict.fromkeys(arriving, f"waits until the run in {where} is gone"))
        reasons = "; ".join(f"{cluster} cannot take the run over: {found}" for cluster, found in closed.items())
        why = reasons or NOBODY_TAKES_IT
    kept = {cluster: old[cluster] for cluster in leaving}
    staying = {cluster: replicas for cluster, replicas in target.items() if cluster in old}
    return Effective(targets={**staying, **kept}, holds=dict.fromkeys(sorted(kept), why))


def _loses(target: Mapping[str, Replicas], old: Mapping[str, Replicas], cluster: str) -> bool:
    if cluster not in target:
        return True
    after, before = target[cluster], old[cluster]
    return after is not None and before is not None and after < before


def gains(target: Mapping[str, Replicas], old: Mapping[str, Replicas], cluster: str) -> bool:
    """Whether a target is to have more than lives there."""
    if cluster not in old:
        return True
    after, before = target[cluster], old[cluster]
    return after is not None and before is not None and after > before
