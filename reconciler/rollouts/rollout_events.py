"""Events of rollouts: beginnings and completions in clusters, and stages that wait for a person."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from reconciler.api.ledger import ENDS, Event, EventKind
from reconciler.api.rollout_progress import Begin, Complete, Paused, Phase, Pinned, RolloutProgress, WaitsForApproval

Begun = tuple[EventKind, str]
"""An episode that lasts until an event ends it: its kind and its subject."""

_END_OF: Final = {begin: end for end, begin in ENDS.items()}


def rollout_events(
    before: RolloutProgress | None, after: RolloutProgress, time: str, *, number: int = 0, told: Collection[Begun] = ()
) -> tuple[Event, ...]:
    """Return the events between two states of a rollout, in order.

    `before`: the earlier state; None at the start of the process, and then `told` has the unfinished episodes of
    history. `time`: RFC 3339 UTC. `number`: of the round. Changes of records (`changes`) are reported once, so call
    this once for each recorded state.
    """
    found = list(_of_clusters(before, after))
    was: Mapping[Begun, Mapping[str, Any]] = _lasting(before) if before is not None else {key: {} for key in told}
    is_now = _lasting(after)
    over = sorted(was.keys() - is_now.keys())
    found.extend((_END_OF[kind], subject, {"revision": after.release}) for kind, subject in over)
    for (kind, subject), data in sorted(is_now.items(), key=lambda one: one[0]):
        known = was.get((kind, subject))
        if known is None or (known and known != data):
            found.append((kind, subject, data))
    if after.is_done and _is_news(before, after):
        why = "it is completed in every stage"
        found.append((EventKind.ROLLOUT_DONE, f"rollout {after.rollout}", {"revision": after.release, "why": why}))
    return tuple(Event(round=number, time=time, kind=kind, subject=subject, data=data) for kind, subject, data in found)


def _of_clusters(
    before: RolloutProgress | None, after: RolloutProgress
) -> Iterator[tuple[EventKind, str, Mapping[str, Any]]]:
    was = before.records if before is not None else {}
    for change in after.changes:
        if not isinstance(change, Begin | Complete):
            continue
        subject, found = f"rollout {after.rollout} @ {change.cluster}", after.clusters.get(change.cluster)
        stage = found.stage if found is not None else ""
        if isinstance(change, Begin):
            known = was.get(change.cluster)
            earlier = known.revision if known else ""
            data = {"revision": change.revision, "stage": stage, "before": earlier}
            why = f"its turn in the stage {stage}; {earlier[:12] or 'nothing'} before"
            yield EventKind.ROLLOUT_BEGUN, subject, {**data, "why": why}
        else:
            revision = after.records[change.cluster].revision
            data = {"revision": revision, "stage": stage, "why": f"it meets the gate of the stage {stage}"}
            yield EventKind.ROLLOUT_COMPLETED, subject, data


def _lasting(progress: RolloutProgress) -> dict[Begun, dict[str, Any]]:
    """Return the unfinished episodes that wait for a person or that a person began, by kind and subject."""
    found: dict[Begun, dict[str, Any]] = {}
    pinned = set()
    for stage in progress.stages:
        subject, state = f"rollout {progress.rollout}/{stage.name}", stage.state
        data: dict[str, Any] = {"revision": progress.release}
        match state:
            case Paused(failed=failed):
                data |= {"clusters": list(failed), "why": f"failed: {', '.join(failed)}"}
                found[EventKind.ROLLOUT_PAUSED, subject] = data
            case WaitsForApproval(entry=entry):
                data |= {"entry": entry, "why": f"add under spec.approvals: {entry}"}
                found[EventKind.APPROVAL_AWAITED, subject] = data
            case Pinned(revision=revision):
                pinned.add(stage.name)
                data |= {"pinned": revision, "why": f"the stage is pinned to {revision}"}
                found[EventKind.PINNED, subject] = data
    for name, cluster in progress.clusters.items():
        if cluster.phase is Phase.PINNED and cluster.stage not in pinned:
            data = {"revision": progress.release, "pinned": cluster.revision, "why": cluster.why}
            found[EventKind.PINNED, f"rollout {progress.rollout} @ {name}"] = data
    return found


def _is_news(before: RolloutProgress | None, after: RolloutProgress) -> bool:
    """Return whether its completion is new."""
    if before is None:
        return bool(after.changes)
    return not before.is_done or before.release != after.release
