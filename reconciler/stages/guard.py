"""The brake on deletions that an edit of the store causes.

Source: design, Fleet `spec.guards`: per cluster and over the fleet, deletions and releases are held above
min(maxDeletes, max(3, maxDeletePercent)); any Namespace, CRD, PV and PVC is held always, and so is a move that leaves
volumes behind, until `confirm` carries the digest of the held changes.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from reconciler.model.fleet import Guards
from reconciler.model.plan import Action, Change

ALWAYS_CONFIRMED = frozenset(
    {
        ("", "Namespace"),
        ("apiextensions.k8s.io", "CustomResourceDefinition"),
        ("", "PersistentVolume"),
        ("", "PersistentVolumeClaim"),
    }
)
"""Kinds whose deletion takes data or other objects with it."""

HELD_BY_GUARD = "guard: "
"""How the reason of a guard begins; other holds pass by themselves, these wait for a person."""


def limit(guards: Guards, managed: int) -> int:
    """How many deletions and releases may pass unconfirmed where `managed` objects are ours."""
    return min(guards.max_deletes, max(3, managed * guards.max_delete_percent // 100))


def guard(
    changes: tuple[Change, ...], guards: Guards, managed: Mapping[str, int], now: str
) -> tuple[tuple[Change, ...], str]:
    """The changes with those held that need confirmation, and the digest that confirms them (empty: none is held).

    `managed`: our objects per cluster. `now`: RFC 3339 UTC, compared with `guards.confirm_until`.
    """
    reasons = _reasons(changes, guards, managed)
    if not reasons:
        return changes, ""
    # A copy that takes over is made before the old one goes: what was let through stays let through.
    digest = held_digest(changes[index] for index in reasons if changes[index].action is not Action.CREATE)
    if digest == guards.confirm and (not guards.confirm_until or now <= guards.confirm_until):
        return changes, ""
    return tuple(
        replace(change, held=f"{HELD_BY_GUARD}{reasons[index]}") if index in reasons else change
        for index, change in enumerate(changes)
    ), digest


def _reasons(changes: tuple[Change, ...], guards: Guards, managed: Mapping[str, int]) -> dict[int, str]:
    counted = [index for index, change in enumerate(changes) if change.guarded]
    per_cluster = Counter(changes[index].cluster for index in counted)
    over = {
        cluster: f"{count} deletions and releases in one cluster, at most {limit(guards, managed.get(cluster, 0))} pass"
        for cluster, count in per_cluster.items()
        if count > limit(guards, managed.get(cluster, 0))
    }
    fleet_limit = limit(guards, sum(managed.values()))
    fleet_over = len(counted) > fleet_limit
    reasons: dict[int, str] = {}
    for index in counted:
        change = changes[index]
        if change.action is Action.DELETE and change.identity[:2] in ALWAYS_CONFIRMED:
            reasons[index] = f"deleting a {change.identity.kind} needs confirmation"
        elif change.cluster in over:
            reasons[index] = over[change.cluster]
        elif fleet_over:
            reasons[index] = f"{len(counted)} deletions and releases over the fleet, at most {fleet_limit} pass"
    return reasons | _confirmed_moves(changes)


def _confirmed_moves(changes: tuple[Change, ...]) -> dict[int, str]:
    """Deletions that say themselves why a person must let them pass, and the copies that come in their place."""
    why = {change.identity: change.confirm for change in changes if change.confirm}
    if not why:
        return {}
    return {
        index: change.confirm or why[change.identity]
        for index, change in enumerate(changes)
        if change.confirm or (change.action is Action.CREATE and change.identity in why)
    }


def held_digest(held: Iterable[Change]) -> str:
    """Sixteen hex characters that stand for a set of held changes, whatever their order."""
    lines = sorted(f"{change.action} {change.cluster} {change.identity.group} {change.identity}" for change in held)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def is_held_by_guard(change: Change) -> bool:
    """Whether a person must confirm the change."""
    return change.held is not None and change.held.startswith(HELD_BY_GUARD)
