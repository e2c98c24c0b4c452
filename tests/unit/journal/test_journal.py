"""Rows of the journal come out as they went in, and a Secret value never goes in."""

from __future__ import annotations

import base64
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from reconciler.api.binding import Constraint, PreviousPlacement, TargetCluster
from reconciler.api.content import JsonObject
from reconciler.api.fleet import HistoryLimits
from reconciler.api.ledger import AppliedRow, Event, Intent, IntentEnd, Losses, RecordedLoss, SuspensionRecord
from reconciler.api.plan import Action, Cause, Change
from reconciler.api.policies import Flavor
from reconciler.api.problem import Source
from reconciler.api.refs import GVK, Identity
from reconciler.api.rollout_progress import Record
from reconciler.errors import JournalError
from reconciler.journal import Journal, SharedOrdersTable
from reconciler.journal import applied as journal_applied
from reconciler.journal.sqlite_file import META, JournalFile, Row, migrations, statements
from tests.fakes.journals import exported

GVK_WEB = GVK("apps", "v1", "Deployment")
WEB = Identity("apps", "Deployment", "demo", "web")
ROW = AppliedRow(
    cluster="m1",
    gvk=GVK_WEB,
    identity=WEB,
    uid="u-1",
    manifest_digest="d-1",
    recorded={"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 2, "paused": None}},
    policy="PropagationPolicy demo/web",
    keep=False,
    flavor=Flavor.KARMADA,
    replicas=2,
    dependency=True,
    finished=True,
    revision="abc",
    source=Source("apps/web.yaml", 18),
)
BEGUN = Record(revision="c1", begun_at="2026-11-21T10:00:00Z")
INTENT = Intent(
    cluster="m1", gvk=GVK_WEB, identity=WEB, action=Action.UPDATE, manifest_digest="d", uid="u", revision="r"
)


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal.open(tmp_path / "journal.db") as opened:
        yield opened


def event(round_number: int, time: str, kind: str, subject: str, data: JsonObject | None = None) -> Event:
    return Event(round=round_number, time=time, kind=kind, subject=subject, data=data or {})


def reopened(journal: Journal) -> Journal:
    journal.close()
    return Journal.open(journal.path)


def test_keeps_its_uuid_and_key_for_ever(tmp_path: Path) -> None:
    with Journal.open(tmp_path / "journal.db") as first:
        uuid, key = first.uuid, first.hash_key
    with Journal.open(tmp_path / "journal.db") as second:
        assert (second.uuid, second.hash_key) == (uuid, key)
    with Journal.open(tmp_path / "other.db") as other:
        assert other.uuid != uuid
        assert other.hash_key != key
    assert len(key) == 32


def test_only_its_owner_may_read_the_file(journal: Journal) -> None:
    journal.record_fleet("shop")
    for name in ("journal.db", "journal.db-wal", "journal.db-shm", "journal.db.lock"):
        assert stat.S_IMODE((journal.path.parent / name).stat().st_mode) == 0o600, name


def test_makes_the_folder_that_it_needs(tmp_path: Path) -> None:
    path = tmp_path / "state" / "reconciler" / "journal.db"
    Journal.open(path).close()
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_remembers_the_fleet_and_its_new_name(journal: Journal) -> None:
    assert journal.fleet == ""
    journal.record_fleet("shop")
    journal.record_fleet("store")
    assert journal.fleet == "store"


def test_gives_back_every_field_of_what_was_applied(journal: Journal) -> None:
    bare = AppliedRow(cluster="m1", gvk=GVK("", "v1", "Namespace"), identity=Identity("", "Namespace", "", "demo"))
    journal.record_applied([ROW, bare])
    with reopened(journal) as again:
        assert again.applied("m1") == {bare.identity: bare, WEB: ROW}
        assert again.applied("m2") == {}


def test_the_last_row_of_an_object_counts(journal: Journal) -> None:
    newer = replace(ROW, gvk=GVK("apps", "v2", "Deployment"), recorded={"kind": "Deployment"}, replicas=3)
    journal.record_applied([ROW])
    journal.record_applied([newer])
    assert journal.applied("m1") == {WEB: newer}


def test_forgets_what_was_removed_from_one_cluster_only(journal: Journal) -> None:
    journal.record_applied([ROW, replace(ROW, cluster="m2")])
    journal.remove_applied("m1", [WEB])
    assert list(journal.ledger()) == ["m2"]


def test_shares_equal_manifests_and_drops_them_with_their_last_row(journal: Journal) -> None:
    journal.record_applied([replace(ROW, cluster=name, recorded=dict(ROW.recorded or {})) for name in ("m1", "m2")])
    ledger = journal.ledger()
    assert ledger["m1"][WEB].recorded is ledger["m2"][WEB].recorded
    assert len(exported(journal)["manifest"]) == 1
    journal.remove_applied("m1", [WEB])
    journal.remove_applied("m2", [WEB])
    with reopened(journal) as again:
        assert exported(again)["manifest"] == {}


def test_never_writes_a_secret_value(tmp_path: Path) -> None:
    canary = "c4n4ry-Pa$$w0rd-\u00e9"
    encoded = base64.b64encode(canary.encode()).decode()
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": "db",
            "annotations": {
                "kubectl.kubernetes.io/last-applied-configuration": orjson.dumps({"stringData": {"p": canary}}).decode()
            },
        },
        "data": {"password": encoded},
        "stringData": {"other": canary},
    }
    row = replace(ROW, identity=Identity("", "Secret", "demo", "db"), gvk=GVK("", "v1", "Secret"), recorded=secret)
    journal = Journal.open(tmp_path / "journal.db")
    journal.record_applied([row])
    intent = journal.begin([replace(INTENT, identity=row.identity, gvk=row.gvk)])[0]
    journal.finish([(intent, "done", "")], applied=[row])
    text = orjson.dumps(exported(journal))
    recorded = journal.applied("m1")[row.identity].recorded
    live_bytes = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    key = journal.hash_key
    journal.close()
    closed_bytes = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    texts = (live_bytes, closed_bytes, text, orjson.dumps(recorded))
    for form in (canary.encode(), encoded.encode(), orjson.dumps(canary)[1:-1], b"Pa$$w0rd"):
        assert not any(form in text for text in texts), form
    assert recorded is not None
    assert sorted(recorded["data"]) == ["other", "password"]
    assert recorded["data"]["password"] == recorded["data"]["other"]
    assert key.hex().encode() not in text


