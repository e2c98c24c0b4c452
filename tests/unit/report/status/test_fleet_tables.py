"""The lists of the state document over the whole store: kept where nothing differs, and always as if made again."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from reconciler.api.clusters import Observations
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.report.status.status_document import StatusTables
from reconciler.scheduler import Schedule, ScheduleTables, schedule_fleet
from tests.fakes.worlds import NOW, config_map, deployment, fleet_of, policy

NAMES = ("a", "b", "c")


@st.composite
def stores(draw: st.DrawFn) -> list[dict[str, Any]]:
    maps, deployments = st.sets(st.sampled_from(NAMES)), st.sets(st.sampled_from(NAMES), max_size=2)
    documents = [
        *(config_map(name, value=draw(st.sampled_from("12"))) for name in draw(maps)),
        *(deployment(name, replicas=draw(st.sampled_from((1, 4)))) for name in draw(deployments)),
    ]
    for name in draw(st.sets(st.sampled_from(NAMES))):
        chosen = policy("ConfigMap", *draw(st.sampled_from((("m1",), ("m2", "m3")))), name=name)
        chosen["spec"]["resourceSelectors"][0]["name"] = draw(st.sampled_from(NAMES))
        documents.append(chosen)
    if draw(st.booleans()):
        documents.append(policy("Deployment", "m1", name="deployments"))
    return documents


def decided(documents: list[dict[str, Any]], memo: ScheduleTables | None = None) -> Schedule:
    return schedule_fleet(fleet_of(*documents), Observations(), NOW, tables=memo, interpreters=BUILT_IN_KINDS)


@given(st.lists(stores(), min_size=2, max_size=4))
def test_lists_that_are_kept_up_are_those_made_anew(run: list[list[dict[str, Any]]]) -> None:
    tables, memo = StatusTables(), ScheduleTables()
    for documents in run:
        schedule = decided(documents, memo)
        assert tables.of(schedule) == StatusTables().of(schedule)


def test_lists_without_a_difference_are_the_same_lists() -> None:
    tables, memo = StatusTables(), ScheduleTables()
    rest = [policy("ConfigMap", "m1"), deployment()]
    before = tables.of(decided([config_map(value="1"), *rest], memo))
    after = tables.of(decided([config_map(value="2"), *rest], memo))
    assert after[0] is before[0]
    assert after[1] is before[1]
