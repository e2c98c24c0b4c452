"""Laws of moves over sequences of edits, failures, outages, restarts, and controllers that are dead, slow or starved.

Source: design#moves; docs/concepts/moves.md.
"""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct

from reconciler.api.ledger import AppliedRow
from reconciler.api.refs import GVK, Identity
from reconciler.observations import (
    Availability,
    Available,
    CopyAtRest,
    CopyAvailability,
    NotAvailable,
    Replicas,
    UnknownAvailability,
    UnknownReason,
    effective,
    memory_of,
    with_copy_at_rest,
)
from tests.examples import examples
from tests.fakes.floor import Floor

CLUSTERS = ("m1", "m2", "m3")
WEB = Identity("apps", "Deployment", "demo", "web")
ROUNDS_MAX = 12
"""So many rounds are enough to end any move once everything is well."""


class Copy(Struct):
    """A copy as its cluster has it. `available`: pods that serve, whatever the status says.

    `seen`: the replicas of the spec that its controller saw last, None: none yet; `told`: what it said was available.
    """

    uid: str
    replicas: int
    available: int = 0
    seen: int | None = None
    told: int = 0

    @property
    def left(self) -> int:
        """Return what serves once its controller has seen the newest spec."""
        return min(self.available, self.replicas)


class World:
    """Clusters, the journal, and the store's wish; `round` does what the service does."""

    def __init__(self) -> None:
        self.copies: dict[str, Copy] = {}
        self.rows: dict[str, AppliedRow] = {}
        self.lost: set[str] = set()
        self.dead: set[str] = set()
        """Clusters whose controllers do nothing."""
        self.target: dict[str, Replicas] = {}
        self.placed: dict[str, Replicas] = {}
        self.floor = Floor()
        self._made = 0

    def old(self) -> dict[str, Replicas]:
        return {name: copy.replicas for name, copy in self.copies.items()}

    def availability(self, name: str) -> Availability:
        """As the service finds it for the replicas that are wanted there."""
        copy = self.copies.get(name)
        if name in self.lost:
            return UnknownAvailability(UnknownReason.CLUSTER)
        if copy is None:
            return NotAvailable(0)
        if copy.seen != copy.replicas:
            return UnknownAvailability(UnknownReason.STATUS if copy.seen is None else UnknownReason.NEWEST)
        wanted = self.target.get(name)
        is_enough = wanted is not None and copy.replicas >= wanted and copy.told >= wanted
        return Available(copy.told) if is_enough else NotAvailable(copy.told)

    def serving(self, name: str) -> CopyAvailability:
        copy, row, found = self.copies.get(name), self.rows.get(name), self.availability(name)
        kept = memory_of(row, copy.uid if copy else "", copy.replicas if copy else None)
        is_known = self.placed == self.old() and not isinstance(found, UnknownAvailability)
        base = copy.replicas if copy is not None and is_known else max(kept.base or 0, kept.established or 0)
        return CopyAvailability(availability=found, established=kept.established, base=base)

    def commit(self, target: dict[str, Replicas]) -> None:
        self.floor.ask_for(sum(count or 0 for count in target.values()))
        self.target = target

    def round(self) -> None:
        """Decide, judge what is taken away, write, and record what is at rest."""
        self._record_rest()
        state = effective(self.target, self.old(), {name: self.serving(name) for name in {*self.target, *self.old()}})
        for name in self.old().keys() - state.targets.keys() - self.lost:
            self._judge_leaving(name)
        for name in sorted({*self.copies, *state.targets} - self.lost):
            self._write(name, state.targets.get(name))
        self.placed = dict(self.target)
        self._record_rest()
        self.floor.check(self.total(), f"{state} for {self.target}: {self.copies}, lost {self.lost}, {self.rows}")

    def total(self) -> int:
        return sum(copy.left for copy in self.copies.values())

    def _judge_leaving(self, name: str) -> None:
        what = f"{name} for {self.target} of {self.copies}, lost {self.lost}"
        served = {other for other, number in self.target.items() if self._serves(other, number or 0)}
        assert served, f"nobody serves: {what}"
        assert self.target.keys() - served <= self.lost, f"somebody does not serve: {what}"

    def _serves(self, name: str, wanted: int) -> bool:
        copy = self.copies.get(name)
        return name not in self.lost and copy is not None and copy.left >= wanted

    def _write(self, name: str, wanted: Replicas) -> None:
        if wanted is None:
            gone = self.copies.pop(name)
            self.rows.pop(name, None)
            assert gone.uid
            return
        copy = self.copies.get(name)
        if copy is None:
            self._made += 1
            copy = self.copies[name] = Copy(uid=str(self._made), replicas=wanted)
        copy.replicas = wanted
        kept = memory_of(self.rows.get(name), copy.uid, wanted)
        self.rows[name] = AppliedRow(
            cluster=name, gvk=GVK("apps", "v1", "Deployment"), identity=WEB, uid=copy.uid, replicas=wanted,
            established=kept.established, base=kept.base,
        )  # fmt: skip

    def _record_rest(self) -> None:
        if self.old() not in (self.placed, self.target):
            return
        for name, copy in self.copies.items():
            found = self.availability(name)
            if name in self.rows and not isinstance(found, UnknownAvailability):
                is_available = isinstance(found, Available) and self.target == self.old()
                rest = CopyAtRest(uid=copy.uid, replicas=copy.replicas, is_available=is_available)
                if self.rows[name].established != copy.replicas:
                    self.rows[name] = with_copy_at_rest(self.rows[name], rest)

    # What happens by itself, or by the hand of somebody

    def forget(self) -> None:
        """The journal was rebuilt: nobody can tell any more with how much a copy ever served, or what was placed."""
        self.rows.clear()
        self.placed = {}

    def pods(self, name: str, available: int) -> None:
        """As many pods as the controller has made and the cluster has room for serve, or no longer."""
        copy = self.copies.get(name)
        if copy is not None:
            if name not in self.dead:
                copy.seen = copy.replicas
            before, copy.available = copy.left, min(available, copy.seen or 0)
            self.floor.count(copy.left - before)
            if name not in self.dead:
                copy.told = copy.available


