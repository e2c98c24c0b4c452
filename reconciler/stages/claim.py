"""Which policy governs each template. Recomputed each round: nothing is held by who was first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from reconciler.model.binding import Claim, Reason
from reconciler.model.fleet import Fleet, Reach, Template
from reconciler.model.policy import PropagationPolicy
from reconciler.model.problem import Problem, Severity
from reconciler.model.refs import Identity, PolicyRef
from reconciler.stages.policy_index import Match, PolicyIndex, best_matches
from reconciler.stages.reach import frozen_by
from reconciler.stages.system_namespaces import CONTROL_GROUPS, is_never_distributed

PropagationMatch = Match[PropagationPolicy]


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """Every template of the store is in exactly one of `claims`, `unclaimed` and `frozen`.

    `selecting` holds, by policy, the indexes of its selectors that select at least one template.
    """

    claims: Mapping[Identity, Claim] = field(default_factory=dict)
    unclaimed: tuple[Identity, ...] = ()
    frozen: Mapping[Identity, Reach] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    selecting: Mapping[PolicyRef, frozenset[int]] = field(default_factory=dict)


def claim(fleet: Fleet) -> Claims:
    """The policy that governs each template, with the policies that also matched and why they lost.

    A PropagationPolicy of the namespace before any ClusterPropagationPolicy; then the larger priority, the more
    precise selector, the smaller name. Templates in the reach of a broken document get no claim.
    Source: design, which policy claims a template; Karmada: precedence without stickiness.
    """
    index = PolicyIndex(fleet.propagation)
    reasons = _Reasons()
    claims: dict[Identity, Claim] = {}
    unclaimed: list[Identity] = []
    frozen: dict[Identity, Reach] = {}
    problems: list[Problem] = []
    selecting: dict[PolicyRef, set[int]] = {}
    for identity in sorted(fleet.templates):
        template = fleet.templates[identity]
        matches = index.matches(template)
        for match in matches:
            if match.selector is not None:
                selecting.setdefault(match.policy.ref, set()).add(match.selector)
        reach = frozen_by(fleet, template) if fleet.frozen else None
        if reach is not None:
            frozen[identity] = reach
        elif matches:
            claims[identity] = _claim(identity, matches, reasons)
        else:
            unclaimed.append(identity)
            if is_never_distributed(template.gvk, identity):
                problems.append(_never_distributed(template))
    return Claims(
        claims=claims,
        unclaimed=tuple(unclaimed),
        frozen=frozen,
        problems=tuple(sorted(problems)),
        selecting={ref: frozenset(indexes) for ref, indexes in selecting.items()},
    )


def _claim(identity: Identity, matches: Sequence[PropagationMatch], reasons: _Reasons) -> Claim:
    if len(matches) == 1:
        return Claim(identity=identity, policy=matches[0].policy.ref, reasons=reasons.of(matches[0]))
    ranked = sorted(best_matches(matches), key=_rank)
    winner = ranked[0]
    losers = tuple((match.policy.ref, _why_lost(match, winner)) for match in ranked[1:])
    return Claim(identity=identity, policy=winner.policy.ref, reasons=reasons.of(winner), losers=losers)


def _rank(match: PropagationMatch) -> tuple[bool, int, int, PolicyRef]:
    policy = match.policy
    return (policy.is_cluster_scoped, -policy.priority, -match.score, policy.ref)


def _why_lost(loser: PropagationMatch, winner: PropagationMatch) -> str:
    """Why a policy lost, as the end of the sentence "it lost because …"."""
    won = winner.policy.ref
    if loser.policy.is_cluster_scoped and not winner.policy.is_cluster_scoped:
        return f"{won} is of the namespace itself, which comes before cluster policies"
    if loser.policy.priority != winner.policy.priority:
        return f"its priority {loser.policy.priority} is less than {winner.policy.priority} of {won}"
    if loser.score != winner.score:
        return f"it selects {loser.score.words}, {won} {winner.score.words}"
    return f"{won} selects as precisely and its name comes first"


class _Reasons:
    """Reasons of winners: one for each selector that wins, whatever it selects, since thousands share it."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[tuple[PolicyRef, int | None], tuple[Reason, ...]] = {}

    def of(self, winner: PropagationMatch) -> tuple[Reason, ...]:
        """The reason of a claim, with the place of the selector that decided it."""
        key = (winner.policy.ref, winner.selector)
        known = self._known.get(key)
        if known is None:
            policy, index = winner.policy, winner.selector
            source = policy.source if index is None else policy.selectors[index].source
            text = f"{policy.ref} selects it {winner.score.words}"
            known = self._known[key] = (Reason(rule="claim", text=text, source=source),)
        return known


def _never_distributed(template: Template) -> Problem:
    identity = template.identity
    if template.gvk.group in CONTROL_GROUPS:
        why = f"{identity} belongs to Karmada's control API and is never distributed; take it out of the store"
    else:
        where = identity.namespace or identity.name
        why = f"{identity} is never distributed: {where} is a system namespace; move it, or take it out of the store"
    return Problem(source=template.source, code="never-distributed", message=why, severity=Severity.WARNING)
