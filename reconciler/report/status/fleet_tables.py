"""The parts of the state document about the whole store; unchanged ones are made once.

A fleet of 10,000 workloads has 500 policies and 15,000 templates that no policy claims, and a commit concerns one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from operator import is_
from types import MappingProxyType
from typing import Any, Final

from reconciler.engine import Decision
from reconciler.model.binding import Binding
from reconciler.model.ledger import AppliedRow, Ledger
from reconciler.model.refs import Identity, PolicyRef
from reconciler.model.tree import Json, JsonObject
from reconciler.report.json_parts import resource_part
from reconciler.report.status.problem_rows import ProblemRows
from reconciler.stages.incremental import changed_keys

Copy = tuple[str, Identity]
_NOTHING: Final[Mapping[Any, Any]] = MappingProxyType({})


class FleetTables:
    """The lists of the last schedule, and each policy's row."""

    def __init__(self) -> None:
        """Start with nothing made."""
        self._decision: Decision | None = None
        self._bindings: dict[PolicyRef, list[Binding]] = {}
        self._rows: dict[PolicyRef, JsonObject] = {}
        self._policies: list[Json] = []
        self._unclaimed: list[Json] = []
        self.problems = ProblemRows()

    def of(
        self, decision: Decision, ledger: Ledger = _NOTHING, frozen: Iterable[Copy] = ()
    ) -> tuple[list[Json], list[Json]]:
        """Return every propagation policy with its placements, by name; and the unplaced templates, sorted.

        Frozen objects are not scheduled: they count as in the `ledger`, and `frozen` of their row is their number.
        `frozen`: copies beside those that the schedule freezes.
        """
        before, self._decision = self._decision, decision
        if before is not decision:
            placed = changed_keys(before.bindings, decision.bindings) if before is not None else set()
            if before is None or placed or _are_policies_other(before, decision):
                self._policies = self._policy_rows(decision)
            if before is None or _are_unclaimed_other(before, decision, placed):
                self._unclaimed = _unclaimed(decision)
        kept = (decision.frozen | {identity for _, identity in frozen}) - decision.bindings.keys()
        return _with_frozen(self._policies, kept, ledger) if kept else self._policies, self._unclaimed

    def _policy_rows(self, decision: Decision) -> list[Json]:
        """One that selects nothing has a row, too."""
        bindings: dict[PolicyRef, list[Binding]] = {policy.ref: [] for policy in decision.fleet.propagation}
        for identity, claim in decision.claims.claims.items():
            binding = decision.bindings.get(identity)
            if binding is not None:
                bindings.setdefault(claim.policy, []).append(binding)
        self._rows = {
            policy: self._rows[policy] if _are_same(self._bindings.get(policy), found) else _policy(policy, found)
            for policy, found in bindings.items()
        }
        self._bindings = bindings
        return [self._rows[policy] for policy in sorted(self._rows, key=str)]


def _with_frozen(policies: list[Json], frozen: Collection[Identity], ledger: Ledger) -> list[Json]:
    """Return the rows with the recorded placements of frozen objects added."""
    copies: dict[str, list[AppliedRow]] = {}
    for rows in ledger.values():
        for identity in rows.keys() & frozen:
            if rows[identity].policy and not rows[identity].dependency:
                copies.setdefault(rows[identity].policy, []).append(rows[identity])
    found = {str(row["policy"]): row for row in policies if isinstance(row, Mapping)}
    for policy, known in copies.items():
        row = found.get(policy, {"policy": policy, **_placed([])})
        replicas = [copy.replicas for copy in known if copy.replicas is not None]
        found[policy] = {
            **row,
            "resources": row["resources"] + (count := len({copy.identity for copy in known})),
            "clusters": sorted({*row["clusters"], *(copy.cluster for copy in known)}),
            "replicas": sum(replicas, row["replicas"] or 0) if replicas else row["replicas"],
            "frozen": count,
        }
    return [found[policy] for policy in sorted(found)]


def _are_policies_other(before: Decision, after: Decision) -> bool:
    old, new = before.fleet.propagation, after.fleet.propagation
    is_same = old is new or [policy.ref for policy in old] == [policy.ref for policy in new]
    return not is_same or bool(changed_keys(before.claims.claims, after.claims.claims))


def _are_unclaimed_other(before: Decision, after: Decision, placed: set[Identity]) -> bool:
    unclaimed = after.claims.unclaimed
    if unclaimed is not before.claims.unclaimed and unclaimed != before.claims.unclaimed:
        return True
    edited = changed_keys(before.fleet.templates, after.fleet.templates)
    return any(identity in unclaimed for identity in placed | edited)


def _unclaimed(decision: Decision) -> list[Json]:
    templates, bindings = decision.fleet.templates, decision.bindings
    return [
        resource_part(templates[found].gvk, found)
        for found in sorted(decision.claims.unclaimed)
        if found not in bindings
    ]


def _are_same(before: list[Binding] | None, now: list[Binding]) -> bool:
    """Return whether these are the same objects: a rescheduled binding is a new object."""
    return before is not None and len(before) == len(now) and all(map(is_, before, now))


def _policy(policy: PolicyRef, bindings: list[Binding]) -> JsonObject:
    return {"policy": str(policy), **_placed(bindings)}


def _placed(bindings: list[Binding]) -> JsonObject:
    counted = [target.replicas for binding in bindings for target in binding.targets if target.replicas is not None]
    return {
        "resources": len(bindings),
        "clusters": sorted({target.cluster for binding in bindings for target in binding.targets}),
        "replicas": sum(counted) if counted else None,
        "unplaced": sum(binding.unplaced for binding in bindings),
    }