@pytest.mark.parametrize("count", [0, 1, 100, 250])  # a piece has a hundred
def test_an_export_has_every_manifest(journal: Journal, count: int) -> None:
    names = [f"c{number}" for number in range(count)]
    journal.record_applied(
        replace(ROW, identity=WEB._replace(name=name), recorded={"data": {"name": name}}) for name in names
    )
    assert sorted(body["data"]["name"] for body in exported(journal)["manifest"].values()) == sorted(names)


def test_replaces_placements_and_writes_only_what_differs(journal: Journal) -> None:
    placement = PreviousPlacement(
        identity=WEB,
        targets=(TargetCluster(cluster="m1", replicas=2), TargetCluster(cluster="m2")),
        affinity_name="primary",
    )
    other = PreviousPlacement(identity=Identity("", "ConfigMap", "demo", "c"), targets=())
    journal.record_bindings("r1", {WEB: placement, other.identity: other})
    before = exported(journal)["binding"]
    journal.record_bindings("r2", {other.identity: other, WEB: placement})
    assert exported(journal)["binding"] == before
    journal.record_bindings("r3", {WEB: placement})
    assert journal.previous_placements() == {WEB: placement}


def test_keeps_constraints_in_order_and_timers_by_name(journal: Journal) -> None:
    constraints = (
        Constraint(identity=WEB, cluster="m2", replicas_max=3, reason="3 pods unschedulable", until=""),
        Constraint(
            identity=WEB, cluster="m1", replicas_max=0, reason="down", until="2026-11-21T10:00:00Z", excludes=True
        ),
    )
    journal.record_constraints(constraints)
    journal.record_timers({"b": "2026-11-21T10:00:00Z", "a": "2026-11-21T09:00:00Z"})
    journal.record_timers({"a": "2026-11-21T11:00:00Z"})
    assert journal.constraints() == constraints
    assert journal.timers() == {"a": "2026-11-21T11:00:00Z"}
    journal.record_constraints(constraints[1:])
    assert journal.constraints() == constraints[1:]


