"""Events as CloudEvents: every attribute that the format asks for, ids that stay, and a bound of their size."""

from __future__ import annotations

import json

from reconciler.api.ledger import Event, EventKind
from reconciler.notify.cloud_event import BODY_MAX_BYTES, cloud_event, event_body, event_id

JOURNAL = "6f1c1f0e-0000-4000-8000-000000000000"
DRIFT = Event(
    round=41,
    time="2026-11-21T09:59:30Z",
    kind=EventKind.DRIFT,
    subject="Deployment shop/web @ m1",
    data={
        "who": "kubectl-edit",
        "outcome": "healed",
        "cause": "drift",
        "revision": "0a1b",
        "fields": ["spec.replicas"],
    },
)


def test_an_event_has_the_attributes_of_cloud_events_and_the_entry_of_history() -> None:
    found = cloud_event(JOURNAL, "shop fleet", 12, DRIFT, lambda _: None)
    assert found | {"data": None, "id": None} == {
        "specversion": "1.0", "id": None, "source": "/fleets/shop%20fleet", "type": "io.fleet-reconciler.drift.v1",
        "subject": "Deployment shop/web @ m1", "time": "2026-11-21T09:59:30Z",
        "datacontenttype": "application/json", "sequence": "00000000000000000012", "data": None,
    }  # fmt: skip
    data = found["data"]
    assert isinstance(data, dict)
    assert (data["event"], data["who"], data["cluster"], data["outcome"]) == ("drift", "kubectl-edit", "m1", "healed")


def test_an_id_stays_and_is_another_one_where_a_number_was_given_again() -> None:
    first = event_id(JOURNAL, 12, DRIFT)
    assert first == event_id(JOURNAL, 12, DRIFT)
    assert "." not in first, "what is signed has points between its parts"
    again = Event(round=1, time=DRIFT.time, kind=EventKind.CREATED, subject=DRIFT.subject)
    assert len({first, event_id(JOURNAL, 13, DRIFT), event_id(JOURNAL, 12, again), event_id("x", 12, DRIFT)}) == 4


def test_a_body_is_bounded_and_says_that_it_was_cut() -> None:
    large = Event(round=1, time=DRIFT.time, kind=EventKind.FAILED, subject=DRIFT.subject,
                  data={"error": "x" * 300_000, "fields": ["y" * 1000] * 400})  # fmt: skip
    document = cloud_event(JOURNAL, "shop", 1, large, lambda _: None)
    body = event_body(document)
    assert len(body) < BODY_MAX_BYTES
    found = json.loads(body)
    assert (found["id"], found["data"]["cut"], found["data"]["event"]) == (document["id"], True, "failed")
    small = cloud_event(JOURNAL, "shop", 1, DRIFT, lambda _: None)
    assert json.loads(event_body(small)) == small
