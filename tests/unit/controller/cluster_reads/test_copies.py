from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reconciler.api.ledger import AppliedRow, Ledger
from reconciler.api.refs import GVK, Identity
from reconciler.controller.cluster_reads.scope import Copies, copies_since, left_since
from reconciler.planner import copies_in

GVK_APP = GVK("", "v1", "ConfigMap")
identities = st.sampled_from("abcd").map(lambda name: Identity("", "ConfigMap", "demo", name))
ledgers: st.SearchStrategy[Ledger] = st.dictionaries(
    st.sampled_from(("m1", "m2", "m3")),
    st.sets(identities).map(
        lambda found: {identity: AppliedRow(cluster="m", gvk=GVK_APP, identity=identity) for identity in found}
    ),
)


@given(st.lists(ledgers, min_size=1, max_size=5))
def test_copies_that_are_kept_up_are_those_of_a_full_search(run: list[Ledger]) -> None:
    copies: Copies = {}
    before: Ledger = {}
    for ledger in run:
        copies, before = copies_since(copies, before, ledger), ledger
        assert copies == copies_in(ledger)
        assert list(copies) == sorted(copies)


@given(ledgers, ledgers)
def test_what_left_had_a_copy_that_it_has_no_longer(before: Ledger, after: Ledger) -> None:
    old, new = copies_in(before), copies_in(after)
    assert left_since(before, after) == {found for found in old if not old[found] <= new.get(found, set())}
