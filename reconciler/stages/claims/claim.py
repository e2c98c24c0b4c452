"""Which policy governs each template. Recomputed each round: nothing is held by who was first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from operator import is_not

from msgspec import Struct, field

from reconciler.model.binding import Claim, Reason
from reconciler.model.fleet import Fleet, Reach, Template
from reconciler.model.policy import PropagationPolicy
from reconciler.model.problem import Problem, Severity
from reconciler.model.refs import Identity, PolicyRef
from reconciler.stages.claims.index import Match, PolicyIndex, best_matches
from reconciler.stages.claims.reach import frozen_by
from reconciler.stages.documents import CONTROL_GROUPS, is_never_distributed
from reconciler.stages.incremental import patched

PropagationMatch = Match[PropagationPolicy]


class Claims(Struct, frozen=True, kw_only=True):
    """Every template of the store is in exactly one of `claims`, `unclaimed` and `frozen`.

    `selecting` holds, by policy, the indexes of its selectors that select at least one template.
    """

    claims: Mapping[Identity, Claim] = field(default_factory=dict)
    unclaimed: tuple[Identity, ...] = ()
    frozen: Mapping[Identity, Reach] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    selecting: Mapping[PolicyRef, frozenset[int]] = field(default_factory=dict)


class ClaimMemo:
    """What the last call found, so that the next one judges only what may have changed."""

    __slots__ = ("claims", "counts", "index", "matches", "problems", "propagation", "reasons", "unclaimed")

    def __init__(self) -> None:
        self.claims = Claims()
        self.matches: dict[Identity, Sequence[PropagationMatch]] = {}
        self.counts: Counter[tuple[PolicyRef, int]] = Counter()
        self.problems: dict[Identity, Problem] = {}
        self.unclaimed: dict[Identity, None] = {}
        self.propagation: tuple[PropagationPolicy, ...] = ()
        self.index: PolicyIndex[PropagationPolicy] = PolicyIndex(())
        self.reasons = _Reasons()

    def follow(self, propagation: tuple[PropagationPolicy, ...]) -> None:
        """Take the policies of the store."""
        is_same = len(propagation) == len(self.propagation) and not any(map(is_not, propagation, self.propagation))
        if not is_same:
            self.propagation, self.index, self.reasons = propagation, PolicyIndex(propagation), _Reasons()

    def count(self, identity: Identity, matches: Sequence[PropagationMatch]) -> None:
        """Note which selectors select a template."""
        for match in self.matches.pop(identity, ()):
            if match.selector is not None:
                self.counts[match.policy.ref, match.selector] -= 1
        for match in matches:
            if match.selector is not None:
                self.counts[match.policy.ref, match.selector] += 1
        if matches:
            self.matches[identity] = matches


def claim(fleet: Fleet, memo: ClaimMemo | None = None, dirty: Iterable[Identity] | None = None) -> Claims:
    """The policy that governs each template, with the policies that also matched and why they lost.

    A PropagationPolicy of the namespace before any ClusterPropagationPolicy; then the larger priority, the more
    precise selector, the smaller name. Templates in the reach of a broken document get no claim. With a `memo` only
    `dirty` identities are judged: those whose template, or a policy that selects them, came, went or changed.
    Source: design#claim; Karmada: precedence without stickiness.
    """
    memo = memo or ClaimMemo()
    memo.follow(fleet.propagation)
    before = memo.claims
    claims: dict[Identity, Claim | None] = {}
    frozen: dict[Identity, Reach | None] = {}
    judged = fleet.templates if dirty is None else dirty
    is_same = True
    for identity in judged:
        template = fleet.templates.get(identity)
        matches = memo.index.matches(template) if template is not None else ()
        if matches or memo.matches:
            memo.count(identity, matches)
        reach = frozen_by(fleet, template) if fleet.frozen and template is not None else None
        is_unclaimed = template is not None and reach is None and not matches
        if is_unclaimed is not (identity in memo.unclaimed):
            if is_unclaimed:
                memo.unclaimed[identity] = None
            else:
                del memo.unclaimed[identity]
            is_same = False
        if reach is not None or (before.frozen and identity in before.frozen):
            frozen[identity] = reach
        if memo.problems:
            memo.problems.pop(identity, None)
        if matches and reach is None:
            claims[identity] = _claim(identity, matches, memo.reasons)
        elif before.claims and identity in before.claims:
            claims[identity] = None
        if is_unclaimed and template is not None and is_never_distributed(template.gvk, identity):
            memo.problems[identity] = _never_distributed(template)
    memo.claims = Claims(
        claims=patched(before.claims, claims),
        unclaimed=before.unclaimed if is_same else tuple(sorted(memo.unclaimed)),
        frozen=patched(before.frozen, frozen),
        problems=tuple(sorted(memo.problems.values())),
        selecting=_selecting(memo.counts),
    )
    return memo.claims


def _selecting(counts: Mapping[tuple[PolicyRef, int], int]) -> dict[PolicyRef, frozenset[int]]:
    selecting: dict[PolicyRef, set[int]] = {}
    for (ref, index), count in counts.items():
        if count:
            selecting.setdefault(ref, set()).add(index)
    return {ref: frozenset(indexes) for ref, indexes in selecting.items()}


def _claim(identity: Identity, matches: Sequence[PropagationMatch], reasons: _Reasons) -> Claim:
    if len(matches) == 1:
        return Claim(identity=identity, policy=matches[0].policy.ref, reasons=reasons.of(matches[0]))
    ranked = sorted(best_matches(matches), key=_rank)
    best = ranked[0]
    losers = tuple((match.policy.ref, _why_lost(match, best)) for match in ranked[1:])
    return Claim(identity=identity, policy=best.policy.ref, reasons=reasons.of(best), losers=losers)


def winner(matches: Sequence[PropagationMatch]) -> PropagationPolicy | None:
    """The policy that governs what all of these select; None when there are none."""
    return min(best_matches(matches), key=_rank).policy if matches else None


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