def test_a_quiet_round_writes_nothing(journal: Journal) -> None:
    placements = {WEB: PreviousPlacement(identity=WEB, targets=())}
    constraint = Constraint(identity=WEB, cluster="m1", replicas_max=1, reason="x")

    def record() -> None:
        journal.record_bindings("r", placements)
        journal.record_constraints((constraint,))
        journal.record_timers({"a": "t"})
        journal.record_in_force("", {"a.yaml": "b"})

    record()
    log = journal.path.with_name("journal.db-wal")
    size = log.stat().st_size
    record()
    assert log.stat().st_size == size


def test_remembers_cluster_uids_good_blobs_and_suspensions(journal: Journal) -> None:
    journal.record_clusters({"m1": "u-1"})
    journal.record_in_force("", {"b.yaml": "2", "a.yaml": "1"})
    journal.suspend(SuspensionRecord(scope="fleet", reason="incident", who="kay", until="2026-11-22T00:00:00Z"))
    journal.suspend(SuspensionRecord(scope="fleet", reason="still"))
    assert journal.cluster_uids() == {"m1": "u-1"}
    assert journal.good_blobs() == {"a.yaml": "1", "b.yaml": "2"}
    assert journal.suspensions() == (SuspensionRecord(scope="fleet", reason="still"),)
    assert journal.resume("fleet")
    assert not journal.resume("fleet")


def test_an_intent_is_open_until_its_outcome(journal: Journal) -> None:
    first, second = journal.begin([INTENT, replace(INTENT, action=Action.DELETE)])
    assert list(journal.open_intents().values()) == [INTENT, replace(INTENT, action=Action.DELETE)]
    journal.finish([(first, IntentEnd.DONE, ""), (second, "failed", "403: no")], applied=[ROW])
    assert journal.open_intents() == {}
    assert journal.applied("m1") == {WEB: ROW}
    third = journal.begin([INTENT])[0]
    assert third > second
    journal.finish([(third, "done", "")], removed=[("m1", WEB)])
    assert journal.applied("m1") == {}


def test_an_unknown_outcome_or_intent_is_a_mistake_and_changes_nothing(journal: Journal) -> None:
    intent = journal.begin([INTENT])[0]
    with pytest.raises(AssertionError):
        journal.finish([(intent, "done", ""), (99, "done", "")])
    with pytest.raises(ValueError, match="perhaps"):
        journal.finish([(intent, "perhaps", "")])
    assert list(journal.open_intents()) == [intent]


def test_events_are_found_by_subject_and_kind_newest_first(journal: Journal) -> None:
    journal.record_events([event(1, "t1", "applied", "Deployment demo/web @ m1", {"fields": 2})])
    journal.record_events([event(1, "t2", "cluster-unreachable", "m2")])
    journal.record_events([event(2, "t3", "applied", "Deployment demo/api @ m1")])
    assert [event.time for event in journal.events()] == ["t3", "t2", "t1"]
    assert [event.time for event in journal.events(kind="applied", limit=1)] == ["t3"]
    found = journal.events(subject="Deployment demo/web @ m1", kind="applied")
    assert found == (Event(round=1, time="t1", kind="applied", subject="Deployment demo/web @ m1", data={"fields": 2}),)


