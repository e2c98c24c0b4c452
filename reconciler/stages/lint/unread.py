"""Possible content of broken files: it does not count as missing.

Source: design#broken-input: the content of a broken document is unknown, not absent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from reconciler.model.fleet import Fleet, Reach
from reconciler.model.policy import ResourceSelector
from reconciler.model.problem import Problem
from reconciler.model.refs import Identity, PolicyRef

_SAY_THAT_SOMETHING_IS_MISSING: Final = frozenset(
    {
        "affinity-matches-nothing",
        "cluster-unknown",
        "no-clusters",
        "override-selects-nothing",
        "override-targets-nothing",
        "selector-matches-nothing",
        "weights-all-outside",
    }
)


def known_to_be_missing(fleet: Fleet, problems: Iterable[Problem]) -> Iterator[Problem]:
    """Yield the problems, without those of missing things that an unreadable file may hold."""
    is_anything_unread = any(reach.everything for reach in _unread(fleet))
    for problem in problems:
        if not (is_anything_unread and problem.code in _SAY_THAT_SOMETHING_IS_MISSING):
            yield problem


def may_be_unread(fleet: Fleet, policy: PolicyRef, selector: ResourceSelector) -> bool:
    """Return whether a selector of a policy may mean a broken document. Its labels are unknown."""
    namespace = policy.namespace or selector.namespace
    return any(
        reach.everything
        or (reach.namespace and namespace in ("", reach.namespace))
        or any(_is_meant(selector, namespace, identity) for identity in reach.identities)
        for reach in _unread(fleet)
    )


def _is_meant(selector: ResourceSelector, namespace: str, identity: Identity) -> bool:
    return (
        selector.kind == identity.kind
        and selector.name in ("", identity.name)
        and namespace in ("", identity.namespace)
    )


def _unread(fleet: Fleet) -> Iterator[Reach]:
    """Broken documents that are no policies."""
    return (reach for reach in fleet.frozen if reach.policy is None)
