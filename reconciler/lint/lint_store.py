"""Checks of a store that need no cluster. Nothing here stops anything.

Source: design#lint.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final

from reconciler.api.fleet import Fleet
from reconciler.api.problem import NOWHERE, Problem, Severity
from reconciler.api.refs import Identity
from reconciler.containment import internal_error, try_call
from reconciler.lint.claims import known_to_be_missing, lint_overlaps, lint_selectors, lint_unclaimed
from reconciler.lint.cluster_names import lint_clusters, lint_rollouts
from reconciler.lint.template_contents import lint_definitions, lint_images, lint_makers, lint_secrets
from reconciler.lint.unused_parts import lint_overrides, lint_placement, lint_volumes
from reconciler.planner import urls_of_two_hosts
from reconciler.policy import Claims
from reconciler.rollouts import RolloutSelection
from reconciler.scheduler import NO_MAKERS, Makers

_NOTHING_STAGED: Final = RolloutSelection()
_OF_WHOLE_STORE: Final = frozenset({"no-fleet", "no-clusters"})


def lint(
    fleet: Fleet,
    claims: Claims,
    carried: Collection[Identity] = frozenset(),
    selection: RolloutSelection = _NOTHING_STAGED,
    makers: Makers = NO_MAKERS,
) -> tuple[Problem, ...]:
    """Return warnings and hints about a store, in the order of its files, each once; of Rollouts errors as well.

    `carried` are the templates that follow an owner as its dependencies: they need no policy of their own. `selection`:
    the Rollout of each template. `makers`: objects that templates make.
    """
    checks: tuple[tuple[str, Callable[[], Iterable[Problem]]], ...] = (
        ("clusters", lambda: lint_clusters(fleet)),
        ("selectors", lambda: lint_selectors(fleet, claims)),
        ("unclaimed templates", lambda: lint_unclaimed(fleet, claims, carried)),
        ("overlaps", lambda: lint_overlaps(fleet, claims)),
        ("placements", lambda: lint_placement(fleet)),
        ("overrides", lambda: lint_overrides(fleet, claims)),
        ("volumes", lambda: lint_volumes(fleet, claims)),
        ("images", lambda: lint_images(fleet)),
        ("definitions", lambda: lint_definitions(fleet)),
        ("rollouts", lambda: lint_rollouts(fleet, selection)),
        ("addresses", lambda: urls_of_two_hosts(fleet.templates.values())),
        ("secrets", lambda: lint_secrets(fleet)),
        ("what makes Secrets", lambda: lint_makers(fleet, makers)),
    )
    found = {problem for name, check in checks for problem in _found(name, check)}
    return tuple(sorted(known_to_be_missing(fleet, found)))


def errors_of_review(base: Fleet, head: Fleet) -> Iterator[Problem]:
    """Yield the errors of `head` that no plan meets: a review refuses what `validate` does.

    A store that has named no fleet or no cluster before is no fault of the change. Rollouts are checked with stages.
    """
    lacking = {problem.code for problem in lint_clusters(base)} & _OF_WHOLE_STORE
    found = (*lint_clusters(head), *lint_images(head), *lint_definitions(head), *lint_secrets(head))
    for problem in known_to_be_missing(head, found):
        if problem.severity is Severity.ERROR and problem.code not in lacking:
            yield problem


def _found(name: str, check: Callable[[], Iterable[Problem]]) -> Iterable[Problem]:
    found, fault = try_call(lambda: tuple(check()))
    if fault is None:
        return found or ()
    return (internal_error(fault, NOWHERE, f"the check of {name}", "the other checks are made"),)
