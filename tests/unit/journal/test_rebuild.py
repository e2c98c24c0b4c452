"""A rebuild keeps the broken file and who we are, and forgets what the members can tell again.

Rows that a journal hands on to the next leader, and those it takes.
"""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import orjson
import pytest
from msgspec.structs import replace

from reconciler.api.binding import Constraint, PreviousPlacement, TargetCluster, Tick
from reconciler.api.ledger import AppliedRow, EvictionRecord, RecordedLoss, SuspensionRecord
from reconciler.api.plan import Confirmed
from reconciler.api.refs import GVK, Identity
from reconciler.api.rollout_progress import EarlierRevision, Record
from reconciler.errors import JournalLocked, JournalTooNew
from reconciler.journal import Journal, SharedOrdersTable, holder, rebuild
from reconciler.journal.journal_rebuild import move_aside

ROW = AppliedRow(
    cluster="m1", gvk=GVK("", "v1", "ConfigMap"), identity=Identity("", "ConfigMap", "demo", "c"), recorded={"a": 1}
)

DONE = Record(
    revision="c1", begun_at="2026-11-20T10:00:00Z", completed_at="2026-11-20T10:05:00Z",
    earlier=(EarlierRevision(revision="c0", left_at="2026-11-20T10:00:00Z"),),
)  # fmt: skip


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "journal.db"
    with Journal.open(path) as journal:
        journal.record_fleet("shop")
        journal.record_clusters({"m1": "u-1"})
        journal.suspend(SuspensionRecord(scope="fleet", reason="incident"))
        journal.record_applied([ROW])
        journal.record_round("r", "t", {})
        journal.record_rollouts("web", {"m1": DONE})
    return path


def identity_of(path: Path) -> tuple[str, bytes]:
    with Journal.open(path, read_only=True) as journal:
        return journal.uuid, journal.hash_key


def test_a_sound_journal_is_reset_in_place(path: Path) -> None:
    before = identity_of(path)
    journal, set_aside, lost = rebuild(path)
    with journal:
        assert (set_aside, lost) == (None, ())
        assert (journal.uuid, journal.hash_key) == before
        assert journal.ledger() == {}
        assert journal.complete_rounds() == 0
        assert journal.rollout_records() == {"web": {"m1": DONE}}


def test_a_broken_row_sets_the_file_aside_and_saves_the_rest(path: Path) -> None:
    before = identity_of(path)
    connection = sqlite3.connect(path)
    connection.execute("UPDATE applied SET uid = 'other'")
    connection.execute("UPDATE suspension SET reason = 'other'")
    connection.commit()
    connection.close()
    journal, set_aside, lost = rebuild(path)
    with journal:
        assert set_aside == path.with_name("journal.db.corrupt-1")
        assert lost == ("suspensions",)
        assert (journal.uuid, journal.hash_key) == before
        assert (journal.fleet, journal.cluster_uids()) == ("shop", {"m1": "u-1"})
        assert (journal.ledger(), journal.suspensions(), journal.complete_rounds()) == ({}, (), 0)
        assert journal.rollout_records() == {"web": {"m1": DONE}}
        assert journal.verify() == ()


def test_what_cannot_be_read_at_all_is_named_as_lost(path: Path) -> None:
    before = identity_of(path)
    path.write_bytes(b"garbage" * 1000)
    first, aside, lost = rebuild(path)
    first.close()
    words = "what it wrote into the clusters' marks"
    assert lost == ("its uuid and fleet", "the uids of the clusters", "suspensions", words)
    assert identity_of(path) != before
    assert aside is not None
    assert aside.read_bytes() == b"garbage" * 1000
    path.write_bytes(b"again")
    second, aside, _ = rebuild(path)
    second.close()
    assert aside == path.with_name("journal.db.corrupt-2")


def test_the_log_of_a_broken_file_never_reaches_the_new_one(path: Path, tmp_path: Path) -> None:
    crashed = tmp_path / "crashed" / "journal.db"
    crashed.parent.mkdir()
    with Journal.open(path) as journal:
        journal.record_timers({"old": "t"})
        shutil.copy(f"{path}-wal", f"{crashed}-wal")  # what a killed process leaves
        crashed.write_bytes(b"garbage" * 1000)
    assert Path(f"{crashed}-wal").stat().st_size > 0
    rebuilt, aside, _ = rebuild(crashed)
    with rebuilt:
        assert aside is not None
        assert rebuilt.timers() == {}
        assert rebuilt.verify() == ()


def test_what_is_moved_aside_stays_together(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    for suffix in ("", "-wal", "-shm"):
        Path(f"{path}{suffix}").write_text(f"file{suffix}")
    Path(f"{path}.lock").write_text("")
    aside = move_aside(path)
    assert {found.name: found.read_text() for found in tmp_path.iterdir()} == {
        "journal.db.corrupt-1": "file",
        "journal.db.corrupt-1-wal": "file-wal",
        "journal.db.corrupt-1-shm": "file-shm",
        "journal.db.lock": "",
    }
    assert aside.name == "journal.db.corrupt-1"


def test_a_journal_in_use_is_not_rebuilt(path: Path) -> None:
    with Journal.open(path), pytest.raises(JournalLocked):
        rebuild(path)


def test_a_newer_journal_is_not_rebuilt(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 999")
    connection.close()
    with pytest.raises(JournalTooNew):
        rebuild(path)
    assert path.exists()
    assert holder(path) is None


def test_a_missing_journal_is_a_new_one(tmp_path: Path) -> None:
    journal, aside, lost = rebuild(tmp_path / "journal.db")
    with journal:
        assert (aside, lost, journal.ledger()) == (None, (), {})


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
    journal.record_clusters({"m1": "uid-1"})
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
        with SharedOrdersTable(path) as orders:
            orders.suspend(SuspensionRecord(scope="fleet", reason="r", who="w", until=""))
        assert journal.version != own
