"""The picture that a round leaves, as vital signs."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Mapping

from reconciler.daemon.round.failures import Failures
from reconciler.daemon.round.faults import log_faults
from reconciler.daemon.vitals.vitals import ClusterVitals, Vitals
from reconciler.engine import Round
from reconciler.model.observation import Member, NotRead, Read
from reconciler.model.plan import Change, Manifest
from reconciler.model.refs import Identity
from reconciler.stages.deletion import is_held_by_guard

log = logging.getLogger("reconciler")


def show(
    vitals: Vitals,
    picture: Round,
    members: Mapping[str, Member],
    now: str,
    failures: Failures,
    heard: Collection[str],
) -> None:
    """Bring the vital signs up to date; a cluster that came back is logged once. `heard`: those that were asked now."""
    plan = picture.plan
    log_faults(vitals.problems, plan.problems)
    vitals.problems = plan.problems
    held = [change for change in plan.changes if change.held is not None]
    by_guard = sum(is_held_by_guard(change) for change in held)
    vitals.held = {"guard": by_guard, "other": len(held) - by_guard}
    by_cluster: defaultdict[str, list[Change]] = defaultdict(list)
    for change in plan.changes:
        by_cluster[change.cluster].append(change)
    for name, manifests in sorted(picture.manifests.items()):
        vital = vitals.clusters.setdefault(name, ClusterVitals(name=name))
        if name in heard:
            _show_answer(vital, members.get(name), now)
        vital.objects = _objects(manifests, by_cluster[name], failures, members.get(name))


def _show_answer(vital: ClusterVitals, member: Member | None, now: str) -> None:
    if isinstance(member, NotRead):
        vital.is_up, vital.why = False, member.why
    elif member is not None:
        if not vital.is_up:
            log.info("cluster answers", extra={"event": "ClusterRecovered", "cluster": vital.name})
        vital.is_up, vital.why, vital.last_success = True, "", now


def _objects(
    manifests: Mapping[Identity, Manifest], due: list[Change], failures: Failures, member: Member | None
) -> dict[str, int]:
    waiting = {change.identity for change in due}
    # What a cluster has not told yet may be as wanted, or not.
    unknown = (member.under_way & manifests.keys()) - waiting if isinstance(member, Read) else frozenset()
    failed = sum((change.cluster, change.identity) in failures for change in due if change.held is None)
    held = sum(change.held is not None for change in due)
    return {
        "synced": len(manifests) - len(waiting & manifests.keys()) - len(unknown),
        "held": held,
        "failed": failed,
        "pending": len(due) - held - failed + len(unknown),
    }
