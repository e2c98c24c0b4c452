"""Differences between two revisions of the store in staged parts: bodies, and the overrides of them.

Source: ADR 18: placement is never staged, so policies that propagate and Cluster documents are not compared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from reconciler.model.fleet import Fleet
from reconciler.model.override import OverridePolicy
from reconciler.model.refs import Identity, PolicyRef
from reconciler.stages.claims import PolicyIndex
from reconciler.stages.incremental import changed_keys


def differing(one: Fleet, other: Fleet, is_meant: Callable[[Identity], bool]) -> set[Identity]:
    """Return the selected templates that differ between the two revisions, or whose overrides do."""
    if one is other:
        return set()
    changed = changed_keys(one.templates, other.templates)
    found = {identity for identity in changed if is_meant(identity) and not _is_equal(one, other, identity)}
    index = _changed_overrides(one, other)
    if index.is_empty:
        return found
    for fleet in (one, other):
        found.update(
            identity
            for identity, template in fleet.templates.items()
            if identity not in found and is_meant(identity) and index.matches(template)
        )
    return found


def stages_the_same(one: Fleet, other: Fleet, is_meant: Callable[[Identity], bool]) -> bool:
    """Return whether a Rollout of the selected templates brings the same to a cluster with either revision."""
    return not differing(one, other, is_meant)


def _is_equal(one: Fleet, other: Fleet, identity: Identity) -> bool:
    """Return whether only the place in the store differs."""
    before, after = one.templates.get(identity), other.templates.get(identity)
    return before is not None and after is not None and (before.gvk, before.digest) == (after.gvk, after.digest)


def _changed_overrides(one: Fleet, other: Fleet) -> PolicyIndex[OverridePolicy]:
    old = {policy.ref: policy for policy in one.overrides}
    new = {policy.ref: policy for policy in other.overrides}
    changed = [ref for ref in sorted(changed_keys(old, new)) if _digest(old, ref) != _digest(new, ref)]
    return PolicyIndex(side[ref] for ref in changed for side in (old, new) if ref in side)


def _digest(policies: Mapping[PolicyRef, OverridePolicy], ref: PolicyRef) -> str:
    found = policies.get(ref)
    return found.digest if found is not None else ""
