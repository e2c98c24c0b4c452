"""Laws of rollouts over shards: whoever dies, is late, or is away, a leader's word begins nothing too early or twice.

The leader and the shards are what they keep, and what stands in their accounts; each step reads accounts that may be
older than the last ones, and may end before its own is written. Source: ADR 22.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from reconciler.model.policy import ClusterAffinity
from reconciler.model.rollouts.amount import Count, number_of
from reconciler.model.rollouts.progress import Progress
from reconciler.model.rollouts.record import Begin, Facts, Met, Record, Sight, Unmet, Unseen
from reconciler.model.rollouts.rollout import Chosen, Gate, OnNewCommit, Rollout, Stage, TheRest
from reconciler.model.rollouts.told import NO_ROLLOUTS, Report, RolloutAccount
from reconciler.stages.rollouts import adopted, entry_of, lay_out, progress, record_of
from reconciler.stages.shards.rollouts import read_rollouts, rollouts_tree
from reconciler.stages.staging import pending_of, reported_of, to_begin, with_reports, with_told, with_told_sights
from tests.examples import examples
from tests.fleets import fleet_of

NAME = "default"
START = datetime.fromisoformat("2026-11-25T10:00:00+00:00")
REVISIONS = tuple(f"{number:08x}" for number in range(1, 9))
SHARDS = {"m0": "a", "m1": "b", "m2": "a", "m3": "b", "m4": "a", "m5": "b"}
FLEET = fleet_of(
    {
        "fleet.yaml": [
            {
                "apiVersion": "fleet.reconciler/v1alpha1",
                "kind": "Fleet",
                "metadata": {"name": "f"},
                "spec": {"ha": {"cluster": "m0", "shards": ["a", "b"]}},
            }
        ],
        "clusters.yaml": [
            {
                "apiVersion": "cluster.karmada.io/v1alpha1",
                "kind": "Cluster",
                "metadata": {"name": name, "labels": {"fleet.reconciler/shard": shard}},
            }
            for name, shard in SHARDS.items()
        ],
    }
)
NEVER = Gate(timeout_s=10**8)
"""No cluster fails, so that who is on its way is counted by everybody alike."""


@st.composite
def rollouts(draw: st.DrawFn) -> Rollout:
    """One to three stages; the last has the rest."""
    number = draw(st.integers(1, 3))
    homes = {name: draw(st.integers(0, number - 1)) for name in SHARDS}
    stages = []
    for index in range(number - 1):
        own = tuple(name for name, home in homes.items() if home == index)
        if own:
            chosen = Chosen(affinity=ClusterAffinity(cluster_names=own))
            stages.append(Stage(name=f"s{index}", clusters=chosen, max_concurrency=draw(COUNTS), gate=NEVER))
    stages.append(Stage(name="rest", clusters=TheRest(), max_concurrency=draw(COUNTS), gate=NEVER))
    return Rollout(name=NAME, stages=tuple(stages), on_new_commit=draw(st.sampled_from(OnNewCommit)))


COUNTS = st.integers(1, 3).map(Count)


@dataclass
class Leader:
    """What it keeps. A new one knows what the last one told, and that alone."""

    records: dict[str, Record] = field(default_factory=dict)
    heard: dict[str, Record] = field(default_factory=dict)


@dataclass
class World:
    """`own`: what is recorded in each cluster, and in the journal of its shard. `told`: all accounts that ever were."""

    rollout: Rollout
    leader: Leader = field(default_factory=Leader)
    own: dict[str, Record] = field(default_factory=dict)
    told: dict[str, list[RolloutAccount]] = field(default_factory=lambda: {"": [], "a": [], "b": []})
    met: set[str] = field(default_factory=set)
    """Clusters that have met the gate of what is recorded there."""
    now: datetime = START
    head: int = 0
    sick: set[str] = field(default_factory=set)
    away: set[str] = field(default_factory=set)
    dead: set[str] = field(default_factory=set)

    @property
    def text(self) -> str:
        return self.now.strftime("%Y-%m-%dT%H:%M:%SZ")

    def read(self, name: str, age: int) -> RolloutAccount:
        """What somebody told, as another one has read it by now."""
        told = self.told[name]
        return told[max(len(told) - 1 - age, 0)] if told else NO_ROLLOUTS

    def write(self, name: str, account: RolloutAccount) -> None:
        read = read_rollouts(rollouts_tree(account))
        assert read == account, "an account is read as it was written"
        self.told[name].append(read)


def act_of_leader(world: World, ages: Mapping[str, int], *, dies: bool) -> Progress:
    """One look of the leader; `dies`: before it has told of it."""
    leader = world.leader
    accounts = {name: world.read(name, ages[name]) for name in ("a", "b") if world.told[name]}
    reported = reported_of(FLEET, accounts, world.dead)
    known, heard = with_reports({NAME: leader.records}, {NAME: leader.heard}, reported)
    leader.records, leader.heard = dict(known.get(NAME, {})), dict(heard.get(NAME, {}))
    sights = with_told_sights({NAME: {}}, {NAME: leader.records}, reported).get(NAME, {})
    facts = Facts(order=REVISIONS, away=reported.away)
    layout = lay_out(world.rollout, FLEET.clusters)
    found = progress(world.rollout, layout, REVISIONS[world.head], leader.records, sights, world.text, facts)
    leader.records = dict(found.records)
    pending = pending_of({NAME: leader.records}, {NAME: leader.heard}, reported)
    if dies:
        succeed(world)
    else:
        told = replace(found, changes=())
        world.write("", RolloutAccount(revision="head", progress={NAME: told}, pending=pending))
    return found


def succeed(world: World) -> None:
    """Another leader begins, with what the last one told."""
    left = world.read("", 0)
    records = left.progress[NAME].records if NAME in left.progress else {}
    world.leader = Leader(dict(records), {**records, **left.pending.get(NAME, {})})


def act_of_shard(world: World, shard: str, age: int, *, dies: bool) -> None:
    """One look of a shard; `dies`: before it has told of it."""
    told = world.read("", age)
    own = {name for name, of in SHARDS.items() if of == shard}
    if NAME in told.progress:
        records = told.progress[NAME].records
        begun = to_begin(world.own, records, told.pending.get(NAME, {}), own - world.away)
        for cluster, record in begun.items():
            check_begin(world, cluster, record)
            world.own[cluster] = record
            world.met.discard(cluster)
        world.own.update(with_told(world.own, records, own))
    if not dies:
        clusters = {name: "it does not answer" if name in world.away else "" for name in sorted(own)}
        reports = {name: Report(record=world.own[name], sight=sight_of(world, name)) for name in own & world.own.keys()}
        world.write(shard, RolloutAccount(revision="head", clusters=clusters, reports={NAME: reports}))


def sight_of(world: World, cluster: str) -> Sight | None:
    record = world.own[cluster]
    if not record.revision or record.completed_at:
        return None
    if cluster in world.away:
        return Unseen("it does not answer")
    if cluster in world.sick:
        return Unmet("it crashes")
    world.met.add(cluster)
    return Met(record.revision)


def check_begin(world: World, cluster: str, record: Record) -> None:
    """What has to hold in the clusters themselves when a revision begins in one of them."""
    had = world.own.get(cluster, Record()).revision
    assert not had or REVISIONS.index(record.revision) >= REVISIONS.index(had), "no cluster goes back by itself"
    if not had:
        return  # It joins at what is proven, or is the first.
    for stage in lay_out(world.rollout, FLEET.clusters).stages:
        on_their_way = [name for name in stage.clusters if name not in world.met]
        behind = [name for name in stage.clusters if is_older(world.own.get(name), record)]
        if cluster in stage.clusters:
            moving = {name for name in on_their_way if is_of(world.own.get(name), record)} | {cluster}
            limit = number_of(stage.stage.max_concurrency, len(stage.clusters), least=1)
            assert len(moving) <= limit, f"{sorted(moving)} at once"
            return
        assert not behind, f"{record.revision} comes to {cluster} before {behind}"
        assert not [name for name in on_their_way if is_of(world.own.get(name), record)], "a gate was left out"


def is_of(own: Record | None, record: Record) -> bool:
    return own is not None and own.revision == record.revision


def is_older(own: Record | None, record: Record) -> bool:
    return own is not None and own.revision != "" and own.revision < record.revision


AGES = st.sampled_from([0, 0, 0, 1, 3])
ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("leader"), AGES, AGES, st.booleans()),
        st.tuples(st.just("leader"), AGES, AGES, st.just(False)),
        st.tuples(st.sampled_from(["a", "b"]), AGES, AGES, st.booleans()),
        st.tuples(st.sampled_from(["a", "b"]), AGES, AGES, st.just(False)),
        st.tuples(st.sampled_from(["sick", "well", "away", "back", "lose", "dead", "lives"]), st.integers(0, 5), AGES,
                  st.just(False)),
        st.tuples(st.sampled_from(["wait", "commit", "jump"]), AGES, AGES, st.just(False)),
    ),
    min_size=10,
    max_size=80,
)  # fmt: skip
Action = tuple[str, int, int, bool]


def happens(world: World, action: Action) -> None:
    verb, first, second, dies = action
    name = f"m{first % len(SHARDS)}"
    if verb == "leader":
        act_of_leader(world, {"a": first, "b": second}, dies=dies)
    elif verb in ("a", "b"):
        act_of_shard(world, verb, first, dies=dies)
    elif verb == "wait":
        world.now += timedelta(seconds=1 + first)
    elif verb == "jump":
        world.now -= timedelta(hours=1)
    elif verb == "commit":
        world.head = min(world.head + 1, len(REVISIONS) - 1)
    elif verb in ("sick", "away"):
        getattr(world, verb).add(name)
    elif verb == "well":
        world.sick.discard(name)
    elif verb == "back":
        world.away.discard(name)
    elif verb == "lose":  # The journal of a shard is gone; its clusters tell what their marks say.
        found = {
            cluster: record_of(entry_of(record)) for cluster, record in world.own.items() if SHARDS[cluster] == "a"
        }
        world.own |= {cluster: record or Record() for cluster, record in found.items()}
    elif verb == "dead":
        world.dead.add(SHARDS[name])
    elif verb == "lives":
        world.dead.discard(SHARDS[name])


def begun(rollout: Rollout) -> World:
    """A fleet in which the first revision is completed, and a second one is there."""
    world = World(rollout, head=1)
    records = adopted(lay_out(rollout, FLEET.clusters), REVISIONS[0], world.text)
    world.own, world.met = dict(records), set(records)
    for shard in ("a", "b"):
        act_of_shard(world, shard, 0, dies=False)
    return world


@settings(max_examples=examples(500))
@given(rollout=rollouts(), actions=ACTIONS)
def test_whoever_dies_or_is_late_nothing_begins_too_early_and_nothing_goes_back(
    rollout: Rollout, actions: list[Action]
) -> None:
    world = begun(rollout)
    for action in actions:
        happens(world, action)


@settings(max_examples=examples(500))
@given(rollout=rollouts(), actions=ACTIONS)
def test_once_everybody_lives_and_is_well_every_cluster_gets_to_head(rollout: Rollout, actions: list[Action]) -> None:
    world = begun(rollout)
    for action in actions:
        happens(world, action)
    world.sick.clear()
    world.away.clear()
    world.dead.clear()
    for _ in range(20 * len(SHARDS)):
        act_of_shard(world, "a", 0, dies=False)
        act_of_shard(world, "b", 0, dies=False)
        found = act_of_leader(world, {"a": 0, "b": 0}, dies=False)
        if found.is_done and not found.waiting and not any(isinstance(each, Begin) for each in found.changes):
            break
        world.now = max(world.now + timedelta(minutes=1), START + timedelta(hours=2))
    assert {record.revision for record in world.own.values()} == {REVISIONS[world.head]}
    assert world.leader.records.keys() == SHARDS.keys()
