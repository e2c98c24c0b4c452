"""The state of the fleet, evaluated again only where it may have changed, and the progress of its revision.

Synced and Healthy copies, nearly all, are counted alone: the manifests of a cluster that was read, less the notable
ones. A fleet at rest takes no memory here, and a commit of one object costs that object.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct, field

from reconciler.api.clusters import Read
from reconciler.api.plan import NEEDS_PERSON
from reconciler.api.problem import Severity
from reconciler.api.refs import GVK, Copy, Identity
from reconciler.api.rollout_progress import Staging
from reconciler.incremental import Table, changed_keys
from reconciler.placement import SHORTFALLS
from reconciler.state.judge import state_of
from reconciler.state.state_values import NOMINAL, HealthWord, Held, Lag, ObjectState, StateFacts

NOTHING: Final[Mapping[Any, Any]] = MappingProxyType({})

Keys = Mapping[str, frozenset[Identity]]


def dirty_keys(before: StateFacts | None, now: StateFacts, only: frozenset[Identity] | None) -> Keys:
    """Return by cluster the objects to evaluate again. `only`: the evaluated ones of the round; None: all."""
    if before is None or only is None:
        return _everything(now, now.schedule.fleet.clusters.keys() | now.journal.ledger.keys())
    dirty: defaultdict[str, set[Identity]] = defaultdict(set)
    for name, keys in _everything(now, turned(before, now)).items():
        dirty[name] |= keys
    changed = set(only)
    old, new = before.schedule, now.schedule
    if old is not new:
        changed |= changed_keys(old.bindings, new.bindings) | changed_keys(old.claims.frozen, new.claims.frozen)
    for facts in (before, now) if changed else ():
        for name, identities in _of(facts, changed).items():
            dirty[name] |= identities
    for cluster, identity in _copies(before, now):
        dirty[cluster].add(identity)
    for name in now.members:
        dirty[name] |= _in_member(before, now, name)
    return {name: frozenset(keys) for name, keys in dirty.items() if keys}


def _everything(facts: StateFacts, names: Iterable[str]) -> Keys:
    """Return all copies of these clusters; of those that were read, only copies with a report."""
    copies: dict[str, set[Identity]] = {name: set() for name in names}
    if not copies:
        return {}
    quiet = {name: _quiet(facts, name) for name in copies}
    for identity, binding in facts.schedule.bindings.items():
        for target in binding.targets:
            if target.cluster in copies and identity not in quiet[target.cluster]:
                copies[target.cluster].add(identity)
    for identity, problems in facts.problems.items():
        named = {problem.cluster for problem in problems}
        # A problem that names no cluster concerns all of them.
        for cluster in copies.keys() & named if "" not in named else copies:
            copies[cluster].add(identity)
    for cluster, identity in (*facts.changes, *facts.failures, *facts.fights):
        if cluster in copies:
            copies[cluster].add(identity)
    for name, keys in copies.items():
        keys.update(facts.journal.ledger.get(name, NOTHING).keys() - quiet[name])
        keys.update(facts.manifests.get(name, NOTHING).keys() - quiet[name])
        # What a cluster reported unhealthy, or not at all.
        keys.update(facts.health.get(name, NOTHING))
        if isinstance(member := facts.members.get(name), Read):
            keys.update(member.under_way, member.unread)
    return {name: frozenset(keys) for name, keys in copies.items()}


def _quiet(facts: StateFacts, cluster: str) -> AbstractSet[Identity]:
    """Return desired, unfrozen objects of a cluster that was read."""
    if facts.why_away(cluster) is not None or facts.is_left(cluster):
        return frozenset()
    wanted = facts.manifests.get(cluster, NOTHING).keys()
    frozen = facts.schedule.frozen
    if not frozen and not facts.frozen:
        return wanted
    return {identity for identity in wanted if identity not in frozen and (cluster, identity) not in facts.frozen}


def turned(before: StateFacts, now: StateFacts) -> set[str]:
    """Return clusters that became unreachable, came back, left the store or joined it: all their copies count."""
    names = now.schedule.fleet.clusters.keys() | now.journal.ledger.keys()
    return {
        name
        for name in names
        if before.why_away(name) != now.why_away(name)
        or before.is_left(name) != now.is_left(name)
        or (
            (now.is_left(name) or now.why_away(name) is not None)
            and before.journal.ledger.get(name) is not now.journal.ledger.get(name)
        )
    }


def _of(facts: StateFacts, identities: set[Identity]) -> dict[str, set[Identity]]:
    """Return the possible clusters of these objects."""
    copies: defaultdict[str, set[Identity]] = defaultdict(set)
    bindings = facts.schedule.bindings
    for identity in identities:
        binding = bindings.get(identity)
        for target in binding.targets if binding is not None else ():
            copies[target.cluster].add(identity)
        for problem in facts.problems.get(identity, ()):
            if problem.cluster:
                copies[problem.cluster].add(identity)
    for rows in (facts.manifests, facts.journal.ledger):
        for name, known in rows.items():
            copies[name] |= identities & known.keys()
    return copies


def _copies(before: StateFacts, now: StateFacts) -> set[Copy]:
    """Return copies with other changes, failures or fights than before."""
    copies = changed_keys(before.changes, now.changes)
    copies |= changed_keys(before.failures, now.failures) | changed_keys(before.fights, now.fights)
    copies |= changed_keys(before.frozen, now.frozen)
    if before.schedule.fleet.settings.observe_only != now.schedule.fleet.settings.observe_only:
        copies |= now.changes.keys()
    return copies


def _in_member(before: StateFacts, now: StateFacts, name: str) -> set[Identity]:
    """Return the objects that a cluster reports differently: pending reads, failed reads, and health."""
    changed: set[Identity] = changed_keys(before.health.get(name, NOTHING), now.health.get(name, NOTHING))
    for facts, other in ((before, now), (now, before)):
        member = facts.members.get(name)
        if isinstance(member, Read):
            known = other.members.get(name)
            changed |= member.under_way - (known.under_way if isinstance(known, Read) else frozenset())
            changed |= member.unread.keys()
    return changed


class ClusterState(Struct, frozen=True, kw_only=True):
    """The objects of one cluster. `notable`: those that are not both Synced and Healthy.

    `why_away`: why it was not read, None: it was. `is_left`: the store has no document of it. `last_contact`: RFC 3339,
    empty: never. `syncs`, `healths`: how many objects there are of each; an object counts once in either.
    """

    name: str
    notable: Mapping[Identity, ObjectState]
    syncs: Mapping[Lag, int]
    healths: Mapping[HealthWord, int]
    why_away: str | None = None
    is_left: bool = False
    last_contact: str = ""
    unread_kinds: frozenset[GVK] = frozenset()
    """Kinds that cannot be read there, though it answers."""

    @property
    def is_up(self) -> bool:
        """Return whether it answered the last time. One that left the store is not asked."""
        return self.why_away is None and not self.is_left

    @property
    def total(self) -> int:
        """Return the number of our objects there, live or desired."""
        return sum(self.syncs.values())

    @property
    def is_in_step(self) -> bool:
        """Return whether it was read, and all objects are Synced."""
        return self.why_away is None and self.total == self.syncs[Lag.SYNCED]


class FleetState(Struct, frozen=True, kw_only=True):
    """The state of every object, by cluster: those of the store, and those that it has no longer."""

    clusters: Mapping[str, ClusterState]
    facts: StateFacts
    """Its inputs."""

    def of(self, cluster: str, identity: Identity) -> ObjectState | None:
        """Return the state of one copy; None: there is none, and none is wanted."""
        return state_of(self.facts, cluster, identity)

    def last_state(self, cluster: str, identity: Identity) -> ObjectState | None:
        """Return the same, without judging it again."""
        there = self.clusters.get(cluster)
        if there is None:
            return None
        state = there.notable.get(identity)
        if state is not None or there.why_away is not None or there.is_left:
            return state
        return NOMINAL if identity in self.facts.manifests.get(cluster, NOTHING) else None

    def gvk(self, cluster: str, identity: Identity) -> GVK | None:
        """Return the kind of a copy, as it is wanted, changed or recorded; None: none of these."""
        manifest = self.facts.manifests.get(cluster, NOTHING).get(identity)
        row = self.facts.journal.ledger.get(cluster, NOTHING).get(identity)
        due = self.facts.changes.get((cluster, identity), ())
        template = self.facts.schedule.fleet.templates.get(identity)
        return next((one.gvk for one in (manifest, row, *due, template) if one is not None), None)


class StateChange(Struct, frozen=True, kw_only=True):
    """One object whose state is another than before. None: nominal, or not there."""

    cluster: str
    identity: Identity
    before: ObjectState | None
    after: ObjectState | None


class _ClusterTable(Table[Identity, ObjectState]):
    """The notable objects of a cluster, and the counts of all."""

    __slots__ = ("healths", "syncs", "wanted")

    def __init__(self) -> None:
        super().__init__()
        self.syncs: Counter[Lag] = Counter()
        self.healths: Counter[HealthWord] = Counter()
        self.wanted = 0

    def count(self, state: ObjectState | None, sign: int) -> None:
        if state is not None:
            self.syncs[state.sync.lag] += sign
            self.healths[state.health.word] += sign
            self.wanted += sign * state.is_wanted


class StateTables:
    """The facts of the last round, and their results."""

    def __init__(self) -> None:
        self._facts: StateFacts | None = None
        self._tables: defaultdict[str, _ClusterTable] = defaultdict(_ClusterTable)
        self.turns: tuple[StateChange, ...] = ()
        """Differences of the last update from the one before, by cluster and identity."""

    def update(self, facts: StateFacts, only: Iterable[Identity] | None = None) -> FleetState:
        """Return the state by these facts. `only`: the evaluated objects; None: all. Other differences are found."""
        before, self._facts = self._facts, facts
        names = sorted({*facts.schedule.fleet.clusters, *facts.journal.ledger} - facts.elsewhere)
        dirty = dirty_keys(before, facts, None if only is None else frozenset(only))
        anew = set(names) if before is None or only is None else turned(before, facts)
        turns: list[StateChange] = []
        for name in self._tables.keys() - set(names):
            del self._tables[name]
        for name in names:
            keys = dirty.get(name, frozenset())
            if name in anew:
                keys |= self._tables[name].rows.keys()
            turns += self._judged(facts, name, keys)
        self.turns = tuple(turns)
        clusters = {name: self._cluster(facts, name) for name in names}
        # Of a cluster that the store has no longer, the record may be empty.
        return FleetState(clusters={name: one for name, one in clusters.items() if one.total or not one.is_left},
                          facts=facts)  # fmt: skip

    def _judged(self, facts: StateFacts, name: str, keys: Iterable[Identity]) -> Iterator[StateChange]:
        table = self._tables[name]
        known = table.rows

        def noteworthy_state(identity: Identity) -> ObjectState | None:
            state = state_of(facts, name, identity)
            return None if state is NOMINAL else state

        table.update(keys, noteworthy_state)
        for identity in sorted(table.changed):
            before, after = known.get(identity), table.rows.get(identity)
            table.count(before, -1)
            table.count(after, +1)
            yield StateChange(cluster=name, identity=identity, before=before, after=after)

    def _cluster(self, facts: StateFacts, name: str) -> ClusterState:
        table, why_away, is_left = self._tables[name], facts.why_away(name), facts.is_left(name)
        nominal = len(facts.manifests.get(name, NOTHING)) - table.wanted if why_away is None and not is_left else 0
        return ClusterState(
            name=name,
            notable=table.rows,
            syncs={lag: table.syncs[lag] + (nominal if lag is Lag.SYNCED else 0) for lag in Lag},
            healths={word: table.healths[word] + (nominal if word is HealthWord.HEALTHY else 0) for word in HealthWord},
            why_away=None if is_left else why_away,
            is_left=is_left,
            last_contact=facts.last_contact.get(name, ""),
            unread_kinds=frozenset(one.what.gvk for one in facts.unlisted.get(name, ())),
        )


class RevisionStep(Struct, frozen=True, kw_only=True):
    """The progress of `revision`: `clusters` of the store, those `in_step`, and `away` (not read).

    `syncs`, `healths`: of objects. `errors`: in documents. `broken`: files. `unread`: kinds by cluster. `unplaced`:
    templates.
    """

    revision: str
    clusters: int
    in_step: int
    behind: int = 0
    """Number of clusters that are in step with an older revision of a Rollout, which is in force there."""
    away: tuple[str, ...] = ()
    syncs: Mapping[Lag, int] = field(default_factory=dict)
    healths: Mapping[HealthWord, int] = field(default_factory=dict)
    waiting: int = 0
    """Number of objects with a change held for a person."""
    errors: int = 0
    broken: int = 0
    unread: int = 0
    unplaced: int = 0

    @property
    def is_complete(self) -> bool:
        """Return whether everything was evaluated and is in step: no fault, and no cluster behind."""
        return self.is_settled and not self.behind

    @property
    def is_settled(self) -> bool:
        """Return the same where each cluster counts by the revision in force there."""
        faults = self.errors or self.broken or self.unread or self.unplaced
        return 0 < self.clusters == self.in_step + self.behind and not faults


def step_of(state: FleetState) -> RevisionStep:
    """Return the progress of the state's revision. Clusters that left the store do not count: nobody reads them."""
    fleet = state.facts.schedule.fleet
    syncs: Counter[Lag] = Counter()
    healths: Counter[HealthWord] = Counter()
    counted = [one for one in state.clusters.values() if not one.is_left]
    equal = [one.name for one in counted if one.is_in_step and not one.unread_kinds]
    behind = sum(_is_behind(state.facts.schedule.staging, name) for name in equal)
    for cluster in counted:
        syncs.update(cluster.syncs)
        healths.update(cluster.healths)
    return RevisionStep(
        revision=fleet.revision,
        clusters=len(counted),
        in_step=len(equal) - behind,
        behind=behind,
        away=tuple(sorted(one.name for one in counted if one.why_away is not None)),
        syncs=dict(syncs),
        healths=dict(healths),
        waiting=sum(map(_waiting, counted)),
        errors=sum(problem.severity is Severity.ERROR for problem in fleet.problems),
        broken=len({reach.source.path for reach in fleet.frozen}),
        unread=sum(len(one.unread_kinds) for one in counted),
        unplaced=sum(problem.code in SHORTFALLS for problem in state.facts.schedule.problems),
    )


def _is_behind(staging: Staging | None, cluster: str) -> bool:
    """Return whether the newest revision of a Rollout is not in force in a cluster."""
    return staging is not None and any(
        staging.in_force.get(name, {}).get(cluster, "") != revision for name, revision in staging.newest.items()
    )


def _waiting(cluster: ClusterState) -> int:
    if not cluster.syncs[Lag.HELD]:
        return 0
    return sum(isinstance(state.sync, Held) and state.sync.by in NEEDS_PERSON for state in cluster.notable.values())
