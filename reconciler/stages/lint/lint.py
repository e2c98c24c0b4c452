"""Everything that can be said about a store without looking at a cluster. Nothing here stops anything.

Source: design#lint.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import chain

from reconciler.model.fleet import Fleet
from reconciler.model.problem import Problem
from reconciler.model.refs import Identity
from reconciler.stages.claims import Claims
from reconciler.stages.lint.claims import lint_overlaps, lint_selectors, lint_unclaimed
from reconciler.stages.lint.clusters import lint_clusters
from reconciler.stages.lint.overrides import lint_overrides
from reconciler.stages.lint.placement import lint_placement
from reconciler.stages.lint.volumes import lint_volumes


def lint(fleet: Fleet, claims: Claims, carried: Collection[Identity] = frozenset()) -> tuple[Problem, ...]:
    """Warnings and hints about a store, in the order of its files, each once.

    `carried` are the templates that follow an owner as its dependencies: they need no policy of their own.
    """
    found = chain(
        lint_clusters(fleet),
        lint_selectors(fleet, claims),
        lint_unclaimed(fleet, claims, carried),
        lint_overlaps(fleet, claims),
        lint_placement(fleet),
        lint_overrides(fleet, claims),
        lint_volumes(fleet, claims),
    )
    return tuple(sorted(set(found)))