def test_keeps_only_the_newest_events_and_rounds(tmp_path: Path) -> None:
    with Journal.open(tmp_path / "journal.db") as journal:
        journal.keep_history(HistoryLimits(events_max=10), "2026-11-21T10:00:00Z")
        for number in range(25):
            journal.record_events([event(number, f"t{number}", "tick", "fleet")])
            journal.record_round(f"r{number}", f"t{number}", {})
        journal.record_events([Event(round=9, time=f"late{n}", kind="tick", subject="fleet") for n in range(4)])
        assert [event.time for event in journal.events()] == [
            *("late3", "late2", "late1", "late0", "t24", "t23", "t22", "t21", "t20", "t19")
        ]
        assert len(exported(journal)["round"]) == 10
        assert journal.complete_rounds() == 25


def test_counts_complete_rounds(journal: Journal) -> None:
    assert journal.complete_rounds() == 0
    assert journal.last_revision() == ""
    assert journal.record_round("r1", "t1", {"create": 1}) == 1
    assert journal.record_round("r2", "t2", {}) == 2
    assert journal.last_revision() == "r2"


def test_a_transaction_is_all_or_nothing(journal: Journal) -> None:
    with pytest.raises(RuntimeError), journal.transaction():
        journal.record_applied([ROW])
        journal.record_timers({"a": "t"})
        raise RuntimeError
    assert journal.ledger() == {}
    assert journal.timers() == {}
    with journal.transaction(durable=True):
        journal.record_fleet("shop")
        journal.record_applied([ROW])
    assert journal.fleet == "shop"


def test_a_durable_step_cannot_hide_in_a_transaction_that_is_not(journal: Journal) -> None:
    with pytest.raises(AssertionError, match="durable"), journal.transaction():
        journal.begin([INTENT])
    assert journal.open_intents() == {}


def test_reset_forgets_objects_and_keeps_who_we_are(journal: Journal) -> None:
    uuid = journal.uuid
    journal.record_fleet("shop")
    journal.record_applied([ROW])
    journal.begin([INTENT])
    journal.record_bindings("r", {WEB: PreviousPlacement(identity=WEB, targets=())})
    journal.record_round("r", "t", {})
    journal.record_clusters({"m1": "u"})
    journal.suspend(SuspensionRecord(scope="fleet"))
    journal.record_events([event(1, "t", "applied", "x")])
    journal.reset()
    assert (journal.ledger(), journal.open_intents(), journal.previous_placements()) == ({}, {}, {})
    assert journal.complete_rounds() == 0
    assert (journal.uuid, journal.fleet, journal.cluster_uids()) == (uuid, "shop", {"m1": "u"})
    assert len(journal.suspensions()) == 1
    assert [found.kind for found in journal.events()] == ["applied", "suspended"]


def test_a_reader_cannot_write(journal: Journal) -> None:
    with Journal.open(journal.path, read_only=True) as reader, pytest.raises(JournalError, match="readonly"):
        reader.record_timers({"a": "t"})


def test_a_reader_sees_one_moment_while_another_process_writes(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_manifests = journal_applied.manifests
    later = replace(ROW, recorded={"kind": "Deployment", "spec": {"replicas": 3}})

    def and_then_write(file: JournalFile, where: str, values: Row) -> dict[str, JsonObject]:
        found = read_manifests(file, where, values)
        journal.record_applied([later])
        return found

    journal.record_applied([ROW])
    with Journal.open(journal.path, read_only=True) as reader:
        with monkeypatch.context() as patch:
            patch.setattr(journal_applied, "manifests", and_then_write)
            assert reader.ledger() == {"m1": {WEB: ROW}}
        assert reader.applied("m1") == {WEB: later}


def test_reading_needs_a_journal_and_makes_none(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="there is no journal"):
        Journal.open(tmp_path / "journal.db", read_only=True)
    assert list(tmp_path.iterdir()) == []


def test_another_program_s_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE precious (x)")
    other.close()
    before = path.read_bytes()
    with pytest.raises(JournalError, match="something else"):
        Journal.open(path)
    assert path.read_bytes() == before


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(JournalError, match="--journal"):
        Journal.open(tmp_path / "file" / "journal.db")


names = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=12)
trees = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | names,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(names, below, max_size=3),
    max_leaves=8,
)


