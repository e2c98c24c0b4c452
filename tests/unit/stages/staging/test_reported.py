"""What a leader makes of what shards tell of Rollouts. Source: ADR 22."""

from __future__ import annotations

from msgspec.structs import replace

from reconciler.model.fleet import Fleet, HighAvailability
from reconciler.model.rollouts.record import Met, Record, Sight, Unseen
from reconciler.model.rollouts.told import Report, RolloutAccount
from reconciler.stages.staging import Reported, pending_of, reported_of, with_reports, with_told_sights
from tests.fakes.worlds import fleet_of

NAME = "default"
OLD = Record(revision="r1", begun_at="2026-11-25T10:00:00Z", completed_at="2026-11-25T10:01:00Z")
NEW = Record(revision="r2", begun_at="2026-11-25T11:00:00Z")
LABEL = "fleet.reconciler/shard"
SHARDS = {"m1": "a", "m2": "b"}


def fleet() -> Fleet:
    made = fleet_of(clusters=("m1", "m2", "m3"))
    clusters = {
        name: replace(cluster, labels={LABEL: SHARDS.get(name, "nobody")}) for name, cluster in made.clusters.items()
    }
    settings = replace(made.settings, ha=HighAvailability(cluster="m1", lease_duration_s=15, shards=("a", "b")))
    return replace(made, clusters=clusters, settings=settings)


def telling(**reports: Report) -> RolloutAccount:
    return RolloutAccount(clusters=dict.fromkeys(reports, ""), reports={NAME: reports})


def reported(**reports: Report) -> Reported:
    return Reported(shards=SHARDS, reports={NAME: reports})


def test_a_cluster_is_told_of_by_the_shard_that_it_is_of_and_by_no_other() -> None:
    told = {"a": telling(m1=Report(record=NEW), m2=Report(record=OLD)), "b": telling(m2=Report(record=NEW))}
    found = reported_of(fleet(), told, ())
    assert {name: report.record for name, report in found.reports[NAME].items()} == {"m1": NEW, "m2": NEW}
    assert not found.away


def test_what_nobody_told_of_or_nobody_applies_to_is_away() -> None:
    told = {"a": RolloutAccount(clusters={"m1": "it does not answer"})}
    assert reported_of(fleet(), told, ()).away == {
        "m1": "it does not answer",
        "m2": "shard b has not told of it yet",
    }, "what is of no shard is not told of by any"
    found = reported_of(fleet(), {**told, "b": telling(m2=Report(record=OLD))}, {"b"})
    assert found.away["m2"] == "nobody applies to shard b now"
    assert found.silent == {"m2"}


def test_what_a_shard_records_is_what_was_let_begin_or_what_was_before_or_news() -> None:
    let_begin, before = {NAME: {"m1": NEW}}, {NAME: {"m1": OLD}}
    records, heard = with_reports(let_begin, before, reported(m1=Report(record=OLD)))
    assert records == let_begin, "it has not begun it yet"
    assert pending_of(records, heard, reported()) == {NAME: {"m1": OLD}}
    records, heard = with_reports(records, heard, reported(m1=Report(record=NEW)))
    assert records == let_begin
    assert pending_of(records, heard, reported()) == {}
    other = Record(revision="r0", begun_at="2026-11-25T09:00:00Z")
    records, _ = with_reports(records, heard, reported(m1=Report(record=other)))
    assert records == {NAME: {"m1": other}}, "whenever it was: another leader let it begin"


def test_a_cluster_whose_mark_could_not_be_read_takes_nothing_back() -> None:
    known = {NAME: {"m1": OLD}}
    away = replace(reported(m1=Report()), away={"m1": "it does not answer"})
    assert with_reports(known, known, away) == (known, known)


def test_a_gate_is_met_by_what_is_seen_now_of_what_was_let_begin() -> None:
    records = {NAME: {"m1": NEW, "m2": replace(NEW, completed_at="2026-11-25T11:05:00Z")}}
    met: Sight = Met("r2")
    seen: dict[str, dict[str, Sight]] = {NAME: {"m1": Unseen("another process applies there"), "m3": met}}
    found = with_told_sights(seen, records, reported(m1=Report(record=NEW, sight=met)))
    assert found == {NAME: {"m1": met, "m3": met}}, "what is completed is not looked at"
    stale = with_told_sights(seen, records, reported(m1=Report(record=OLD, sight=met)))
    assert stale[NAME]["m1"] == Unseen("shard a has not begun it yet")
    dead = Reported(
        shards=SHARDS,
        reports={NAME: {"m1": Report(record=NEW, sight=met)}},
        away={"m1": "nobody applies to shard a now"},
        silent=frozenset({"m1"}),
    )
    assert with_told_sights(seen, records, dead)[NAME]["m1"] == Unseen("nobody applies to shard a now")
