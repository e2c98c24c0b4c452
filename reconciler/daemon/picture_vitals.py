"""The picture that a round leaves, as vital signs."""

from __future__ import annotations

import logging

from reconciler.daemon.look import Looked
from reconciler.daemon.vitals import ClusterVitals, Vitals
from reconciler.engine import Round
from reconciler.model.member import NotRead
from reconciler.stages.guard import is_held_by_guard

log = logging.getLogger("reconciler")


def show(vitals: Vitals, picture: Round, looked: Looked) -> None:
    """Bring the vital signs up to date; a cluster that came back is logged once."""
    plan = picture.plan
    vitals.rounds += 1
    vitals.last_round_at, vitals.problems = looked.now, plan.problems
    held = [change for change in plan.changes if change.held is not None]
    by_guard = sum(is_held_by_guard(change) for change in held)
    vitals.held = {"guard": by_guard, "other": len(held) - by_guard}
    for name in sorted(picture.manifests):
        vital = vitals.clusters.setdefault(name, ClusterVitals(name=name))
        member = looked.world.members.get(name)
        if isinstance(member, NotRead):
            vital.is_up, vital.why = False, member.why
        elif member is not None:
            if not vital.is_up:
                log.info("cluster answers", extra={"event": "ClusterRecovered", "cluster": name})
            vital.is_up, vital.why, vital.last_success = True, "", looked.now
        own = [change for change in plan.changes if change.cluster == name]
        waiting = {change.identity for change in own}
        vital.objects = {
            "synced": sum(identity not in waiting for identity in picture.manifests[name]),
            "held": sum(change.held is not None for change in own),
            "pending": sum(change.held is None for change in own),
        }