@st.composite
def applied_rows(draw: st.DrawFn) -> AppliedRow:
    gvk = GVK(draw(st.just("") | names), draw(names), draw(names))
    return AppliedRow(
        cluster=draw(st.sampled_from(["m1", "m2"])),
        gvk=gvk,
        identity=Identity(gvk.group, gvk.kind, draw(st.just("") | names), draw(names)),
        uid=draw(names),
        manifest_digest=draw(names),
        recorded=draw(st.none() | st.dictionaries(names.filter(lambda key: key != "kind"), trees, max_size=4)),
        policy=draw(names),
        keep=draw(st.booleans()),
        flavor=draw(st.sampled_from(Flavor)),
        replicas=draw(st.none() | st.integers(0, 2**31)),
        dependency=draw(st.booleans()),
        finished=draw(st.booleans()),
        revision=draw(names),
        source=Source(draw(names), draw(st.integers(0, 10**6))),
    )


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.lists(applied_rows(), max_size=6, unique_by=lambda row: (row.cluster, row.identity)))
def test_any_rows_come_back_equal_and_verify(journal: Journal, rows: list[AppliedRow]) -> None:
    journal.reset()
    journal.record_applied(rows)
    assert {(row.cluster, row.identity): row for row in rows} == {
        (cluster, identity): row for cluster, found in journal.ledger().items() for identity, row in found.items()
    }
    assert journal.verify() == ()


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.lists(st.tuples(names, names, st.dictionaries(names, trees, max_size=3)), max_size=5))
def test_any_events_come_back_in_order(journal: Journal, values: list[tuple[str, str, dict[str, object]]]) -> None:
    events = [Event(round=1, time="t", kind=kind, subject=subject, data=data) for kind, subject, data in values]
    journal.record_events(events)
    assert journal.events(limit=len(events)) == tuple(reversed(events))


def test_only_what_must_survive_a_power_cut_waits_for_the_disk(journal: Journal) -> None:
    full, normal = 2, 1
    journal.begin([INTENT])
    assert journal._file.pragma("synchronous") == full
    journal.record_timers({"a": "t"})
    assert journal._file.pragma("synchronous") == normal


def test_keeps_one_picture_of_the_last_round(journal: Journal) -> None:
    assert journal.state() is None
    journal.record_state({"version": 1, "held": []})
    journal.record_state({"version": 1, "held": ["a"]})
    with reopened(journal) as again:
        assert again.state() == {"version": 1, "held": ["a"]}
        again.reset()
        assert again.state() is None


def test_finds_events_about_a_subject_in_every_cluster(journal: Journal) -> None:
    subjects = (
        "ConfigMap d/a",
        "ConfigMap d/a @ m1",
        "ConfigMap d/a @ m2",
        "ConfigMap d/ab @ m1",
        "ConfigMap d/b @ m1",
    )
    journal.record_events(Event(round=1, time="t", kind="created", subject=subject) for subject in subjects)
    assert [event.subject for event in journal.events(about="ConfigMap d/a")] == list(reversed(subjects[:3]))
    assert journal.subjects() == ("ConfigMap d/a", "ConfigMap d/ab", "ConfigMap d/b")


def test_a_suspension_written_beside_the_writer_is_seen_by_it(journal: Journal) -> None:
    record = SuspensionRecord(scope="fleet", reason="r", who="w")
    version = journal.data_version
    with SharedOrdersTable(journal.path) as book:
        book.suspend(record)
        assert book.suspensions() == journal.suspensions() == (record,)
        journal.record_events([event(1, "t", "created", "x")])
        assert book.resume("fleet")
        assert not book.resume("fleet")
    assert journal.suspensions() == ()
    assert journal.data_version != version


def test_nothing_is_opened_beside_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="there is no journal"):
        SharedOrdersTable(tmp_path / "journal.db")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "journal.db").touch()
    with pytest.raises(JournalError, match=r"the journal is empty; .* if the fleet ran before, `reconciler jo"):
        SharedOrdersTable(tmp_path / "journal.db")


