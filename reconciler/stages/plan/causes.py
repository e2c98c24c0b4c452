"""Facts of changes that depend on the placement: cause, reason of waiting, need of a confirmation.

Source: design#effective-placement.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from reconciler.model.plan import Action, Cause, Change, FieldChange
from reconciler.stages.comparison import overall_cause
from reconciler.stages.decision import Decision
from reconciler.stages.moves import Replicas, gains
from reconciler.stages.templates import replicas_moved, why_share_confirmed

REPLICA_FIELDS = frozenset({"spec.replicas", "spec.parallelism", "spec.completions"})


def placed(fields: Iterable[FieldChange]) -> tuple[FieldChange, ...]:
    """The fields with the placement as their cause."""
    return tuple(replace(change, cause=Cause.PLACEMENT) for change in fields)


def as_assigned(change: Change, before: Replicas, after: Replicas) -> Change:
    """The change with the placement as the cause of replicas that were assigned otherwise."""
    if before is None or before == after or change.action is not Action.UPDATE:
        return change
    fields = tuple(
        replace(field, cause=Cause.PLACEMENT)
        if field.path in REPLICA_FIELDS and field.cause is Cause.DECLARED
        else field
        for field in change.fields
    )
    return replace(change, fields=fields, cause=overall_cause(fields))


def as_placement(change: Change) -> Change:
    """A copy that comes for the sake of its placement, with that as its cause."""
    is_arrival = change.action is Action.CREATE and change.cause is Cause.DECLARED
    return replace(change, cause=Cause.PLACEMENT) if is_arrival else change


def confirmed_shares(
    decision: Decision, changes: list[Change], target: Mapping[str, Replicas], old: Mapping[str, Replicas]
) -> Iterator[Change]:
    """The changes, those marked that take replicas and leave their volumes while others take over elsewhere."""
    moves = any(gains(target, old, cluster) for cluster in target)
    for change in changes:
        is_evicted = decision.is_evicted(change.identity, change.cluster)
        if moves and change.before is not None and replicas_moved(change) < 0 and not is_evicted:
            yield replace(change, confirm=why_share_confirmed(change.identity, change.before, change.cluster))
        else:
            yield change


def with_wait(change: Change, wait: str | None, hold: str | None) -> Change:
    """Return the change with the reason of its waiting, if any: its own, a run elsewhere, its policy."""
    why = change.held or wait or hold
    return replace(change, held=why) if why else change
