"""Checks of a store that need no cluster. Nothing here stops anything.

Source: design#lint.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Final

from reconciler.containment import contained, internal_error
from reconciler.model.fleet import Fleet
from reconciler.model.problem import NOWHERE, Problem
from reconciler.model.refs import Identity
from reconciler.stages.claims import Claims
from reconciler.stages.dependencies import NO_MAKERS, Makers
from reconciler.stages.lint.claims import lint_overlaps, lint_selectors, lint_unclaimed
from reconciler.stages.lint.clusters import lint_clusters
from reconciler.stages.lint.makers import lint_makers
from reconciler.stages.lint.overrides import lint_overrides
from reconciler.stages.lint.placement import lint_placement
from reconciler.stages.lint.rollouts import lint_rollouts
from reconciler.stages.lint.secrets import lint_secrets
from reconciler.stages.lint.unread import known_to_be_missing
from reconciler.stages.lint.volumes import lint_volumes
from reconciler.stages.rollouts import Selection

_NOTHING_STAGED: Final = Selection()


def lint(
    fleet: Fleet,
    claims: Claims,
    carried: Collection[Identity] = frozenset(),
    selection: Selection = _NOTHING_STAGED,
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
        ("rollouts", lambda: lint_rollouts(fleet, selection)),
        ("secrets", lambda: lint_secrets(fleet)),
        ("what makes Secrets", lambda: lint_makers(fleet, makers)),
    )
    found = {problem for name, check in checks for problem in _found(name, check)}
    return tuple(sorted(known_to_be_missing(fleet, found)))


def _found(name: str, check: Callable[[], Iterable[Problem]]) -> Iterable[Problem]:
    found, fault = contained(lambda: tuple(check()))
    if fault is None:
        return found or ()
    return (internal_error(fault, NOWHERE, f"the check of {name}", "the other checks are made"),)