def test_a_journal_of_the_first_schema_has_no_picture_until_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    Journal.open(path).close()
    connection = sqlite3.connect(path)
    connection.row_factory = lambda _, row: row[0]
    for table in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        connection.execute(f"DROP TABLE {table}")
    for statement in statements(migrations()[0]):
        connection.execute(statement)
    connection.execute("PRAGMA user_version = 1")
    connection.commit()
    connection.close()
    with Journal.open(path, read_only=True) as old:
        assert old.state() is None
        assert old.verify() == ()
        assert exported(old)["state"] == []
        assert old.constraints() == ()
        assert old.evictions() == ()
        assert old.losses() == Losses()
        assert old.rollout_records() == {}
        assert exported(old)["rollout"] == []
    with Journal.open(path) as current:
        current.record_state({"version": 1})
        assert current.state() == {"version": 1}
        assert current.rollout_records() == {}
        current.record_rollouts("web", {"m1": BEGUN})
        assert current.rollout_records() == {"web": {"m1": BEGUN}}


def test_a_journal_of_a_process_with_shards_opens(tmp_path: Path) -> None:
    """Source: ADR 24. What it says of them stays unread."""
    path = tmp_path / "journal.db"
    with Journal.open(path) as journal:
        journal.record_timers({"a": "t"})
        with journal.transaction():
            journal._file.put(META, [("shard", "blue"), ("told", "{}")])
    with Journal.open(path) as again:
        assert again.verify() == ()
        assert again.timers() == {"a": "t"}


def test_losses_are_recorded_with_their_intents_and_kept_as_long_as_they_count(tmp_path: Path) -> None:
    def loss(name: str, time: str) -> RecordedLoss:
        return RecordedLoss(cluster="m1", identity=Identity("", "ConfigMap", "demo", name), time=time)

    intent = Intent(cluster="m1", gvk=GVK("", "v1", "ConfigMap"), identity=loss("a", "").identity, action=Action.DELETE)
    with Journal.open(tmp_path / "journal.db") as journal:
        journal.begin([intent], [loss("a", "1"), loss("b", "1")])
        journal.begin([intent], [loss("a", "2")])
        with pytest.raises(ZeroDivisionError), journal.transaction():
            journal.record_losses([loss("c", "2")])
            raise ZeroDivisionError
        journal.keep_losses(Losses(recorded=(loss("a", "2"),), held_since={"m1": "2"}))
    with Journal.open(tmp_path / "journal.db") as journal:
        assert journal.losses() == Losses(recorded=(loss("a", "2"),), held_since={"m1": "2"})
        assert journal.verify() == ()
        journal.forget_losses()
        assert journal.losses() == Losses(held_since={"m1": "2"})
        journal.keep_losses(Losses())
        assert journal.losses() == Losses()


@pytest.mark.parametrize(
    ("cluster", "cause", "is_ticked", "revision"),
    [
        ("m1", Cause.DECLARED, False, "new"),
        ("m1", Cause.DRIFT, False, "abc"),
        ("m1", Cause.OWNERSHIP, False, "abc"),
        ("m1", Cause.PLACEMENT, False, "new"),
        ("m1", Cause.PLACEMENT, True, "abc"),
        ("m2", Cause.PLACEMENT, True, "abc"),
    ],
    ids=["edited", "healed", "marked for another policy", "placed by an edit", "scaled by a tick", "created by a tick"],
)
def test_what_is_healed_or_moved_by_a_tick_follows_the_commit_of_before(
    journal: Journal, cluster: str, cause: Cause, is_ticked: bool, revision: str
) -> None:
    """Whoever looks for the commit behind a trouble would else be led to the last one, which never touched it."""
    journal.record_applied([ROW])
    if is_ticked:
        journal.record_constraints((Constraint(identity=WEB, cluster="m3", replicas_max=0, reason="unhealthy"),))
    change = Change(action=Action.UPDATE, cluster=cluster, gvk=GVK_WEB, identity=WEB, cause=cause)
    assert journal.commit_behind(change, "new") == revision
