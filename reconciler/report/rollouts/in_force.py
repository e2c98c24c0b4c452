"""The active revision of a resource in each cluster, with the reason: the rollouts part of `explain`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from reconciler.model.refs import Identity
from reconciler.model.tree import Json
from reconciler.report.rollouts.words import short
from reconciler.report.text.safe import visible
from reconciler.stages.decision import Decision
from reconciler.stages.rollouts import lay_out
from reconciler.stages.staging import selected_of

NOT_KNOWN = "where it stands is not known here"

Document = Mapping[str, Any]


class InForce(Struct, frozen=True, kw_only=True):
    """A cluster with the Rollout and the stage that a resource goes with there. Empty: it is not known, or none."""

    rollout: str
    cluster: str
    stage: str
    revision: str = ""
    phase: str = ""
    why: str = NOT_KNOWN


def in_force_of(
    decision: Decision, identity: Identity, clusters: Iterable[str], known: Iterable[Document]
) -> tuple[InForce, ...]:
    """Return the rollout state of a resource by cluster; empty without a Rollout. `known`: `rollouts` of a status."""
    fleet = decision.fleet
    if not fleet.rollouts:
        return ()
    standing = {found["name"]: {one["name"]: one for one in found["clusters"]} for found in known}
    selection = selected_of(decision)
    names = selection.tied.get(identity) or selection.rollouts.get(identity, ())
    stages = {one.name: lay_out(one, fleet.clusters).stage_of for one in fleet.rollouts if one.name in names}
    return tuple(
        _one(name, cluster, stages[name][cluster].stage.name if cluster in stages[name] else "", standing.get(name))
        for cluster in sorted(clusters)
        for name in sorted(stages)
    )


def _one(rollout: str, cluster: str, stage: str, standing: Mapping[str, Document] | None) -> InForce:
    found = (standing or {}).get(cluster)
    if found is None:
        return InForce(rollout=rollout, cluster=cluster, stage=stage)
    return InForce(
        rollout=rollout,
        cluster=cluster,
        stage=stage,
        revision=found["revision"] or "",
        phase=found["phase"],
        why=found["why"],
    )


def in_force_part(found: Iterable[InForce]) -> list[Json]:
    """`[{cluster, rollout, stage, revision, phase, why}]`; null where it is not known, or none."""
    return [
        {
            "cluster": one.cluster,
            "rollout": one.rollout,
            "stage": one.stage or None,
            "revision": one.revision or None,
            "phase": one.phase or None,
            "why": one.why,
        }
        for one in found
    ]


def in_force_lines(entries: Iterable[Document]) -> Iterator[str]:
    """`m2  default/rest  at 1a2b3c4d5e6f (behind): its turn has not come`."""
    for one in entries:
        where = f"{one['rollout']}/{one['stage'] or 'no stage'}"
        at = f"at {short(one['revision'] or '')} ({one['phase']})" if one["phase"] else "at a revision"
        yield visible(f"{one['cluster']}  {where}  {at}: {one['why']}")
