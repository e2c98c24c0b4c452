"""Rows that a journal hands on to the next leader, and those it takes."""

from __future__ import annotations

from pathlib import Path

import orjson
from msgspec.structs import replace

from reconciler.api.binding import Constraint, PreviousPlacement, TargetCluster, Tick
from reconciler.api.ledger import EvictionRecord, RecordedLoss, SuspensionRecord
from reconciler.api.plan import Confirmed
from reconciler.api.refs import Identity
from reconciler.api.rollout_progress import Record
from reconciler.journal import Journal

WEB = Identity("apps", "Deployment", "shop", "web")
API = Identity("apps", "Deployment", "shop", "api")


def filled(path: Path) -> Journal:
    journal = Journal.open(path)
    journal.record_timers({"unhealthy apps/Deployment shop/web m1": "2026-11-21T10:00:00Z"})
    journal.record_constraints(
        (
            Constraint(
                identity=WEB,
                cluster="m1",
                replicas_max=2,
                until="2026-11-21T11:00:00Z",
                reason="no room",
                tick=Tick.DESCHEDULING,
            ),
        )
    )
    journal.suspend(SuspensionRecord(scope="cluster m1", reason="disk", who="li", until=""))
    journal.evict(EvictionRecord(identity=WEB, cluster="m1", since="2026-11-21T10:00:00Z", who="li", reason="bad"))
    with journal.transaction():
        journal.record_losses([RecordedLoss(cluster="m1", identity=WEB, time="2026-11-21T10:00:00Z")])
        confirmed = Confirmed(digest="8c1f0a6be21d4477", changes=frozenset({("delete", "m1", WEB)}))
        journal.keep_losses(replace(journal.losses(), confirmed=confirmed))
    journal.record_cluster("m1", "uid-1")
    journal.record_rollouts("default", {"m1": Record(revision="abc", begun_at="2026-11-21T10:00:00Z")})
    targets = (TargetCluster(cluster="m1", replicas=3),)
    journal.record_bindings("abc", {
        WEB: PreviousPlacement(identity=WEB, affinity_name="second", targets=targets),
        API: PreviousPlacement(identity=API, targets=targets),
    })  # fmt: skip
    return journal


def test_what_one_hands_on_the_other_knows(tmp_path: Path) -> None:
    with filled(tmp_path / "a.db") as one, Journal.open(tmp_path / "b.db") as two:
        two.suspend(SuspensionRecord(scope="fleet", reason="of long ago", who="li", until=""))
        # As it comes out of an object: lists, no tuples.
        two.take_handover(orjson.loads(orjson.dumps(one.handover())))
        assert two.timers() == one.timers()
        assert two.constraints() == one.constraints()
        assert two.suspensions() == one.suspensions()
        assert two.evictions() == one.evictions()
        assert two.losses() == one.losses()
        assert two.losses().confirmed.changes == {("delete", "m1", WEB)}
        assert two.cluster_uids() == one.cluster_uids()
        assert two.rollout_records() == one.rollout_records()
        # Placements stand in the marks; which group of clusters is in use does not.
        assert list(two.previous_placements()) == [WEB]
        assert two.uuid != one.uuid
        assert two.verify() == ()


def test_rows_of_another_form_are_left_out(tmp_path: Path) -> None:
    with filled(tmp_path / "a.db") as one, Journal.open(tmp_path / "b.db") as two:
        told = orjson.loads(orjson.dumps(one.handover()))
        told["timer"] += [["too", "many", "columns"], ["too few"], None, {"name": "x"}, [None, "t"], ["a", {"b": 1}]]
        told["tick_constraint"][0][10] = "a tick of tomorrow"
        told["suspension"] = "no rows"
        told["meta"] = [["uuid", "stolen"]]
        told["confirmed"] = [["uuid", "stolen"], ["confirmed", "no JSON"]]
        two.take_handover(told)
        assert two.timers() == one.timers()
        assert two.constraints() == ()
        assert two.suspensions() == ()
        assert two.losses() == replace(one.losses(), confirmed=Confirmed())
        assert two.uuid not in ("stolen", one.uuid)
        assert two.verify() == ()


def test_the_version_differs_after_each_write_and_only_then(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with filled(path) as journal:
        before = journal.version
        journal.timers()
        journal.handover()
        assert journal.version == before
        journal.record_timers({"another": "2026-11-21T10:00:00Z"})
        own = journal.version
        assert own != before
        with Journal.open_beside(path) as orders:
            orders.suspend(SuspensionRecord(scope="fleet", reason="r", who="w", until=""))
        assert journal.version != own
