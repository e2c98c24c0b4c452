"""Selectors that select nothing, unclaimed templates, overlaps. Source: design#broken-input: broken is not absent."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Final

from reconciler.api.content import Json
from reconciler.api.fleet import Fleet, FrozenReach, Template
from reconciler.api.plan import MISSING, Direction, SettingChange
from reconciler.api.policies import ConflictResolution, OverridePolicy, PropagationPolicy, ResourceSelector, Suspension
from reconciler.api.problem import Problem, hint, warning
from reconciler.api.refs import Identity, PolicyRef, listed
from reconciler.documents import FLAVORS, OVERRIDE_KINDS, PROPAGATION_KINDS, is_namespaced, is_never_distributed
from reconciler.incremental import by_key
from reconciler.policy import Claims, claim
from reconciler.rollouts import best_of

_SAY_THAT_SOMETHING_IS_MISSING: Final = frozenset(
    {
        "affinity-matches-nothing",
        "cluster-unknown",
        "no-clusters",
        "no-fleet",
        "override-selects-nothing",
        "override-targets-nothing",
        "override-without-effect",
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


def _may_be_unread(fleet: Fleet, policy: PolicyRef, selector: ResourceSelector) -> bool:
    """Return whether a selector of a policy may mean a broken document. Its labels are unknown."""
    namespace = policy.namespace or selector.namespace
    return any(
        reach.everything
        or (reach.namespace and namespace in ("", reach.namespace))
        or any(
            selector.kind == one.kind and selector.name in ("", one.name) and namespace in ("", one.namespace)
            for one in reach.identities
        )
        for reach in _unread(fleet)
    )


def _unread(fleet: Fleet) -> Iterator[FrozenReach]:
    """Broken documents that are no policies."""
    return (reach for reach in fleet.frozen if reach.policy is None)


_OVERLAPS_SHOWN = 3


def lint_selectors(
    fleet: Fleet,
    policies: Iterable[PropagationPolicy | OverridePolicy],
    selecting: Mapping[PolicyRef, Collection[int]],
    code: str,
) -> Iterator[Problem]:
    """A warning for each selector that selects no template of the store. `selecting`: indexes of those that do."""
    by_kind: dict[str, list[Template]] = {}
    for identity, template in sorted(fleet.templates.items()):
        if not is_never_distributed(template.gvk, identity, is_admitted=template.is_admitted):
            by_kind.setdefault(identity.kind, []).append(template)
    for policy in policies:
        for index, selector in enumerate(policy.selectors):
            # A selector for another namespace was warned of when it was parsed.
            is_elsewhere = policy.ref.namespace and selector.namespace not in ("", policy.ref.namespace)
            is_idle = index not in selecting.get(policy.ref, ()) and not is_elsewhere
            if is_idle and not _may_be_unread(fleet, policy.ref, selector):
                message = _selects_nothing(by_kind.get(selector.kind, []), policy.ref, selector)
                yield warning(selector.source, f"spec.resourceSelectors[{index}]", code, message)


def _selects_nothing(of_kind: Collection[Template], ref: PolicyRef, selector: ResourceSelector) -> str:
    named = f" {selector.name}" if selector.name else ""
    namespace = selector.namespace or ref.namespace
    place = f" in {namespace}" if namespace else ""
    labels = " by label" if selector.labels is not None and not selector.name else ""
    what = f"{selector.api_version} {selector.kind}{named}{labels}{place}"
    scopes = {is_namespaced(selector.api_version.rpartition("/")[0], selector.kind)}
    if ref.namespace and False in scopes.union(bool(one.identity.namespace) for one in of_kind):
        return f"{what} selects nothing: a {selector.kind} has no namespace; write a Cluster{ref.kind} for it"
    for template in of_kind:
        identity = template.identity
        in_place = namespace in ("", identity.namespace)
        is_named = selector.name in ("", identity.name)
        if in_place and is_named and template.gvk.api_version != selector.api_version:
            return (
                f"{what} selects nothing: {identity} is written as {template.gvk.api_version}, and versions compare "
                "exactly; write the same in both"
            )
        if is_named and selector.name and not in_place:
            return f"{what} selects nothing: there is {identity}, in another namespace; check the namespace"
    names = [one.identity.name for one in of_kind if namespace in ("", one.identity.namespace)]
    close = difflib.get_close_matches(selector.name, names, n=1)
    tip = f"did you mean {close[0]}?" if close else "check apiVersion, kind, name and labels, or take it out"
    return f"{what} selects nothing in this store; {tip}"


_ARGOCD: Final = ("Argo CD", "--from-argocd")
_FLUX: Final = ("Flux", "--from-flux")
_OTHER_TOOLS: Final = {
    **dict.fromkeys((f"{kind}.argoproj.io" for kind in ("Application", "ApplicationSet", "AppProject")), _ARGOCD),
    "kustomize.toolkit.fluxcd.io": _FLUX,
    "helm.toolkit.fluxcd.io": _FLUX,
    "source.toolkit.fluxcd.io": _FLUX,
}
"""By group, or kind and group, the tool that acts on them, and the option of `import` for its documents."""


def lint_unclaimed(fleet: Fleet, claims: Claims, carried: Collection[object]) -> Iterator[Problem]:
    """Yield a hint for each template that is placed nowhere. `carried`: dependencies, placed with their owners."""
    inhabited = {identity.namespace for identity in claims.claims}
    is_unknown = _perhaps_claimed(fleet)
    for identity in claims.unclaimed:
        if is_unknown(identity):
            continue
        template = fleet.templates[identity]
        if identity in carried or is_never_distributed(template.gvk, identity, is_admitted=template.is_admitted):
            continue
        if identity.kind in PROPAGATION_KINDS | OVERRIDE_KINDS:
            # A policy of an unknown group would count as an ordinary object. Source: design#policy-groups.
            close = difflib.get_close_matches(template.gvk.api_version, list(FLAVORS), n=1, cutoff=0.3)
            message = (
                f"{template.gvk.api_version} has no policies here, so this {template.gvk.kind} does nothing; did you "
                f"mean {close[0] if close else next(iter(FLAVORS))}?"
            )
            yield warning(template.source, "apiVersion", "policy-group-unknown", message)
            continue
        if identity.group == "" and identity.kind == "Namespace":
            if identity.name in inhabited:
                continue
            message = f"nothing that a policy claims is in {identity}, and no policy claims it, so it goes nowhere"
        else:
            message = (
                f"no policy claims {identity}, so it goes nowhere unless a workload that propagates its dependencies "
                "refers to it; add it to a policy, or take it out"
            )
            if tool := _OTHER_TOOLS.get(identity.group) or _OTHER_TOOLS.get(f"{identity.kind}.{identity.group}"):
                message = (
                    f"{identity} is for {tool[0]} and does nothing here; 'reconciler import {tool[1]}' makes policies "
                    "and objects of such documents"
                )
        yield hint(template.source, "", "template-unclaimed", message)


def _perhaps_claimed(fleet: Fleet) -> Callable[[Identity], bool]:
    """Return the test of an object that an unreadable policy may claim, or a broken workload may refer to."""
    reaches = list(_unread(fleet))
    if any(reach.everything for reach in reaches):
        return lambda _: True
    broken = {identity.namespace for reach in reaches for identity in reach.identities}
    policies = {reach.policy.namespace for reach in fleet.frozen if reach.policy is not None}
    namespaces = broken | policies | {reach.namespace for reach in reaches if reach.namespace}
    return lambda one: one.namespace in namespaces or "" in policies


def lint_overlaps(fleet: Fleet, claims: Claims) -> Iterator[Problem]:
    """Hint at each pair of policies of which one loses templates to the other, with the first few and why."""
    lost = by_key(
        ((loser, claim.policy), (str(identity), why))
        for identity, claim in claims.claims.items()
        for loser, why in claim.losers
    )
    policies = {policy.ref: policy for policy in fleet.propagation}
    for (loser, winner), reasons in sorted(lost.items()):
        templates = sorted(reasons)
        names = listed([name for name, _ in templates], _OVERLAPS_SHOWN)
        message = f"{winner} wins {names} from {loser}: {templates[0][1]}"
        yield hint(policies[loser].source, "spec.resourceSelectors", "policies-overlap", message)


def takeover_changes(base: Fleet, head: Fleet) -> Iterator[SettingChange]:
    """Yield what is looser for objects that another policy or Rollout takes now. Source: design#settings-plan."""
    both = base.templates.keys() & head.templates.keys()
    if (base.propagation, base.rollouts) == (head.propagation, head.rollouts) and all(
        base.templates[one] is head.templates[one] or base.templates[one].labels == head.templates[one].labels
        for one in both
    ):
        return
    old, new = ({policy.ref: policy for policy in fleet.propagation} for fleet in (base, head))
    before, after = claim(base).claims, claim(head).claims
    claimed = sorted(both & before.keys() & after.keys())
    moved = by_key(
        ((before[one].policy, after[one].policy), one) for one in claimed if before[one].policy != after[one].policy
    )
    for (loser, winner), identities in sorted(moved.items()):
        names = f"{listed(identities, _OVERLAPS_SHOWN)}, taken from {loser}: "
        for path, values, meaning in _looser(old[loser], new[winner]):
            yield SettingChange(source=new[winner].source, document=str(winner), path=path, before=values[0],
                                after=values[1], meaning=names + meaning, direction=Direction.LOOSENS)  # fmt: skip
    unedited = {one.name: one for one in head.rollouts for was in base.rollouts
                if (was.name, was.templates) == (one.name, one.templates)}  # fmt: skip
    restaged: dict[tuple[str, str], list[Identity]] = {}
    for one in claimed if unedited else ():
        was, is_now = (
            best_of(fleet.rollouts, fleet.templates[one], claims[one].policy)
            for fleet, claims in ((base, before), (head, after))
        )
        for name in unedited.keys() & (set(was) - set(is_now)):
            restaged.setdefault((name, ", ".join(is_now)), []).append(one)
    for (name, other), identities in sorted(restaged.items()):
        meaning = f"they go by the stages of {other}" if other else "they change at once, past every gate"
        yield SettingChange(source=unedited[name].source, document=f"Rollout {name}", path="templates",
                            before=[*map(str, identities)], after=other or MISSING, meaning=meaning,
                            direction=Direction.LOOSENS)  # fmt: skip


def _looser(before: PropagationPolicy, after: PropagationPolicy) -> Iterator[tuple[str, tuple[Json, Json], str]]:
    """Yield the fields that one policy has looser than another: path, both values, and the effect."""
    if before.keep and not after.keep:
        yield "spec.preserveResourcesOnDeletion", (True, False), "what leaves the store is deleted and not released"
    values = before.conflict_resolution, after.conflict_resolution
    if values == (ConflictResolution.ABORT, ConflictResolution.OVERWRITE):
        yield "spec.conflictResolution", (str(values[0]), str(values[1])), "those of others are taken over"
    stopped = [policy.suspension.joined(Suspension()) for policy in (before, after)]
    if stopped[0].joined(stopped[1]) != stopped[1]:
        where = ["everywhere" if one.dispatching else [*one.clusters] or MISSING for one in stopped]
        yield "spec.suspension", (where[0], where[1]), "they are written where they were not"
    if before.application_failover is not None and after.application_failover is None:
        yield "spec.failover.application", (True, MISSING), "they fail over no more when they are unhealthy"
