"""A constraint in status and explain: how many, since when, until when, why."""

from __future__ import annotations

import pytest

from reconciler.api.binding import Constraint, Tick
from reconciler.api.refs import Identity
from reconciler.report.status.status_document import constraint_words, constraints_part

WEB = Identity("apps", "Deployment", "demo", "web")
SINCE, UNTIL = "2026-11-21T10:00:00Z", "2026-11-21T10:10:00Z"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            Constraint(identity=WEB, cluster="m1", replicas_max=1, reason="2 pods found no node there", since=SINCE,
                       tick=Tick.DESCHEDULING),
            f"at most 1 replica by descheduling since {SINCE} until its nodes, the pod template or the placement "
            "change, 2 pods found no node there",
        ),
        (
            Constraint(identity=WEB, cluster="m1", replicas_max=0, excludes=True, reason="unhealthy", since=SINCE,
                       until=UNTIL, tick=Tick.FAILOVER),
            f"excluded by failover since {SINCE} until {UNTIL}, unhealthy",
        ),
        (Constraint(identity=WEB, cluster="m1", replicas_max=2, reason="given"), "at most 2 replicas, given"),
    ],
)  # fmt: skip
def test_says_how_many_since_when_until_when_and_why(given: Constraint, words: str) -> None:
    (entry,) = constraints_part([given])
    assert constraint_words(entry) == words
