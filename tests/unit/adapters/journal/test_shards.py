"""What a journal knows of shards. Source: ADR 22."""

from __future__ import annotations

from pathlib import Path

from reconciler.adapters.journal.journal import Journal
from reconciler.model.ledger import AppliedRow, Loss, SuspensionRecord
from reconciler.model.refs import GVK, Identity

WEB = Identity("apps", "Deployment", "demo", "web")


def test_a_journal_is_of_one_shard_at_a_time(tmp_path: Path) -> None:
    with Journal.open(tmp_path / "journal.db") as journal:
        assert journal.shard == ""
        journal.record_shard("a")
        journal.record_shard("b")
    with Journal.open(tmp_path / "journal.db") as journal:
        assert journal.shard == "b"


def test_the_orders_of_the_leader_replace_those_of_before(tmp_path: Path) -> None:
    with Journal.open(tmp_path / "one.db") as leader, Journal.open(tmp_path / "two.db") as journal:
        leader.suspend(SuspensionRecord(scope="fleet", reason="an audit", who="ops", until=""))
        journal.suspend(SuspensionRecord(scope="cluster m1", reason="", who="", until=""))
        assert journal.take_suspensions(leader.suspension_rows())
        assert journal.suspensions() == leader.suspensions()
        assert not journal.take_suspensions(leader.suspension_rows()), "the same again is nothing new"
        assert not journal.take_suspensions([*leader.suspension_rows(), ("of another form",)])
        assert journal.take_suspensions(())
        assert journal.suspensions() == ()


def test_of_a_cluster_that_went_nothing_is_known(tmp_path: Path) -> None:
    with Journal.open(tmp_path / "journal.db") as journal:
        for name in ("m1", "m2"):
            journal.record_cluster(name, f"uid of {name}")
            row = AppliedRow(cluster=name, gvk=GVK("apps", "v1", "Deployment"), identity=WEB, established=2)
            journal.record_applied([row])
            journal.record_losses([Loss(cluster=name, identity=WEB, time="2026-11-24T10:00:00Z")])
            journal.intend_hold(name, 1, "token")
            journal.confirm_hold(name, 1, "token")
        journal.forget_cluster("m1")
        assert journal.cluster_uids() == {"m2": "uid of m2"}
        assert journal.ledger().keys() == {"m2"}
        assert journal.holds("m1") == ()
        assert [loss.cluster for loss in journal.losses().made] == ["m2"]
    with Journal.open(tmp_path / "journal.db") as journal:
        assert journal.ledger().keys() == {"m2"}
