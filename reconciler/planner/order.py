"""The order in which changes are made: what others need first, deletions last and in reverse.

Source: design#waves: dependency graph and kind order (CRD and Namespace ready first); Karmada has no order and relies
on retries. Packages with hooks or waves: what is not in turn waits. Source: ADR 26.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial

from msgspec.structs import replace

from reconciler.api.clusters import Health, LiveObject, RunOutcome
from reconciler.api.content import dig
from reconciler.api.plan import Action, Cause, Change, HeldBy, Hold, Manifest
from reconciler.api.refs import Copy, Identity
from reconciler.containment import try_call
from reconciler.fleet_snapshot import FleetSnapshot
from reconciler.observations import has_succeeded
from reconciler.ownership import read_owner
from reconciler.scheduler import Schedule
from reconciler.templates import ONCE_HEALTHY, RUNS_ONCE, THE_REST, Turn, hook_of, package_of, turn_of

ManifestsInForce = Mapping[str, Mapping[Identity, Manifest]]

_RANKS = (
    ("CustomResourceDefinition", "Namespace"),
    ("PriorityClass", "RuntimeClass", "StorageClass", "CSIDriver", "IngressClass", "GatewayClass"),
    ("PersistentVolume",),
    ("ServiceAccount", "ClusterRole", "Role", "LimitRange", "ResourceQuota", "NetworkPolicy", "ReferenceGrant"),
    ("ClusterRoleBinding", "RoleBinding", "ConfigMap", "Secret"),
    ("PersistentVolumeClaim",),
    ("Service", "PodDisruptionBudget", "Gateway"),
)
_LAST = (
    (
        "Ingress", "HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute", "UDPRoute", "BackendTLSPolicy",
        "HorizontalPodAutoscaler", "ScaledObject",
    ),
    ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "APIService"),
)  # fmt: skip
_WORKLOAD_RANK = len(_RANKS)
_RANK = {kind: rank for rank, kinds in enumerate(_RANKS) for kind in kinds} | {
    kind: _WORKLOAD_RANK + 1 + rank for rank, kinds in enumerate(_LAST) for kind in kinds
}
_LAST_RANK = _WORKLOAD_RANK + 1 + len(_LAST)


def kind_rank(kind: str) -> int:
    """Return the place of a kind among the waves of creation; workloads and unknown kinds are in the middle."""
    return _RANK.get(kind, _WORKLOAD_RANK)


def waves(changes: tuple[Change, ...], needs: Mapping[Identity, frozenset[Identity]]) -> tuple[tuple[int, ...], ...]:
    """Return indexes into `changes`, wave by wave; held changes are in none.

    `needs`: what an object refers to, which is there before it and leaves after it. A circle of references is
    opened. A deletion comes after all that is named in its `after`, whatever the ranks of their kinds.
    """
    # An object comes as if its predecessors needed it.
    more: defaultdict[Identity, set[Identity]] = defaultdict(set)
    for change in changes:
        for other in change.after:
            more[other].add(change.identity)
    extended = {**needs, **{other: needs.get(other, frozenset()) | added for other, added in more.items()}}
    depth = _depths({change.identity for change in changes}, extended if more else needs)
    phase = _phases(changes)
    last = max(phase.values(), default=0)
    grouped: dict[tuple[int, int, int], list[int]] = defaultdict(list)
    for index, change in enumerate(changes):
        if change.held is not None:
            continue
        rank, below = kind_rank(change.identity.kind), depth[change.identity]
        if change.action is Action.RELEASE and is_follower(change):
            # Its owner is released with it: were that done first, a crash in between would leave one to be deleted.
            grouped[0, _LAST_RANK, 0].append(index)
        elif change.action in (Action.DELETE, Action.RELEASE):
            turn = last if change.identity[:2] == ("", "Namespace") else phase.get(change.copy, 0)
            grouped[1 + turn, -rank, -below].append(index)
        else:
            grouped[0, rank, below].append(index)
    return tuple(tuple(grouped[key]) for key in sorted(grouped))


def _phases(changes: Iterable[Change]) -> Mapping[Copy, int]:
    """Return by copy how often the order of kinds begins again before it: an operator leaves after its definition."""
    waiting = {change.copy: change for change in changes if change.after}
    phases: dict[Copy, int] = {}

    def phase(copy: Copy) -> int:
        if copy not in waiting:
            return 0
        if copy not in phases:
            phases[copy] = 0  # A circle is opened where it was entered.
            cluster, identity = copy
            rank = kind_rank(identity.kind)
            others = [(phase((cluster, one)), kind_rank(one.kind)) for one in waiting[copy].after]
            phases[copy] = max((turn + (other < rank) for turn, other in others), default=0)
        return phases[copy]

    for copy in waiting:
        phase(copy)
    return phases


def is_follower(change: Change) -> bool:
    """Return whether the object is there because of others."""
    owner = read_owner(change.before) if change.before is not None else None
    return owner is not None and owner.dependency


def kept_waves(waves: tuple[tuple[int, ...], ...], is_kept: Callable[[int], bool]) -> tuple[tuple[int, ...], ...]:
    """Return the waves with the changes that are kept; none is empty."""
    filtered = (tuple(index for index in wave if is_kept(index)) for wave in waves)
    return tuple(wave for wave in filtered if wave)


def waves_without(waves: tuple[tuple[int, ...], ...], changes: tuple[Change, ...]) -> tuple[tuple[int, ...], ...]:
    """Return the waves without the changes that have been held since."""
    return kept_waves(waves, lambda index: changes[index].held is None)


def _depths(identities: Iterable[Identity], needs: Mapping[Identity, frozenset[Identity]]) -> Mapping[Identity, int]:
    """Return by object the longest chain of needs of the same kind rank below it."""
    beside: dict[Identity, set[Identity]] = {}
    todo = list(identities)
    while todo:
        identity = todo.pop()
        rank, wanted = kind_rank(identity.kind), needs.get(identity)
        if wanted and identity not in beside:
            beside[identity] = {need for need in wanted if need != identity and kind_rank(need.kind) == rank}
            todo += beside[identity]
    # After all that they need. A circle is opened where it was entered, as a rule at its last one by name. Each need is
    # looked at once, however many circles there are.
    depths: defaultdict[Identity, int] = defaultdict(int)
    begun: dict[Identity, bool] = {}  # Whether all that it needs has been found.
    for start in sorted(beside, reverse=True):
        path = [] if start in begun else [(start, iter(sorted(beside[start])))]
        begun.setdefault(start, False)
        while path:
            identity, left = path[-1]
            need = next(left, None)
            if need is None:
                begun[identity] = True
                depths[identity] = max((depths[one] + 1 for one in beside.get(identity, ())), default=0)
                path.pop()
            elif need not in begun:
                begun[need] = False
                path.append((need, iter(sorted(beside.get(need, ())))))
            elif not begun[need]:
                beside[identity].discard(need)
    return depths


class TurnOrder:
    """The turns of a plan's changes in packages with hooks or waves."""

    def __init__(
        self, changes: Sequence[Change], schedule: Schedule, snapshot: FleetSnapshot, manifests: ManifestsInForce
    ) -> None:
        """`manifests`: those in force, by cluster."""
        self._changes, self._schedule, self._snapshot, self._manifests = changes, schedule, snapshot, manifests
        self._due = defaultdict[tuple[str, str], defaultdict[Identity, list[Change]]](lambda: defaultdict(list))
        for change in changes:
            package = schedule.packaged.get(change.identity)
            if package is None and change.action in (Action.DELETE, Action.RELEASE):
                # Of what left the store the one that it was applied from.
                row = snapshot.journal.row(change.cluster, change.identity)
                package = package_of(row.source.path) if row is not None and row.source.path else None
            if package is not None:
                self._due[change.cluster, package][change.identity].append(change)
        self._members: defaultdict[str, list[Identity]] = defaultdict(list)
        for identity, package in schedule.packaged.items() if self._due else ():
            self._members[package].append(identity)

    def held(self) -> tuple[Change, ...]:
        """Return the changes; those whose turn has not come are held."""
        waits: dict[Copy, Hold] = {}
        for (cluster, package), due in self._due.items():
            if package in self._members:
                waits.update({(cluster, identity): hold for identity, hold in self._waiting(cluster, package, due)})
        return tuple(
            replace(change, hold=hold)
            if change.hold is None and (hold := waits.get(change.copy)) is not None
            else change
            for change in self._changes
        )

    def _waiting(
        self, cluster: str, package: str, due: Mapping[Identity, Sequence[Change]]
    ) -> Iterator[tuple[Identity, Hold]]:
        turns: defaultdict[Turn, set[Identity]] = defaultdict(set)
        for identity in self._members[package]:
            if identity in due or self._schedule.is_bound(identity, cluster):
                turns[turn_of(self._annotations(cluster, identity))].add(identity)
        turns[THE_REST].update(due.keys() - set().union(*turns.values()))
        ordered = sorted(turns)
        rest = [identity for turn in ordered if turn[0] == THE_REST[0] for identity in sorted(turns[turn])]
        early, why, blocker = set[Identity](), "", THE_REST
        for turn, following in zip(ordered, [*ordered[1:], None], strict=True):
            if not why and turn[0] >= ONCE_HEALTHY:
                why, blocker = self._first(partial(self._why_not_healthy, cluster), rest), turn
            if why:
                yield from (
                    (identity, Hold(HeldBy.OTHERS, why))
                    for identity in turns[turn] & due.keys()
                    if not self._need_not_wait(turn, blocker, identity, due[identity], early)
                )
            elif following is not None:
                why = self._first(partial(self._why_not_done, cluster, due=due), sorted(turns[turn]))
                if not why and turn[0] == following[0] == THE_REST[0]:
                    why = self._first(partial(self._why_not_healthy, cluster), sorted(turns[turn]))
                blocker = turn
            if why and not early:
                early = self._needed(it for one in ordered if one <= blocker or one < THE_REST for it in turns[one])

    @staticmethod
    def _first(why: Callable[[Identity], str], identities: Iterable[Identity]) -> str:
        return next(filter(None, map(why, identities)), "")

    @staticmethod
    def _need_not_wait(
        turn: Turn, blocker: Turn, identity: Identity, due: Sequence[Change], early: Collection[Identity]
    ) -> bool:
        """Return whether an object need not wait: an earlier turn may need it, or it heals drift or moves away."""
        if turn[0] != THE_REST[0]:
            return False
        if identity in early or not kind_rank(identity.kind):
            return True
        is_wave = blocker[0] == THE_REST[0]
        return is_wave and all(
            change.cause is Cause.DRIFT or (change.cause is Cause.PLACEMENT and change.action is not Action.CREATE)
            for change in due
        )

    def _annotations(self, cluster: str, identity: Identity) -> Mapping[str, str]:
        """Return the annotations of the manifest in force; where there is none, those of the template."""
        manifest = self._manifests.get(cluster, {}).get(identity)
        if manifest is not None:
            return dig(manifest.body, "metadata", "annotations") or {}
        template = self._schedule.fleet.templates.get(identity)
        return template.annotations if template is not None else {}

    def _needed(self, hooks: Iterable[Identity]) -> set[Identity]:
        """Return what hooks refer to, directly or not: it comes before them."""
        todo, needed = list(hooks), set[Identity]()
        while todo:
            needs = self._schedule.needs.get(todo.pop(), frozenset()) - needed
            needed |= needs
            todo += needs
        return needed

    def _why_not_done(self, cluster: str, identity: Identity, due: Mapping[Identity, Sequence[Change]]) -> str:
        """Return why later turns wait for an object, in words; empty: they need not."""
        hook = hook_of(self._annotations(cluster, identity))
        is_run = hook is not None and identity[:2] in RUNS_ONCE
        if identity in self._schedule.frozen:
            return f"waits for {identity}, which is frozen" if is_run else ""
        no_matter = Cause.COMPLETED if is_run else Cause.DRIFT
        pending = [change for change in due.get(identity, ()) if change.cause is not no_matter]
        if pending:
            held = next((change.held for change in pending if change.held), "")
            return f"waits for {identity}" + (f", which {held}" if held.startswith("waits") else "")
        live = self._snapshot.live(cluster, identity)
        row = self._snapshot.journal.row(cluster, identity)
        if live is None and is_run and row is not None and row.finished:
            return f"{identity} failed; commit a change" if row.failed and hook is not None and not hook.goes_on else ""
        if live is None:
            return f"waits for {identity}"
        if not is_run or has_succeeded(live.body) or (hook is not None and hook.goes_on and self._has_failed(live)):
            return ""
        if self._has_failed(live):
            return f"{identity} failed; delete it in the cluster to run it again, or commit a change"
        return f"waits for {identity}, which runs"

    def _has_failed(self, live: LiveObject) -> bool:
        outcome = self._schedule.interpreters.of(*live.identity[:2]).outcome
        return try_call(outcome, live.body).value is RunOutcome.FAILED

    def _why_not_healthy(self, cluster: str, identity: Identity) -> str:
        live, last = self._snapshot.live(cluster, identity), self._snapshot.last_health(cluster, identity)
        if live is None or (last is not None and last.health is Health.HEALTHY):
            return ""
        health = try_call(self._schedule.interpreters.of(*identity[:2]).health, live.body).value
        return "" if last is None and health is Health.HEALTHY else f"waits for {identity} healthy"
