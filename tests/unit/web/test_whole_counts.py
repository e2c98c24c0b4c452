"""Metrics of the whole fleet: each process has them of all clusters, beside those of its own. Source: ADR 22."""

from __future__ import annotations

import re

from msgspec.structs import replace

from reconciler.daemon.vitals.board import Board
from reconciler.daemon.vitals.vitals import Vitals
from reconciler.stages.state import Degraded, Others, step_of
from reconciler.web.metrics import exposition
from tests.fakes.worlds import NOW
from tests.properties.test_whole import told
from tests.unit.report.views.test_shards import OLD, facts, shown
from tests.unit.web.vital_signs import busy


def samples(vitals: Vitals, prefix: str = "fleet_") -> dict[str, float]:
    text = exposition(vitals, lambda: 103.0).decode()
    found = re.findall(rf"^fleet_reconciler_({prefix}\S+) (\S+)$", text, re.MULTILINE)
    return {name: float(value) for name, value in found}


def board(why: str = "") -> Board:
    found = facts(m3=Degraded("it crashes"))
    moment = shown(found, told(found, "b"))
    others = moment.picture.others
    assert others is not None
    made = Board()
    made.show(replace(moment, picture=replace(moment.picture, others=None)))
    made.take_in(Others(shard="a", process="box-1", told={"b": replace(others.told["b"], why=why)}, at=NOW))
    return made


def test_without_shards_there_are_none() -> None:
    assert samples(busy()) == {}


def test_each_cluster_is_there_with_its_shard() -> None:
    assert samples(Vitals(board=board())) == {
        'fleet_shard_told{shard="a"}': 1,
        'fleet_shard_told{shard="b"}': 1,
        "fleet_clusters": 3,
        "fleet_clusters_in_step": 3,
        **{
            f'fleet_cluster_up{{cluster="m{number}",shard="{shard}"}}': 1
            for number, shard in ((1, "a"), (2, "b"), (3, "b"))
        },
        **{
            f'fleet_objects{{cluster="m{number}",shard="{shard}",state="synced"}}': 2
            for number, shard in ((1, "a"), (2, "b"), (3, "b"))
        },
        'fleet_object_health{cluster="m1",health="Healthy",shard="a"}': 2,
        'fleet_object_health{cluster="m2",health="Healthy",shard="b"}': 2,
        'fleet_object_health{cluster="m3",health="Healthy",shard="b"}': 1,
        'fleet_object_health{cluster="m3",health="Degraded",shard="b"}': 1,
    }


def test_of_what_nobody_tells_no_cluster_is_up_and_nothing_is_synced() -> None:
    found = samples(Vitals(board=board(OLD)))
    assert (found['fleet_shard_told{shard="b"}'], found["fleet_clusters_in_step"]) == (0, 1)
    assert [name for name in found if name.startswith("fleet_cluster_up")] == [
        'fleet_cluster_up{cluster="m1",shard="a"}'
    ]
    assert found['fleet_objects{cluster="m2",shard="b",state="synced"}'] == 0
    assert found['fleet_objects{cluster="m2",shard="b",state="unknown"}'] == 2


def test_a_leader_of_shards_waits_for_no_commit_itself() -> None:
    vitals = Vitals(board=board(), revision_seen_at=NOW)
    state = vitals.board.shown.picture.state if vitals.board.shown is not None else None
    assert state is not None
    vitals.step = replace(step_of(state), clusters=0, in_step=0)
    assert samples(vitals, "commit_waiting") == {}, "an alert would wait for it for ever"
    vitals.step = replace(step_of(state), clusters=2, in_step=1)
    assert len(samples(vitals, "commit_waiting")) == 1
