"""Checks of a store that need no cluster, among them those of cluster names. Nothing here stops anything.

Source: design#lint.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import chain
from typing import Final

from reconciler.api.fleet import Fleet
from reconciler.api.policies import ClusterAffinity
from reconciler.api.problem import NOWHERE, Problem, Severity, warning
from reconciler.api.refs import Identity
from reconciler.containment import internal_error, try_call
from reconciler.fleet import why_nameless
from reconciler.lint.claims import known_to_be_missing, lint_overlaps, lint_selectors, lint_unclaimed
from reconciler.lint.template_contents import lint_definitions, lint_images, lint_makers, lint_secrets
from reconciler.lint.unused_parts import affinities_of, lint_overrides, lint_placement, lint_volumes
from reconciler.planner import urls_of_two_hosts
from reconciler.policy import Claims
from reconciler.rollouts import RolloutSelection, lay_out
from reconciler.scheduler import NO_MAKERS, Makers

_UNKNOWN_MAX = 20
"""So many unknown names of one list get a line of their own."""


def _all_affinities(fleet: Fleet) -> Iterator[tuple[str, ClusterAffinity]]:
    for policy in fleet.propagation:
        yield from affinities_of(policy)
        for index, weight in enumerate(policy.placement.scheduling.static_weights):
            base = "spec.placement.replicaScheduling.weightPreference.staticWeightList"
            yield f"{base}[{index}].targetCluster", weight.target
    for override in fleet.overrides:
        for index, rule in enumerate(override.rules):
            if rule.target is not None:
                yield f"spec.overrideRules[{index}].targetCluster", rule.target


def lint_clusters(fleet: Fleet) -> Iterator[Problem]:
    """Errors of a store without Fleet or Cluster documents, and warnings about cluster names in policies."""
    if not fleet.settings.name:
        yield Problem(source=fleet.settings.source, code="no-fleet", message=why_nameless(fleet))
    if not fleet.clusters and fleet.templates:
        message = "the store declares no cluster, so nothing is placed anywhere; add a Cluster document for each member"
        yield Problem(source=fleet.settings.source, code="no-clusters", message=message)
    ha = fleet.settings.ha
    if ha is not None and ha.cluster not in fleet.clusters:
        near = difflib.get_close_matches(ha.cluster, fleet.clusters, 1)
        meant = f"; did you mean {near[0]}?" if near else ""
        message = f"no document declares the cluster {ha.cluster}, so nobody can lead{meant}"
        yield Problem(source=ha.source, path="spec.ha.cluster", code="lease-cluster-unknown", message=message)
    for path, affinity in _all_affinities(fleet):
        yield from _in_list(fleet, affinity, f"{path}.clusterNames", affinity.cluster_names)
        yield from _in_list(fleet, affinity, f"{path}.exclude", affinity.exclude)
        for name in sorted(set(affinity.cluster_names) & set(affinity.exclude)):
            message = f"{name} is both included and excluded, so it is excluded; keep one of the two"
            yield warning(affinity.source, path, "cluster-included-and-excluded", message)
    for policy in fleet.propagation:
        for name in policy.suspension.clusters:
            if fleet.clusters and name not in fleet.clusters:
                path = "spec.suspension.dispatchingOnClusters.clusterNames"
                yield warning(policy.source, path, "cluster-unknown", _unknown(fleet, name))


def _in_list(fleet: Fleet, affinity: ClusterAffinity, path: str, names: tuple[str, ...]) -> Iterator[Problem]:
    for name, count in sorted(Counter(names).items()):
        if count > 1:
            message = f"{name} stands {count} times in one list; once is enough"
            yield warning(affinity.source, path, "cluster-repeated", message)
    unknown = sorted(set(names) - fleet.clusters.keys()) if fleet.clusters else []
    for name in unknown[:_UNKNOWN_MAX]:
        yield warning(affinity.source, path, "cluster-unknown", _unknown(fleet, name))
    if len(unknown) > _UNKNOWN_MAX:
        message = f"no Cluster document declares {len(unknown) - _UNKNOWN_MAX:,} more of the names in this list"
        yield warning(affinity.source, path, "cluster-unknown", message)


def _unknown(fleet: Fleet, name: str) -> str:
    close = difflib.get_close_matches(name, sorted(fleet.clusters), n=1)
    tip = f"did you mean {close[0]}?" if close else "add a Cluster document for it, or take the name out"
    return f"no Cluster document declares {name}; {tip}"


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
    staged = selection.problems
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
        ("rollouts", lambda: (*chain(*(lay_out(one, fleet.clusters).problems for one in fleet.rollouts)), *staged)),
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
