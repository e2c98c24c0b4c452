"""The picture of a round: an object counts once, and by what keeps it from being as wanted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from msgspec.structs import replace

from reconciler.api.clusters import Member, Read
from reconciler.api.plan import Action, Cause, Change
from reconciler.api.problem import Problem, Source
from reconciler.api.refs import GVK, Copy, Identity
from reconciler.controller.round.failed_changes import facts_of
from reconciler.fleet_snapshot import FleetSnapshot
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.planner import Round, plan_round
from reconciler.report.status import StateOfFleet, state_document
from reconciler.report.status.remedies import todo_of
from reconciler.report.status.state_document import with_source_error
from reconciler.state import Failed, HealthWord, Lag, StateTables
from tests.fakes.holds import hold
from tests.unit.cli.journals import LATER, NOW, down, empty, shop

APP = Identity("", "ConfigMap", "demo", "app")
DEMO = Identity("", "Namespace", "", "demo")
MEMBERS: dict[str, Member] = {"m1": empty("m1"), "m2": empty("m2")}


def planned(members: dict[str, Member] | None = None) -> Round:
    return plan_round(
        FleetSnapshot(
            fleet=shop(),
            members=MEMBERS if members is None else members,
            interpreters=BUILT_IN_KINDS,
            now=NOW,
        )
    )


def held(found: Round, why: str) -> Round:
    changes = tuple(replace(change, hold=hold(why)) for change in found.plan.changes)
    return replace(found, plan=replace(found.plan, changes=changes, waves=(), held_digest="d1"))


def picture(
    found: Round,
    members: dict[str, Member] | None = None,
    *,
    time: str = NOW,
    done: frozenset[Copy] = frozenset(),
    failed: Mapping[Copy, Failed] = MappingProxyType({}),
    source: str = "",
) -> StateOfFleet:
    members = MEMBERS if members is None else members
    contacts = {name: time for name, member in members.items() if isinstance(member, Read)}
    left = tuple(change for change in found.plan.changes if change.copy not in done)
    now = replace(found, plan=replace(found.plan, changes=left))
    facts = replace(facts_of(now, members), failures=failed, last_contact=contacts)
    return StateOfFleet(round=found, state=StateTables().update(facts), time=time, source=source)


def document(
    found: Round,
    done: frozenset[Copy] = frozenset(),
    failed: Mapping[Copy, Failed] = MappingProxyType({}),
    source: str = "",
) -> dict[str, Any]:
    return state_document(picture(found, done=done, failed=failed, source=source))


def counts(found: dict[str, Any], cluster: str = "m1") -> dict[str, int]:
    """Return what a cluster has of each state, without those that it has nothing of."""
    objects: dict[str, int] = next(entry["objects"] for entry in found["clusters"] if entry["name"] == cluster)
    return {state: count for state, count in objects.items() if count}


def test_what_is_due_and_was_not_tried_is_pending() -> None:
    assert counts(document(planned())) == {"pending": 2}


def test_what_was_made_is_synced_and_in_no_summary() -> None:
    found = document(planned(), done=frozenset({("m1", APP)}))
    assert counts(found) == {"synced": 1, "pending": 1}
    assert found["summary"] == {
        "create": 1,
        "update": 0,
        "replace": 0,
        "delete": 0,
        "release": 0,
        "adopt": 0,
        "held": 0,
    }


def test_what_failed_counts_as_failed_alone() -> None:
    found = document(planned(), done=frozenset({("m1", DEMO)}), failed={("m1", APP): Failed("no")})
    assert counts(found) == {"synced": 1, "failed": 1}


def test_what_is_held_names_its_reason_and_the_digest() -> None:
    found = document(held(planned(), "guard: too many"))
    assert counts(found) == {"held": 2}
    assert found["heldDigest"] == "d1"
    assert isinstance(found["held"], list)
    assert [(entry["resource"]["kind"], entry["why"]) for entry in found["held"]] == [
        ("ConfigMap", "guard: too many"),
        ("Namespace", "guard: too many"),
    ]


def test_the_value_of_a_secret_is_hidden_wherever_it_is_quoted() -> None:
    secret, quoted, hidden = Identity("", "Secret", "demo", "db"), 'Invalid value: "hunter2-old"', "«value #1»"
    body = {"apiVersion": "v1", "kind": "Secret", "stringData": {"password": "hunter2-old"}}
    sent = Change(action=Action.CREATE, cluster="m1", gvk=GVK("", "v1", "Secret"), identity=secret,
                  cause=Cause.DECLARED, manifest=body)  # fmt: skip
    found, problem = planned(), Problem(source=Source("db.yaml", 1), code="would-be-refused", message=quoted)
    changes = (*held(found, quoted).plan.changes, sent)
    found = replace(found, plan=replace(found.plan, changes=changes, problems=(problem,)))
    told = document(found, failed={sent.copy: Failed(quoted)})
    places = {"held": "why", "failed": "error", "troubles": "why", "problems": "message"}
    for place, key in places.items():
        assert f'Invalid value: "{hidden}"' in [entry[key] for entry in told[place]], place
    assert "hunter2" not in json.dumps(told)


def test_two_changes_of_one_object_count_once() -> None:
    found = planned()
    again = Change(action=Action.RELEASE, cluster="m1", gvk=GVK("", "v1", "ConfigMap"), identity=APP,
                   cause=Cause.POLICY, hold=hold("waits"))  # fmt: skip
    found = replace(found, plan=replace(found.plan, changes=(*found.plan.changes, again)))
    assert counts(document(found)) == {"pending": 1, "held": 1}


def test_a_cluster_that_was_not_asked_stays_as_it_was() -> None:
    before = document(planned(), done=frozenset({("m1", APP), ("m1", DEMO)}))
    after = state_document(picture(planned({"m2": empty("m2")}), {"m2": empty("m2")}, time=LATER), before)
    assert counts(after) == {"synced": 2}
    assert [entry["lastSuccess"] for entry in after["clusters"]] == [NOW, LATER]


def test_a_cluster_that_never_answered_says_so() -> None:
    members: dict[str, Member] = {"m1": down("m1", "no route"), "m2": empty("m2")}
    found = state_document(picture(planned(members), members))
    assert found["clusters"][0] == {
        "name": "m1",
        "up": False,
        "why": "no route",
        "todo": todo_of("cluster-away", "cluster m1", {}),
        "left": False,
        "objects": {**dict.fromkeys(map(str, Lag), 0), "unknown": 2},
        "health": {**dict.fromkeys(map(str, HealthWord), 0), "Unknown": 2},
        "lastSuccess": "",
    }
    assert found["complete"] is False


def test_the_store_is_known_by_its_last_name_until_it_has_another() -> None:
    before = document(planned(), source="/srv/fleet")
    after = state_document(picture(planned(), time=LATER), before)
    assert after["source"] == "/srv/fleet"
    assert with_source_error(after, "the branch is gone")["sourceError"] == "the branch is gone"


def test_equal_rounds_give_equal_documents() -> None:
    assert document(planned()) == document(planned())
