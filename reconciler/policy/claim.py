"""The policy that governs each template, and the reach of broken documents: objects in it are left as they are.

Claims are recomputed each round: being first gives none. A removed template has no claim. Two policies may govern it:
the one that would claim it if it were still there (renamed, or replaced in the same commit), and the one that applied
it, which its copies name. Source: design#keep: a new value in the same commit counts only if it keeps more.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import product
from operator import is_not
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.api.binding import Claim, Reason
from reconciler.api.fleet import Fleet, FrozenReach, Template
from reconciler.api.policies import PropagationPolicy
from reconciler.api.problem import Problem, warning
from reconciler.api.refs import Identity, PolicyRef
from reconciler.containment import try_call
from reconciler.documents import CONTROL_GROUPS, is_never_distributed
from reconciler.incremental import Dependents, Table, by_key, union
from reconciler.policy.indexes import PolicyIndex, best_matches
from reconciler.policy.match import Bucket, Match


def hold_new_claims(fleet: Fleet, placed: Callable[[Identity], bool]) -> Fleet:
    """Return the fleet in which broken new files freeze only unplaced objects, which they could claim again.

    Such a document was not active before, so that placed objects go on without it. Source: design#broken-input.
    """
    if not any(reach.is_new for reach in fleet.frozen):
        return fleet
    waiting = [template for identity, template in fleet.templates.items() if not placed(identity)]
    frozen = list(fleet.frozen)
    for number, reach in enumerate(frozen):
        if reach.is_new:
            alone = FrozenReaches((reach,))
            reached = frozenset(template.identity for template in waiting if alone.by(template) is not None)
            frozen[number] = FrozenReach(source=reach.source, is_new=True, identities=reached, policy=reach.policy)
    return replace(fleet, frozen=tuple(frozen))


class FrozenReaches:
    """The broken documents of a store by their reach, so that a template meets only those that may concern it.

    Source: design#broken-input: no write, no delete, no new claim for an object that a broken document might select.
    """

    def __init__(self, reaches: Sequence[FrozenReach]) -> None:
        self.reaches = reaches
        self._is_sorted_in = False
        self._everything = len(reaches)
        self._identities: dict[Identity, int] = {}
        self._namespaces: dict[str, int] = {}
        self._buckets: dict[tuple[str, str, str], Bucket[FrozenReach]] = {}

    def _sort_in(self) -> None:
        """Build the index when the first template comes: most rounds ask for none."""
        self._is_sorted_in = True
        for number, reach in enumerate(self.reaches):
            if reach.everything:
                self._everything = min(self._everything, number)
            for identity in reach.identities:
                self._identities.setdefault(identity, number)
            if reach.selectors:
                # Add readable selectors: they are more precise than a namespace and replace it.
                own = reach.policy.namespace if reach.policy else ""
                for selector in reach.selectors:
                    if not own or selector.namespace in ("", own):
                        key = (selector.api_version, selector.kind, own or selector.namespace)
                        self._buckets.setdefault(key, Bucket()).add(reach, number, selector)
            elif reach.namespace:
                self._namespaces.setdefault(reach.namespace, number)

    def by(self, template: Template) -> FrozenReach | None:
        """The first broken document whose reach holds a template, None when nothing froze it."""
        if not self.reaches:
            return None
        if not self._is_sorted_in:
            self._sort_in()
        identity, nowhere = template.identity, len(self.reaches)
        first = min(
            self._everything,
            self._identities.get(identity, nowhere),
            self._namespaces.get(identity.namespace, nowhere) if identity.namespace else nowhere,
        )
        if first and self._buckets:
            # A selector with unknown version or kind may mean any.
            gvk, matches = template.gvk, list[Match[FrozenReach]]()
            namespaces = (identity.namespace, "") if identity.namespace else ("",)
            for key in product((gvk.api_version, ""), (gvk.kind, ""), namespaces):
                if key in self._buckets:
                    self._buckets[key].collect(identity.name, template.labels, matches)
            first = min([first, *(match.selector for match in matches if match.selector is not None)])
        return self.reaches[first] if first < nowhere else None


PropagationMatch = Match[PropagationPolicy]


class Claims(Struct, frozen=True, kw_only=True):
    """Every template of the store is in exactly one of `claims`, `unclaimed` and `frozen`.

    `selecting` holds, by policy, the indexes of its selectors that select at least one template. `faults`: templates
    that could not be processed, with their exceptions; they are to be frozen, and claimed again without them.
    """

    claims: Mapping[Identity, Claim] = field(default_factory=dict)
    unclaimed: Collection[Identity] = ()
    frozen: Mapping[Identity, FrozenReach] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    selecting: Mapping[PolicyRef, frozenset[int]] = field(default_factory=dict)
    faults: Mapping[Identity, Exception] = field(default_factory=dict)


class ClaimTables:
    """The templates, the policies and the claims of the last call.

    `touched`: templates that came, went or changed, or are selected by a policy that did, or were. `policies`: the
    policy that claims each template.
    """

    def __init__(self) -> None:
        self.templates = Table[Identity, Template]()
        self.touched: AbstractSet[Identity] = frozenset()
        self._by_ref = Table[PolicyRef, PropagationPolicy]()
        self.policies = Table[Identity, PropagationPolicy]()
        self.claims = Table[Identity, Claim]()
        self.frozen = Table[Identity, FrozenReach]()
        self.unclaimed = Table[Identity, bool]()
        self.problems = Table[Identity, Problem]()
        self.selected = Dependents[Identity, tuple[PolicyRef, int]]()
        """Template to the selectors that select it."""
        self.broken = FrozenReaches(())
        self.propagation: tuple[PropagationPolicy, ...] = ()
        self.index: PolicyIndex[PropagationPolicy] = PolicyIndex(())
        self.known: dict[tuple[int, ...], _Decided] = {}
        """By the ids of matches, which the index keeps: thousands of templates share them."""

    def follow(self, fleet: Fleet) -> None:
        """Update the templates and policies of the store, and its broken documents."""
        is_first, propagation = not self.templates.rows, fleet.propagation
        both = [self._by_ref.rows, {policy.ref: policy for policy in propagation}]
        self.templates.replace(fleet.templates)
        self._by_ref.replace(both[1])
        self.touched = self.templates.changed
        if self._by_ref.changed and not is_first:
            edited = PolicyIndex(policies[ref] for policies in both for ref in self._by_ref.changed if ref in policies)
            selected = {identity for identity, template in fleet.templates.items() if edited.matches(template)}
            self.touched = union(self.touched, selected)
        if fleet.frozen is not self.broken.reaches:
            self.broken = FrozenReaches(fleet.frozen)
        is_same = len(propagation) == len(self.propagation) and not any(map(is_not, propagation, self.propagation))
        if not is_same:
            self.propagation, self.index, self.known = propagation, PolicyIndex(propagation), {}

    def policy_of(self, identity: Identity) -> PropagationPolicy | None:
        """Return the policy that claims a template."""
        claim = self.claims.rows.get(identity)
        return self._by_ref.rows[claim.policy] if claim is not None else None


def claim(fleet: Fleet, tables: ClaimTables | None = None) -> Claims:
    """The policy that governs each template, with the policies that also matched and why they lost.

    A PropagationPolicy of the namespace before any ClusterPropagationPolicy; then the larger priority, the more
    precise selector, the smaller name. Templates in the reach of a broken document get no claim. `tables`: of earlier
    calls, with fleets that have the same broken documents. Source: design#claim; Karmada: claims without stickiness.
    """
    tables = tables or ClaimTables()
    tables.follow(fleet)
    claims: dict[Identity, Claim | None] = {}
    frozen: dict[Identity, FrozenReach | None] = {}
    unclaimed: dict[Identity, bool | None] = {}
    problems: dict[Identity, Problem | None] = {}
    faults: dict[Identity, Exception] = {}
    # One walk for all tables, without a step for templates without results, as are most of a large store.
    for identity, template, looked in _matched(tables, faults):
        matches, reach = looked
        if matches or tables.selected.looked_at:
            tables.selected.put(identity, [(m.policy.ref, m.selector) for m in matches if m.selector is not None])
        is_unclaimed = template is not None and reach is None and not matches
        if reach is not None or tables.frozen.rows:
            frozen[identity] = reach
        if matches or tables.claims.rows:
            claims[identity] = _claim(identity, matches, tables.known) if matches and reach is None else None
        if is_unclaimed or tables.unclaimed.rows:
            unclaimed[identity] = is_unclaimed or None
        problem = _never_distributed(template) if is_unclaimed and template is not None else None
        if problem is not None or tables.problems.rows:
            problems[identity] = problem
    tables.claims.put(claims)
    tables.frozen.put(frozen)
    tables.unclaimed.put(unclaimed)
    tables.problems.put(problems)
    tables.policies.derive(tables.policy_of, tables.touched, within=[tables.claims.rows])
    return Claims(
        claims=tables.claims.rows,
        unclaimed=tables.unclaimed.rows,
        frozen=tables.frozen.rows,
        problems=tuple(sorted(tables.problems.rows.values())),
        selecting={ref: frozenset(indexes) for ref, indexes in by_key(tables.selected.looked_at).items()},
        faults=faults,
    )


_Looked = tuple[Sequence[PropagationMatch], FrozenReach | None]
_GONE: Final[_Looked] = ((), None)
_Decided = tuple[PolicyRef, tuple[Reason, ...], tuple[tuple[PolicyRef, str], ...]]
"""The policy that governs, why, and the others with why they lost."""


def _matched(
    tables: ClaimTables, faults: dict[Identity, Exception]
) -> Iterator[tuple[Identity, Template | None, _Looked]]:
    """Yield each template that was touched, with its selectors and its reach; exceptions go to the `faults`."""
    for identity in tables.touched:
        template = tables.templates.rows.get(identity)
        looked, fault = try_call(_matches, tables, template)
        if fault is not None:
            faults[identity] = fault
        elif looked is not None:
            yield identity, template, looked


def _matches(tables: ClaimTables, template: Template | None) -> _Looked:
    if template is None:
        return _GONE
    reach = tables.broken.by(template)
    if reach is None:
        return tables.index.matches(template), None
    return try_call(tables.index.matches, template).value or (), reach


def _claim(identity: Identity, matches: Sequence[PropagationMatch], known: dict[tuple[int, ...], _Decided]) -> Claim:
    ids = tuple(map(id, matches))
    if ids not in known:
        best, *others = sorted(best_matches(matches), key=_rank)
        policy, index = best.policy, best.selector
        source = policy.source if index is None else policy.selectors[index].source
        reason = Reason(rule="claim", text=f"{policy.ref} selects it {best.score.words}", source=source)
        known[ids] = policy.ref, (reason,), tuple((other.policy.ref, _why_lost(other, best)) for other in others)
    ref, reasons, losers = known[ids]
    return Claim(identity=identity, policy=ref, reasons=reasons, losers=losers)


def winner(matches: Sequence[PropagationMatch]) -> PropagationPolicy | None:
    """Return the policy that governs templates with these matches; None if there are none."""
    return min(best_matches(matches), key=_rank).policy if matches else None


def _rank(match: PropagationMatch) -> tuple[bool, int, int, PolicyRef]:
    policy = match.policy
    return (policy.ref.is_cluster_scoped, -policy.priority, -match.score, policy.ref)


def _why_lost(loser: PropagationMatch, winner: PropagationMatch) -> str:
    """Return why a policy lost, as the end of the sentence "it lost because …"."""
    won = winner.policy.ref
    if loser.policy.ref.is_cluster_scoped and not winner.policy.ref.is_cluster_scoped:
        return f"{won} is of the namespace itself, which comes before cluster policies"
    if loser.policy.priority != winner.policy.priority:
        return f"its priority {loser.policy.priority} is less than {winner.policy.priority} of {won}"
    if loser.score != winner.score:
        return f"it selects {loser.score.words}, {won} {winner.score.words}"
    return f"{won} selects as precisely and its name comes first"


def _never_distributed(template: Template) -> Problem | None:
    identity = template.identity
    if not is_never_distributed(template.gvk, identity, is_admitted=template.is_admitted):
        return None
    if template.gvk.group in CONTROL_GROUPS:
        why = f"{identity} belongs to Karmada's control API and is never distributed; take it out of the store"
    else:
        where = identity.namespace or identity.name
        why = f"{identity} is never distributed: {where} is a system namespace; move it, or take it out of the store"
    return warning(template.source, "", "never-distributed", why)
