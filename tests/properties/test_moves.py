"""Laws of moves over sequences of edits, failures, outages and restarts. Source: design#moves."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct

from reconciler.model.ledger import AppliedRow
from reconciler.model.refs import GVK, Identity
from reconciler.stages.moves.moves import Replicas, Serving, effective, still_established
from tests.examples import examples

CLUSTERS = ("m1", "m2", "m3")
WEB = Identity("apps", "Deployment", "demo", "web")
ROUNDS_MAX = 12
"""So many rounds are enough to end any move once everything is well."""


class Copy(Struct):
    """A copy as its cluster has it. `ever`: with how many of its replicas it served while nothing moved."""

    uid: str
    replicas: int
    available: int = 0
    ever: int = 0


class World:
    """Clusters, the journal, and the store's wish; `round` does what the service does."""

    def __init__(self) -> None:
        self.copies: dict[str, Copy] = {}
        self.rows: dict[str, AppliedRow] = {}
        self.lost: set[str] = set()
        self.target: dict[str, Replicas] = {}
        self._made = 0

    def old(self) -> dict[str, Replicas]:
        return {name: copy.replicas for name, copy in self.copies.items()}

    def serving(self, cluster: str) -> Serving:
        copy, row = self.copies.get(cluster), self.rows.get(cluster)
        if cluster in self.lost:
            return Serving(is_known=False, established=row.established if row else None)
        if copy is None:
            return Serving()
        wanted = self.target.get(cluster)
        return Serving(
            is_available=wanted is not None and copy.replicas >= wanted and copy.available >= wanted,
            replicas=copy.available,
            established=still_established(row, copy.uid, copy.replicas),
        )

    def round(self) -> None:
        """Decide, judge what is taken away, write, and record what is established."""
        state = effective(self.target, self.old(), self.serving)
        for name in sorted({*self.copies, *state.targets} - self.lost):
            wanted = state.targets.get(name)
            if name in self.copies and (wanted is None or wanted < self.copies[name].replicas):
                self._judge(name, wanted)
        for name in sorted({*self.copies, *state.targets} - self.lost):
            self._write(name, state.targets.get(name))
        if self.target == self.old():
            for name, copy in self.copies.items():
                if name not in self.lost and copy.available >= copy.replicas:
                    copy.ever = copy.replicas
                    self._record(name, copy.replicas)

    def _judge(self, name: str, wanted: Replicas) -> None:
        loser = self.copies[name]
        if wanted is not None and loser.available <= wanted and loser.ever <= wanted:
            return  # Nothing that serves is taken away.
        what = f"{name} to {wanted} for {self.target} of {self.copies}, lost {self.lost}"
        served = {other for other, number in self.target.items() if self._serves(other, number or 0)}
        if wanted is None:
            assert served, f"nobody serves: {what}"
        for other, number in self.target.items():
            copy = self.copies.get(other)
            keeps = copy is not None and copy.ever >= (number or 0)
            shrinks = copy is not None and copy.replicas > (number or 0)
            assert other in served or keeps or shrinks, f"{other} never served: {what}"
            if wanted is None and other not in self.lost:
                assert other in served, f"{other} does not serve: {what}"

    def _serves(self, name: str, wanted: int) -> bool:
        copy = self.copies.get(name)
        return name not in self.lost and copy is not None and min(copy.available, copy.replicas) >= wanted

    def _write(self, name: str, wanted: Replicas) -> None:
        if wanted is None:
            self.copies.pop(name, None)
            self.rows.pop(name, None)
            return
        copy = self.copies.get(name)
        if copy is None:
            self._made += 1
            copy = self.copies[name] = Copy(uid=str(self._made), replicas=wanted)
        copy.replicas = wanted
        copy.available, copy.ever = min(copy.available, wanted), min(copy.ever, wanted)
        self._record(name, still_established(self.rows.get(name), copy.uid, wanted))

    def _record(self, name: str, established: int | None) -> None:
        gvk = GVK("apps", "v1", "Deployment")
        self.rows[name] = AppliedRow(
            cluster=name, gvk=gvk, identity=WEB, uid=self.copies[name].uid, established=established
        )

    def forget(self, name: str) -> None:
        """The journal was rebuilt: nobody can tell any more with how much a copy ever served."""
        self.rows.pop(name, None)
        if name in self.copies:
            self.copies[name].ever = 0

    def pods(self, name: str, available: int) -> None:
        copy = self.copies.get(name)
        if copy is not None:
            copy.available = min(available, copy.replicas)


Step = tuple[str, object]
clusters = st.sampled_from(CLUSTERS)
placements: st.SearchStrategy[dict[str, int]] = st.dictionaries(clusters, st.integers(1, 4), min_size=1)
steps: st.SearchStrategy[list[Step]] = st.lists(
    st.one_of(
        st.tuples(st.just("edit"), placements),
        st.tuples(st.just("pods"), st.tuples(clusters, st.integers(0, 4))),
        st.tuples(st.just("well"), clusters),
        st.tuples(st.just("lose"), clusters),
        st.tuples(st.just("return"), clusters),
        st.tuples(st.just("forget"), clusters),
        st.tuples(st.just("round"), st.none()),
    ),
    min_size=4,
    max_size=24,
)


def take(world: World, step: Step) -> None:
    kind, value = step
    if kind == "edit" and isinstance(value, Mapping):
        world.target = dict(value)
    elif kind == "pods" and isinstance(value, tuple):
        world.pods(*value)
    elif kind == "well" and isinstance(value, str):
        world.pods(value, 9)
    elif kind == "lose":
        world.lost.add(str(value))
    elif kind == "return":
        world.lost.discard(str(value))
    elif kind == "forget":
        world.forget(str(value))
    else:
        world.round()


@settings(max_examples=examples(400))
@given(steps)
def test_nothing_that_serves_goes_before_what_takes_over_serves_and_every_move_ends(given_steps: list[Step]) -> None:
    world = World()
    for step in given_steps:
        take(world, step)
        world.round()
    world.lost.clear()
    for _ in range(ROUNDS_MAX):
        for name in CLUSTERS:
            world.pods(name, 9)
        world.round()
    assert world.old() == world.target
