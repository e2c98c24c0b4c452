"""Like changes are one entry; differences are named, and nothing gets lost."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from reconciler.api.plan import MISSING, Action, Change, FieldChange
from reconciler.report.plan.groups import grouped
from tests.golden.plans import CONFIG_MAP, change, image_bump

fields = st.builds(
    FieldChange,
    path=st.sampled_from(["a", "b"]),
    before=st.sampled_from([MISSING, None, 1, True, "1", [1], {"x": 1}]),
    after=st.sampled_from([MISSING, 1, True]),
)
changes = st.lists(
    st.builds(
        change,
        st.sampled_from([Action.UPDATE, Action.DELETE]),
        st.sampled_from(["m1", "m2", "m3"]),
        st.just(CONFIG_MAP),
        st.sampled_from(["c", "d"]),
        held=st.sampled_from([None, "waits"]),
        fields=st.lists(fields, max_size=2, unique_by=lambda field: field.path).map(tuple),
    ),
    max_size=8,
    unique_by=lambda found: (found.cluster, found.identity, found.action, found.held),
)


@given(changes)
def test_entries_and_their_lines_say_exactly_what_the_changes_say(found: list[Change]) -> None:
    entries = grouped(found)
    told = {(cluster, entry.action, entry.identity, entry.held) for entry in entries for cluster in entry.clusters}
    assert told == {(one.cluster, one.action, one.identity, one.held) for one in found}
    lines = {
        (cluster, entry.action, entry.identity, entry.held, line.path, repr(line.before), repr(line.after))
        for entry in entries
        for line in entry.fields
        for cluster in line.clusters
    }
    assert lines == {
        (one.cluster, one.action, one.identity, one.held, field.path, repr(field.before), repr(field.after))
        for one in found
        for field in one.fields
    }


@given(changes, st.integers())
def test_the_order_of_changes_does_not_matter(found: list[Change], seed: int) -> None:
    shuffled = list(found)
    random.Random(seed).shuffle(shuffled)
    assert grouped(shuffled) == grouped(found)


def test_one_change_in_thirty_clusters_is_one_entry_with_one_line() -> None:
    (entry,) = grouped(image_bump(f"edge-{number}") for number in range(30))
    assert len(entry.clusters) == 30
    assert len(entry.fields) == 1
