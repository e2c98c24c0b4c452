"""Changes that were tried and not made: each stays a failure, with its error, until it is made or no longer due."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from reconciler.daemon.round.act import Result
from reconciler.engine import Round
from reconciler.model.refs import Identity

Failures = Mapping[tuple[str, Identity], str]
"""(cluster, identity) to what the API server, or the way to it, said."""


def failures_after(before: Failures, picture: Round, results: Iterable[Result]) -> Failures:
    """The failures after a round. `picture`: what is due after it, over the whole fleet (what is held waits)."""
    tried = {(result.change.cluster, result.change.identity): result.error for result in results}
    found = {**before, **tried}
    if not any(found.values()):
        return {}
    due = {(change.cluster, change.identity) for change in picture.plan.changes if change.held is None}
    return {copy: error for copy, error in found.items() if error and copy in due}
