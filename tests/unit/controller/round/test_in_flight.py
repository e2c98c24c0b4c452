"""However large a wave is, a bounded number of its changes is worked on at one time, and each group is recorded alone.

Source: design#promise-6; design#promise-7.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from reconciler.api.clusters import LiveObject
from reconciler.api.ledger import Intent, RecordedLoss
from reconciler.api.plan import Action, Cause, Change, Plan
from reconciler.api.refs import GVK, Identity
from reconciler.controller.round.apply_plan import AT_ONCE, AT_ONCE_IN_ALL, GROUP, WriteContext, act
from reconciler.journal import Journal
from reconciler.kube import MemberCluster
from tests.fakes.members import comparer_of
from tests.fakes.waiting import until

CONFIG_MAP = GVK("", "v1", "ConfigMap")


class Counts:
    """The number of creates under way, and the most that ever were, by cluster and in all."""

    def __init__(self) -> None:
        self.now: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self.made: Counter[str] = Counter()

    def begun(self, cluster: str) -> None:
        for name in (cluster, "all"):
            self.now[name] += 1
            self.most[name] = max(self.most[name], self.now[name])

    def ended(self, cluster: str) -> None:
        self.made[cluster] += 1
        for name in (cluster, "all"):
            self.now[name] -= 1


class CountedMember:
    """Answers each create after some turns of the event loop, or never where it is stuck."""

    def __init__(self, name: str, counts: Counts, *, is_stuck: bool = False) -> None:
        self.name, self._counts, self._is_stuck = name, counts, is_stuck

    async def create(self, gvk: GVK, namespace: str, name: str, body: Any, *, manager: str) -> LiveObject:
        self._counts.begun(self.name)
        if self._is_stuck:
            await asyncio.Event().wait()
        for _ in range(3):
            await asyncio.sleep(0)
        self._counts.ended(self.name)
        identity = Identity("", "ConfigMap", namespace, name)
        return LiveObject(gvk=gvk, identity=identity, uid=f"uid of {name}", resource_version="7", body=body)


class GroupedJournal(Journal):
    """Remembers how many intents began in each commit."""

    groups: list[int]

    def begin(self, intents: Iterable[Intent], losses: Iterable[RecordedLoss] = ()) -> tuple[int, ...]:
        found = super().begin(intents, losses)
        self.groups.append(len(found))
        return found


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[GroupedJournal]:
    with GroupedJournal.open(tmp_path / "journal.db") as found:
        assert isinstance(found, GroupedJournal)
        found.groups = []
        yield found


def plan(clusters: Iterable[str], count: int) -> Plan:
    changes = tuple(
        Change(
            action=Action.CREATE,
            cluster=cluster,
            gvk=CONFIG_MAP,
            identity=Identity("", "ConfigMap", "demo", f"app-{number:04}"),
            cause=Cause.DECLARED,
            manifest={"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"app-{number:04}"}},
        )
        for cluster in clusters
        for number in range(count)
    )
    return Plan(base="", head="r1", changes=changes, waves=(tuple(range(len(changes))),))


def acting(journal: Journal, members: Iterable[CountedMember]) -> WriteContext:
    by_name = {member.name: cast("MemberCluster", member) for member in members}
    return WriteContext(members=by_name, journal=journal, comparer=comparer_of("shop"))


async def test_a_wave_of_one_cluster_is_made_a_few_at_a_time(journal: GroupedJournal) -> None:
    counts = Counts()
    results = await act(plan(["m1"], 2 * GROUP + 1), acting(journal, [CountedMember("m1", counts)]))
    assert [result.error for result in results] == [""] * (2 * GROUP + 1)
    assert [result.change.identity.name for result in results] == sorted(r.change.identity.name for r in results)
    assert counts.most["m1"] == AT_ONCE
    assert journal.groups == [GROUP, GROUP, 1]
    assert journal.open_intents() == {}


async def test_many_clusters_share_a_bound(journal: GroupedJournal) -> None:
    counts, names = Counts(), [f"m{number:02}" for number in range(40)]
    await act(plan(names, AT_ONCE * 2), acting(journal, [CountedMember(name, counts) for name in names]))
    assert counts.most["all"] == AT_ONCE_IN_ALL < len(names) * AT_ONCE
    assert max(counts.most[name] for name in names) <= AT_ONCE


async def test_clusters_that_never_answer_keep_no_place_from_the_others(journal: GroupedJournal) -> None:
    """More of them than there are places: what takes long counts no longer."""
    counts = Counts()
    stuck = [CountedMember(f"a{number:02}", counts, is_stuck=True) for number in range(AT_ONCE_IN_ALL // AT_ONCE)]
    members = [*stuck, CountedMember("z", counts)]
    made = asyncio.create_task(act(plan([member.name for member in members], AT_ONCE * 2), acting(journal, members)))
    try:
        async with asyncio.timeout(60):
            await until(lambda: counts.made["z"] >= AT_ONCE * 2)
    finally:
        made.cancel()
        await asyncio.gather(made, return_exceptions=True)
    assert counts.most["all"] <= AT_ONCE_IN_ALL + AT_ONCE
