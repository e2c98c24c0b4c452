"""The log says what history and status say: each change once, with its reason, and what is alike in one line.

Source: design#history.
"""

from __future__ import annotations

import logging
from typing import Any

import pytest

from reconciler.api.ledger import ENDS, Event, EventKind
from reconciler.controller.vitals.logs import SyncTransitions, log_events
from reconciler.state import FleetState, StateTables
from tests.fakes.worlds import NOW
from tests.unit.state.scenes import Scene

PULL = "its image cannot be pulled"


def event(kind: EventKind, subject: str, why: str = PULL, **data: Any) -> Event:
    return Event(round=1, time=NOW, kind=kind, subject=subject, data={"why": why, **data})


def lines(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    """Return what was said since the last call."""
    keys = ("event", "cluster", "obj", "why", "error", "by", "err_code")
    found = [
        {"message": record.getMessage(), **{key: value for key in keys if (value := record.__dict__.get(key))}}
        for record in caplog.records
    ]
    caplog.clear()
    return found


@pytest.fixture(autouse=True)
def _info(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "reconciler")


@pytest.mark.parametrize(
    ("begin", "subject", "said"),
    [
        (EventKind.CLUSTER_AWAY, "cluster m1", ("ClusterUnreachable", "ClusterRecovered")),
        (EventKind.OBJECT_REFUSED, "ConfigMap demo/app @ m1", ("ObjectRefused", "WayIsFree")),
        (EventKind.FIGHT_DETECTED, "ConfigMap demo/app @ m1", ("FightDetected", "FightOver")),
        (EventKind.HELD, "cluster m1", ("ChangeHeld", "HoldOver")),
        (EventKind.FROZEN, "store", ("Frozen", "FreezeOver")),
        (EventKind.DEGRADED, "ConfigMap demo/app @ m1", ("HealthDegraded", "HealthChanged")),
        (EventKind.ROLLOUT_PAUSED, "rollout default/canary", ("RolloutPaused", "RolloutGoesOn")),
    ],
)
def test_each_change_has_one_line_in_both_directions(
    caplog: pytest.LogCaptureFixture, begin: EventKind, subject: str, said: tuple[str, str]
) -> None:
    end = next(end for end, begun in ENDS.items() if begun is begin)
    log_events([event(begin, subject)])
    log_events([event(end, subject, since=NOW)])
    begun, over = lines(caplog)
    assert (begun["event"], over["event"]) == said
    assert begun["error"] == PULL
    assert over["why"] == f"since {NOW}: {PULL}"
    assert begun.get("cluster") == over.get("cluster") == ("m1" if "m1" in subject else None)
    assert begun.get("obj") == ("ConfigMap demo/app" if "@" in subject else None)


def test_ten_thousand_objects_are_one_line(caplog: pytest.LogCaptureFixture) -> None:
    log_events(
        event(EventKind.DEGRADED, f"Deployment demo/n{number} @ m1", f"{number} crash") for number in range(10_000)
    )
    (line,) = lines(caplog)
    assert line["message"] == "10000 objects are degraded"
    assert line["cluster"] == "m1"
    assert line["obj"].endswith("and 9995 more")


def test_objects_of_different_reasons_have_a_line_each_unless_these_are_many(caplog: pytest.LogCaptureFixture) -> None:
    log_events(event(EventKind.DEGRADED, f"Pod demo/{why} @ m1", why) for why in ("a", "b"))
    assert [line["error"] for line in lines(caplog)] == ["a", "b"]
    log_events(event(EventKind.DEGRADED, f"Pod demo/{why} @ m1", why) for why in "abcdefgh")
    (line,) = lines(caplog)
    assert line["error"] == "a; and 7 other reasons"


def test_ten_clusters_that_fall_silent_have_a_line_each_and_a_thousand_share_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log_events(event(EventKind.CLUSTER_AWAY, f"cluster c{number}", "no answer within 10 s") for number in range(10))
    assert [line["cluster"] for line in lines(caplog)] == [f"c{number}" for number in range(10)]
    log_events(event(EventKind.CLUSTER_AWAY, f"cluster c{number}", "no answer within 10 s") for number in range(1000))
    (line,) = lines(caplog)
    assert line["message"] == "1000 clusters cannot be read"
    assert line["cluster"].endswith("and 995 more")


def test_what_goes_on_since_before_a_start_is_said_apart(caplog: pytest.LogCaptureFixture) -> None:
    log_events([event(EventKind.CLUSTER_AWAY, "cluster m1", "refused")], goes_on=True)
    (line,) = lines(caplog)
    assert (line["event"], line["message"]) == ("GoesOn", "cluster cannot be read, as before this start")


def test_a_cluster_is_out_of_sync_once_and_in_sync_once(caplog: pytest.LogCaptureFixture) -> None:
    scene, tables, told = Scene("m1", "m2", "m3"), StateTables(), SyncTransitions()

    def look() -> FleetState:
        state = tables.update(scene.facts())
        told.log_changes(state, NOW)
        return state

    scene.apply()
    look()
    assert lines(caplog) == []
    scene.edit("m1", "app", "by hand")
    scene.edit("m2", "app", "by hand")
    look()
    look()
    (begun,) = lines(caplog)
    assert (begun["event"], begun["cluster"], begun["why"]) == ("ClusterOutOfSync", "m1, m2", "1 pending")
    scene.away = {"m1": "refused"}
    scene.apply()
    look()
    (over,) = lines(caplog)
    assert (over["event"], over["cluster"], over["why"]) == ("ClusterInSync", "m2", f"since {NOW}")
    scene.away = {}
    look()
    (over,) = lines(caplog)
    assert over["cluster"] == "m1"