Step = tuple[str, object]
clusters = st.sampled_from(CLUSTERS)
placements: st.SearchStrategy[dict[str, int]] = st.dictionaries(clusters, st.integers(1, 5), min_size=1)
shares: st.SearchStrategy[dict[str, int]] = st.tuples(st.integers(0, 6), st.integers(0, 6)).map(
    lambda cuts: {
        name: count
        for name, count in zip(CLUSTERS, (min(cuts), max(cuts) - min(cuts), 6 - max(cuts)), strict=True)
        if count
    }
)
"""Six replicas, shared out otherwise."""
steps: st.SearchStrategy[list[Step]] = st.lists(
    st.one_of(
        st.tuples(st.just("edit"), placements),
        st.tuples(st.just("edit"), shares),
        st.tuples(st.just("pods"), st.tuples(clusters, st.integers(0, 5))),
        st.tuples(st.just("well"), clusters),
        st.tuples(st.just("lose"), clusters),
        st.tuples(st.just("return"), clusters),
        st.tuples(st.just("die"), clusters),
        st.tuples(st.just("live"), clusters),
        st.tuples(st.just("forget"), st.none()),
        st.tuples(st.just("restart"), st.none()),
    ),
    min_size=4,
    max_size=24,
)


def take(world: World, step: Step) -> None:
    kind, value = step
    if kind == "edit" and isinstance(value, Mapping):
        world.commit(dict(value))
    elif kind == "pods" and isinstance(value, tuple):
        world.pods(*value)
    elif kind == "well" and isinstance(value, str):
        world.pods(value, 9)
    elif kind in ("lose", "return"):
        (world.lost.add if kind == "lose" else world.lost.discard)(str(value))
    elif kind in ("die", "live"):
        (world.dead.add if kind == "die" else world.dead.discard)(str(value))
    elif kind == "forget":
        world.forget()


@settings(max_examples=examples(200))
@given(steps, st.sets(clusters))
def test_what_serves_is_never_less_than_it_was_and_every_move_ends(given_steps: list[Step], dead: set[str]) -> None:
    world = World()
    world.dead |= dead
    for step in given_steps:
        take(world, step)
        world.round()
    world.lost.clear()
    world.dead.clear()
    for _ in range(ROUNDS_MAX):
        for name in CLUSTERS:
            world.pods(name, 9)
        world.round()
    assert world.old() == world.target


@settings(max_examples=examples(100))
@given(st.dictionaries(clusters, st.integers(2, 5), min_size=1), st.sets(clusters), st.sets(clusters), st.data())
def test_a_scale_down_waits_for_nobody_once_its_clusters_have_told_how_they_are(
    placed: dict[str, int], sick: set[str], away: set[str], data: st.DataObject
) -> None:
    """Also where its first write fails, and over a restart."""
    world = World()
    world.commit(dict(placed))
    world.round()
    for name in placed:
        world.pods(name, 0 if name in sick else 9)
    world.round()
    world.commit({name: data.draw(st.integers(1, count)) for name, count in placed.items()})
    world.lost |= away
    world.round()
    world.lost.clear()
    world.round()
    assert world.old() == world.target
