"""The policies of objects that have left the store.

A removed template has no claim. Two policies may govern it: the one that would claim it if it were still there
(renamed, or replaced in the same commit), and the one that applied it, which its copies name. Source: design#keep: a
new value in the same commit counts only if it keeps more.
"""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.model.fleet import Template
from reconciler.model.policy import PropagationPolicy
from reconciler.model.refs import PolicyRef
from reconciler.stages.claims.claim import winner
from reconciler.stages.claims.index import PolicyIndex


class Claimants:
    """The claimants of one store. Computed on first use, since most rounds lose nothing."""

    __slots__ = ("_by_ref", "_index", "_policies")

    def __init__(self, policies: Sequence[PropagationPolicy]) -> None:
        self._policies = policies
        self._by_ref: dict[PolicyRef, PropagationPolicy] = {}
        self._index: PolicyIndex[PropagationPolicy] | None = None

    def of(self, gone: Template, owner: PolicyRef | None) -> tuple[PropagationPolicy, ...]:
        """The policy that would claim a template, and `owner`, the one that applied it, where the store has them."""
        if self._index is None:
            self._by_ref = {policy.ref: policy for policy in self._policies}
            self._index = PolicyIndex(self._policies)
        found = (winner(self._index.matches(gone)), self._by_ref.get(owner) if owner is not None else None)
        return tuple(policy for policy in found if policy is not None)
