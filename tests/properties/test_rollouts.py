"""Laws of rollouts over a small world: whatever health, time and commits come."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from reconciler.api.clusters import Cluster
from reconciler.api.policies import ClusterAffinity
from reconciler.api.rollout_progress import (
    Begin,
    GateMet,
    GateStatus,
    GateUnknown,
    GateUnmet,
    Phase,
    Record,
    ReleaseFacts,
    RolloutProgress,
)
from reconciler.api.rollouts import (
    After,
    Amount,
    Approval,
    Gate,
    Layout,
    OnFailure,
    OnNewCommit,
    Rollout,
    Stage,
    number_of,
)
from reconciler.rollouts import adopted, entry_of, lay_out, progress, record_of, recorded
from tests.examples import examples

START = datetime.fromisoformat("2026-11-23T10:00:00+00:00")
REVISIONS = tuple(f"{number:08x}" for number in range(1, 9))
CLUSTERS = tuple(f"m{number}" for number in range(7))
AMOUNTS: st.SearchStrategy[Amount] = st.one_of(
    st.integers(0, 3).map(Amount), st.sampled_from([0, 25, 34, 50, 100]).map(partial(Amount, is_percent=True))
)
GATES = st.builds(
    Gate,
    min_success_s=st.sampled_from([0, 300, 1500]),
    timeout_s=st.sampled_from([600, 1800]),
    max_failures=AMOUNTS,
    on_failure=st.sampled_from(OnFailure),
)
AFTERS = st.builds(After, wait_s=st.sampled_from([0, 900]), approval=st.booleans())


@st.composite
def rollouts(draw: st.DrawFn) -> Rollout:
    """One to three stages; the last has the rest."""
    number = draw(st.integers(1, 3))
    homes = {name: draw(st.integers(0, number - 1)) for name in CLUSTERS}
    stages = []
    for index in range(number):
        own = tuple(name for name, home in homes.items() if home == index)
        chosen = ClusterAffinity(cluster_names=own) if own else None
        stages.append(
            Stage(
                name=f"s{index}",
                clusters=None if index == number - 1 else chosen,
                max_concurrency=draw(AMOUNTS),
                gate=draw(GATES),
                after=draw(AFTERS),
            )
        )
    rests = [stage for stage in stages if stage.clusters is None]
    kept = tuple(stage for stage in stages if stage not in rests[:-1])
    return Rollout(name="default", stages=kept, on_new_commit=draw(st.sampled_from(OnNewCommit)))


@dataclass
class World:
    """Clusters with the body that they have; `sick` and `away` change as the story goes."""

    rollout: Rollout
    layout: Layout
    now: datetime = START
    head: int = 0
    records: dict[str, Record] = field(default_factory=dict)
    bodies: dict[str, str] = field(default_factory=dict)
    sick: set[str] = field(default_factory=set)
    away: set[str] = field(default_factory=set)

    @property
    def text(self) -> str:
        return self.now.strftime("%Y-%m-%dT%H:%M:%SZ")

    @property
    def sights(self) -> dict[str, GateStatus]:
        found: dict[str, GateStatus] = {}
        for name, record in self.records.items():
            if name in self.away:
                found[name] = GateUnknown("it does not answer")
            elif name in self.sick or self.bodies.get(name) != record.revision:
                found[name] = GateUnmet("it crashes")
            else:
                found[name] = GateMet(record.revision)
        return found

    def look(self, records: dict[str, Record] | None = None) -> RolloutProgress:
        facts = ReleaseFacts(order=REVISIONS, away=dict.fromkeys(self.away, "it does not answer"))
        known = self.records if records is None else records
        return progress(self.rollout, self.layout, REVISIONS[self.head], known, self.sights, self.text, facts)

    def act(self, found: RolloutProgress) -> None:
        """Record and write what was found; each cluster gets the body of its own revision."""
        self.records = recorded(self.records, found.changes)
        for name, each in found.clusters.items():
            if name not in self.away and each.revision and self.bodies.get(name) != each.revision:
                self.bodies[name] = each.revision


def world_of(rollout: Rollout, *, is_new: bool) -> World:
    clusters = {name: Cluster(name=name) for name in CLUSTERS}
    layout = lay_out(rollout, clusters)
    assert layout.is_sound, layout.problems
    world = World(rollout, layout)
    if is_new:
        return world
    world.records = adopted(layout, REVISIONS[0], world.text)
    world.bodies = dict.fromkeys(CLUSTERS, REVISIONS[0])
    world.head = 1
    return world


ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("wait"), st.sampled_from([1, 4, 11, 31])),
        st.tuples(st.just("commit"), st.just(0)),
        st.tuples(st.sampled_from(["sick", "well", "away", "back"]), st.integers(0, len(CLUSTERS) - 1)),
        st.tuples(st.just("approve"), st.integers(0, 2)),
        st.tuples(st.just("lose"), st.just(0)),
    ),
    min_size=8,
    max_size=60,
)


def told(world: World, action: tuple[str, int]) -> None:
    """Change the world as the order says."""
    verb, number = action
    name = CLUSTERS[number % len(CLUSTERS)]
    if verb == "wait":
        world.now += timedelta(minutes=number)
    elif verb == "commit":
        world.head = min(world.head + 1, len(REVISIONS) - 1)
    elif verb == "sick":
        world.sick.add(name)
    elif verb == "away":
        world.away.add(name)
    elif verb == "well":
        world.sick.discard(name)
    elif verb == "back":
        world.away.discard(name)
    elif verb == "approve":
        approve(world, f"s{number}", REVISIONS[world.head])
    elif verb == "lose":  # The journal is gone; the clusters tell what their ConfigMaps say.
        told_by = {name: record_of(entry_of(record)) for name, record in world.records.items()}
        world.records = {name: record for name, record in told_by.items() if record is not None}


def approve(world: World, stage: str, revision: str) -> None:
    given = Approval(stage=stage, revision=revision)
    world.rollout = replace(world.rollout, approvals=tuple({*world.rollout.approvals, given}))


def check_laws(world: World, before: dict[str, Record], found: RolloutProgress) -> None:
    """Check what holds after every look."""
    places = {name: index for index, stage in enumerate(found.stages) for name in stage.clusters}
    begun = [change for change in found.changes if isinstance(change, Begin)]
    for change in begun:
        had = before.get(change.cluster, Record()).revision
        beside = found.stages[places[change.cluster]].clusters
        is_proven = any(found.clusters[name].phase is Phase.DONE for name in beside)
        if not had and (change.revision != found.release or is_proven):
            continue  # It joins.
        assert change.revision == found.release, "nothing but the release comes to a cluster that has a revision"
        assert not had or REVISIONS.index(change.revision) > REVISIONS.index(had), "no cluster goes back by itself"
        assert change.cluster not in world.away
        for stage in found.stages[: places[change.cluster]]:
            phases = {found.clusters[name].phase for name in stage.clusters}
            assert phases <= {Phase.DONE, Phase.FAILED}, "the gates of earlier stages are passed"
            needs = next(laid.stage.after.approval for laid in world.layout.stages if laid.stage.name == stage.name)
            approved = any(
                given.stage == stage.name and given.revision == found.release for given in world.rollout.approvals
            )
            assert approved or not (needs and stage.clusters), "what needs an approval has one"
    for stage, laid in zip(found.stages, world.layout.stages, strict=True):
        limit = number_of(laid.stage.max_concurrency, len(stage.clusters), least=1)
        running = [name for name in stage.clusters if found.clusters[name].phase is Phase.RUNNING]
        if any(change.cluster in stage.clusters and change.revision == found.release for change in begun):
            assert len(running) <= limit, "no more change at once than the stage says"
    for name, each in found.clusters.items():
        assert each.revision == found.records.get(name, Record()).revision


@settings(max_examples=examples(250))
@given(rollout=rollouts(), actions=ACTIONS, is_new=st.booleans())
def test_whatever_happens_no_gate_is_left_out_and_nothing_goes_back(
    rollout: Rollout, actions: list[tuple[str, int]], is_new: bool
) -> None:
    world = world_of(rollout, is_new=is_new)
    for action in actions:
        told(world, action)
        before, found = world.records, world.look()
        check_laws(world, before, found)
        again = world.look(dict(found.records))
        assert not [change for change in again.changes if isinstance(change, Begin)], "a look does all that is due"
        world.act(found)


@settings(max_examples=examples(250))
@given(rollout=rollouts(), actions=ACTIONS, is_new=st.booleans())
def test_with_everything_healthy_and_approved_every_cluster_gets_to_head(
    rollout: Rollout, actions: list[tuple[str, int]], is_new: bool
) -> None:
    world = world_of(rollout, is_new=is_new)
    for action in actions:
        told(world, action)
        world.act(world.look())
    world.away.clear()
    world.sick.clear()
    found = world.look()
    for _ in range(12 * len(CLUSTERS)):
        for stage in rollout.stages:
            approve(world, stage.name, found.release)
        found = world.look()
        check_laws(world, world.records, found)
        world.act(found)
        if found.is_done and not found.waiting and not found.changes:
            break
        world.now += timedelta(minutes=1)
        if found.look_again and not found.changes:
            world.now = max(world.now, datetime.fromisoformat(found.look_again))
    assert set(world.bodies.values()) == {REVISIONS[world.head]}
    assert found.is_done


@settings(max_examples=examples(250))
@given(rollout=rollouts(), actions=ACTIONS, is_new=st.booleans())
def test_a_lost_journal_changes_nothing_but_the_time_of_success(
    rollout: Rollout, actions: list[tuple[str, int]], is_new: bool
) -> None:
    world = world_of(rollout, is_new=is_new)
    for action in actions:
        told(world, action)
        found = world.look()
        kept = {name: record_of(entry_of(record)) for name, record in world.records.items()}
        rebuilt = world.look({name: record for name, record in kept.items() if record is not None})
        completed = {record.revision for record in world.records.values() if record.completed_at}
        for name, each in rebuilt.clusters.items():
            had = world.records.get(name, Record()).revision
            # A new cluster begins with what its stage completed, where one that is not complete yet has its turn.
            begins_with = completed if not had else set()
            assert each.revision in {had, found.clusters[name].revision, rebuilt.release} | begins_with
            assert not had or REVISIONS.index(each.revision) >= REVISIONS.index(had)
        world.act(found)


@settings(max_examples=examples(250))
@given(rollout=rollouts(), actions=ACTIONS, is_new=st.booleans())
def test_between_two_looks_nothing_is_due_before_the_time_that_is_told(
    rollout: Rollout, actions: list[tuple[str, int]], is_new: bool
) -> None:
    world = world_of(rollout, is_new=is_new)
    for action in actions:
        told(world, action)
        world.act(world.look())
    found = world.look()
    while found.changes:
        world.act(found)
        found = world.look()
    due = datetime.fromisoformat(found.look_again) if found.look_again else world.now + timedelta(hours=3)
    world.now = max(world.now, due - timedelta(seconds=1))
    early = world.look()
    assert early.changes == ()
    assert [stage.state for stage in early.stages] == [stage.state for stage in found.stages]
