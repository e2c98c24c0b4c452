"""The rows of a write in history: values that are masked and not too long, and each failure once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reconciler.api.ledger import Event, EventKind
from reconciler.api.plan import MISSING, Action, Cause, Change, FieldChange, FieldOwner
from reconciler.api.refs import GVK, Identity
from reconciler.controller.round.apply_plan import ChangeResult
from reconciler.controller.round.reported_conditions import ReportedConditions
from reconciler.controller.round.writes import write_events
from reconciler.journal import Journal
from reconciler.ownership import OWNER_ANNOTATION

APP = Identity("", "ConfigMap", "demo", "app")
NOW = "2026-11-21T10:00:00Z"


def change(*fields: FieldChange, action: Action = Action.UPDATE, cause: Cause = Cause.DECLARED) -> Change:
    return Change(action=action, cluster="m1", gvk=GVK("", "v1", "ConfigMap"), identity=APP, cause=cause, fields=fields)


def told(*results: ChangeResult, journal: Journal | None = None) -> list[dict[str, Any]]:
    return [{"kind": str(event.kind), **event.data} for event in write_events(journal, "r", NOW, results)]


def test_what_the_server_changed_before_is_set_right_after_the_server_and_nobody_else(tmp_path: Path) -> None:
    field = FieldChange(path="data.a", before="theirs", after="1", cause=Cause.DRIFT)
    by_hand = FieldChange(path="data.b", before="2", after="1", owner=FieldOwner(manager="kubectl"), cause=Cause.DRIFT)
    with Journal.open(tmp_path / "journal.db") as journal:
        for fields, altered_before, who in (
            ((field,), (), "somebody"),
            ((field,), ("data.a",), "the server"),
            ((field,), ("data.b",), "somebody"),
            ((by_hand,), ("data.b",), "kubectl"),
            ((field, by_hand), ("data.a",), "kubectl, the server"),
        ):
            data = {"altered": altered_before}
            journal.record_events([Event(round=1, time=NOW, kind=EventKind.UPDATED, subject=f"{APP} @ m1", data=data)])
            (event,) = told(ChangeResult(change=change(*fields, cause=Cause.DRIFT)), journal=journal)
            assert event["who"] == who
    (failed,) = told(ChangeResult(change=change(field, cause=Cause.DRIFT), error="changed", altered=(field,)))
    assert (failed["who"], failed["altered"]) == ("the server", ["data.a"])


def test_old_and_new_values_stand_beside_who_wrote_them() -> None:
    theirs = FieldOwner(manager="kubectl-edit", operation="Update", time=NOW)
    (event,) = told(ChangeResult(change=change(
        FieldChange(path="data.a", before=MISSING, after="1"),
        FieldChange(path="data.b", before={"x": 1}, after=None, owner=theirs),
    )))  # fmt: skip
    assert event["fields"] == ["data.a", "data.b"]
    assert event["values"] == [
        {"path": "data.a", "before": None, "after": "1"},
        {"path": "data.b", "before": {"x": 1}, "after": None,
         "owner": {"manager": "kubectl-edit", "operation": "Update", "time": NOW}},
    ]  # fmt: skip
    assert "who" not in event, "a change that a commit declares is its author's, whoever wrote there before"


def test_our_own_mark_is_not_what_somebody_wanted() -> None:
    mark = FieldChange(path=f"metadata.annotations['{OWNER_ANNOTATION}']", before="a", after="b", cause=Cause.OWNERSHIP)
    (event,) = told(ChangeResult(change=change(mark, FieldChange(path="spec.replicas", before=1, after=2))))
    assert (event["fields"], len(event["values"])) == (["spec.replicas"], 1)
    (alone,) = told(ChangeResult(change=change(mark)))
    assert alone["fields"] == [mark.path]


def test_many_and_long_values_are_cut() -> None:
    (event,) = told(ChangeResult(change=change(
        FieldChange(path="data.long", before="x" * 5000, after={"y": "z" * 5000}),
        *(FieldChange(path=f"data.k{number}", before="1", after="2") for number in range(100)),
    )))  # fmt: skip
    assert len(event["fields"]) == 101
    assert len(event["values"]) == 20
    assert event["values"][0]["before"].startswith("[-xxx")
    assert len(str(event["values"][0])) < 600


def test_credentials_in_values_are_masked() -> None:
    (event,) = told(
        ChangeResult(
            change=change(FieldChange(path="data.url", before="https://li:hunter2hunter2@host/x", after="none"))
        )
    )
    assert "hunter2" not in str(event)


def test_what_moves_is_in_the_name_of_who_moved_it(tmp_path: Path) -> None:
    moves = [
        ChangeResult(change=change(action=Action.DELETE, cause=cause)) for cause in (Cause.PLACEMENT, Cause.DEPENDENCY)
    ]
    with Journal.open(tmp_path / "journal.db") as journal:
        data = {"who": "li@host", "why": "evicted"}
        journal.record_events([Event(round=1, time=NOW, kind=EventKind.PLACED, subject=str(APP), data=data)])
        assert [event["who"] for event in told(*moves, journal=journal)] == ["li@host", "li@host"]


def test_a_drift_that_could_not_be_healed_is_a_failure() -> None:
    (event,) = told(ChangeResult(change=change(cause=Cause.DRIFT), error="no"))
    assert (event["kind"], event["cause"], event["who"]) == (EventKind.FAILED, "drift", "somebody")
    assert "outcome" not in event


def test_a_failure_is_news_when_it_is_another_one_or_comes_again(tmp_path: Path) -> None:
    errors = ["a", "a", "b", "", "b", "b"]
    with Journal.open(tmp_path / "journal.db") as journal:
        recorded = ReportedConditions(journal)
        found = [recorded.news([ChangeResult(change=change(), error=error)]) for error in errors]
    assert [[result.error for result in each] for each in found] == [["a"], [], ["b"], [""], ["b"], []]
