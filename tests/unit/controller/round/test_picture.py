from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from types import MappingProxyType

from msgspec.structs import replace

from reconciler.api.clusters import Member, NotRead, Read
from reconciler.api.problem import NOWHERE, Problem, Severity
from reconciler.api.refs import Identity
from reconciler.containment import INTERNAL_ERROR
from reconciler.controller.round.apply_plan import ChangeResult
from reconciler.controller.round.failed_changes import merged as picture_after
from reconciler.controller.round.failed_changes import with_completeness
from reconciler.fleet_snapshot import FleetSnapshot
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.planner import Round
from tests.fakes.worlds import TestBed, config_map, fleet_of, policy

APP = Identity("", "ConfigMap", "demo", "app")


def first_round() -> Round:
    return TestBed().plan(fleet_of(config_map(), policy("ConfigMap", "m1", "m2")))


def made(planned: Round, *clusters: str) -> list[ChangeResult]:
    return [ChangeResult(change=change) for change in planned.plan.changes if change.cluster in clusters]


def merged(
    before: Round | None,
    planned: Round,
    results: list[ChangeResult],
    only: frozenset[Identity] | None,
    members: Mapping[str, Member] = MappingProxyType({}),
    unlisted: tuple[Problem, ...] = (),
) -> Round:
    fleet = planned.schedule.fleet
    snapshot = FleetSnapshot(fleet=fleet, interpreters=BUILT_IN_KINDS, now="", members=members, only=only)
    return picture_after(before, planned, results, snapshot, unlisted)


def due(picture: Round) -> set[tuple[str, str]]:
    return {(change.cluster, change.identity.kind) for change in picture.plan.changes}


def test_what_was_made_is_no_longer_due() -> None:
    planned = first_round()
    assert due(merged(None, planned, made(planned, "m1"), None)) == {("m2", "ConfigMap"), ("m2", "Namespace")}


def test_what_failed_stays_due() -> None:
    planned = first_round()
    failed = [replace(result, error="no") for result in made(planned, "m1", "m2")]
    assert due(merged(None, planned, failed, None)) == due(planned)


def test_a_partial_round_keeps_what_it_did_not_look_at() -> None:
    planned = first_round()
    before = merged(None, planned, [], None)
    plan = replace(planned.plan, changes=(), waves=())
    after = merged(before, replace(planned, plan=plan, manifests={}), [], frozenset({APP}))
    assert due(after) == {("m1", "Namespace"), ("m2", "Namespace")}
    assert all(APP not in manifests for manifests in after.manifests.values())


def test_a_full_round_replaces_everything() -> None:
    planned = first_round()
    plan = replace(planned.plan, changes=(), waves=())
    assert due(merged(planned, replace(planned, plan=plan), [], None)) == set()


def with_problems(planned: Round, *found: tuple[Identity, str]) -> Round:
    """The round with a problem of each object; none of the messages names its object."""
    problems = {
        identity: (Problem(source=NOWHERE, code=code, message="it is odd", severity=Severity.WARNING),)
        for identity, code in found
    }
    plan = replace(planned.plan, problems=tuple(chain(*problems.values())))
    return replace(planned, plan=plan, problems=problems)


def test_problems_of_what_was_looked_at_are_replaced_and_those_of_others_stay() -> None:
    planned, other = first_round(), APP._replace(name="other")
    before = with_problems(planned, (APP, "old"), (other, "other"))
    store = Problem(source=NOWHERE, code="store", message="said before")
    before = replace(before, plan=replace(before.plan, problems=(*before.plan.problems, store)))
    after = merged(before, with_problems(planned, (APP, "new")), [], frozenset({APP}))
    assert [problem.code for problem in after.plan.problems] == ["new", "other"]
    mended = merged(after, planned, [], frozenset({APP}))
    assert "new" not in {problem.code for problem in mended.plan.problems}
    assert other in mended.problems
    assert not merged(mended, planned, [], None).problems


def test_a_picture_is_complete_only_when_every_part_is() -> None:
    """Whichever round looked at what: one that looks at little fixes no more than that."""
    planned = first_round()
    known: dict[str, Member] = {"m1": Read(name="m1"), "m2": Read(name="m2")}
    assert with_completeness(planned, known).plan.is_complete
    fault = with_problems(planned, (APP, INTERNAL_ERROR))
    gaps: list[tuple[Round, dict[str, Member]]] = [
        (planned, {**known, "m2": NotRead(name="m2", why="no answer")}),
        (planned, {**known, "m2": Read(name="m2", unread={APP: "forbidden"})}),
        (fault, known),
        (merged(fault, planned, [], frozenset()), known),
    ]
    for picture, members in gaps:
        assert not with_completeness(picture, members).plan.is_complete
    assert with_completeness(merged(fault, planned, [], frozenset({APP})), known).plan.is_complete


def test_what_was_looked_at_in_one_cluster_alone_stays_as_it_was_in_the_others() -> None:
    planned = first_round()
    said = [Problem(source=NOWHERE, code=name, message="said", cluster=name) for name in ("m1", "m2")]
    before = replace(planned, problems={APP: tuple(said)})
    members = {"m1": Read(name="m1"), "m2": Read(name="m2", unasked=frozenset({APP}))}
    nothing = replace(planned, plan=replace(planned.plan, changes=()), manifests={})
    after = merged(before, nothing, [], frozenset({APP}), members)
    assert {change.cluster for change in after.plan.changes if change.identity == APP} == {"m2"}
    assert [problem.cluster for problem in after.problems[APP]] == ["m2"]
    assert APP not in after.manifests["m1"]
    assert APP in after.manifests["m2"]


def test_what_a_list_was_refused_is_told_until_the_next_round_that_lists() -> None:
    """A commit in between lists nothing, and has nothing to say of it. Source: design#missing-right."""
    planned = first_round()
    lack = Problem(source=NOWHERE, code="right-missing", message="it may not", severity=Severity.WARNING, cluster="m1")
    before = replace(planned, plan=replace(planned.plan, problems=(lack,)))
    assert merged(before, planned, [], frozenset({APP}), unlisted=(lack,)).plan.problems == (lack,)
    assert merged(before, planned, [], frozenset({APP})).plan.problems == ()
    assert merged(before, planned, [], None).plan.problems == ()
