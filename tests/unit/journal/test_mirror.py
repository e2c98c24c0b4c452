"""The writer knows without reading what anybody else would read: after any steps, failed ones included."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.api.binding import PreviousPlacement, TargetCluster
from reconciler.api.content import JsonObject
from reconciler.api.ledger import AppliedRow, Intent
from reconciler.api.plan import Action
from reconciler.api.refs import GVK, Identity
from reconciler.api.rollout_progress import Record
from reconciler.journal import Journal
from reconciler.journal.rows import STATE

Step = Callable[[Journal], None]

NAMES = ("a", "b", "c")
clusters = st.sampled_from(("m1", "m2"))
identities = st.builds(lambda kind, name: Identity("", kind, "demo", name), st.sampled_from(("ConfigMap", "Secret")),
                       st.sampled_from(NAMES))  # fmt: skip


@st.composite
def rows(draw: st.DrawFn) -> AppliedRow:
    identity = draw(identities)
    value = draw(st.sampled_from(("eA==", "eQ==")))
    body: JsonObject = {"apiVersion": "v1", "kind": identity.kind, "data": {"value": value}}
    return AppliedRow(
        cluster=draw(clusters), gvk=GVK("", "v1", identity.kind), identity=identity, uid=draw(st.sampled_from("12")),
        recorded=draw(st.sampled_from((None, body))), replicas=draw(st.sampled_from((None, 2))),
    )  # fmt: skip


def placement_of(identity: Identity, cluster: str) -> PreviousPlacement:
    return PreviousPlacement(identity=identity, targets=(TargetCluster(cluster=cluster, replicas=None),))


placements = st.dictionaries(identities, clusters, max_size=4).map(
    lambda found: {identity: placement_of(identity, cluster) for identity, cluster in found.items()}
)
changes = st.dictionaries(identities, st.none() | clusters, max_size=4).map(
    lambda found: {i: placement_of(i, cluster) if cluster else None for i, cluster in found.items()}
)
documents = st.fixed_dictionaries(
    {"version": st.just(1), "revision": st.sampled_from("xy")},
    optional={"held": st.lists(st.sampled_from(NAMES), max_size=2), "policies": st.just(["p"])},
)


def finish(written: list[AppliedRow], removed: list[tuple[str, Identity]]) -> Step:
    def step(journal: Journal) -> None:
        intent = Intent(cluster="m1", gvk=GVK("", "v1", "ConfigMap"), identity=Identity("", "ConfigMap", "demo", "a"),
                        action=Action.UPDATE)  # fmt: skip
        (number,) = journal.begin([intent])
        journal.finish([(number, "done", "")], applied=written, removed=removed)

    return step


def record(revision: str) -> Record:
    return Record(revision=revision, begun_at="2026-11-21T10:00:00Z")


class Interrupted(Exception):
    """A step failed half-way."""


def failing(inner: Step) -> Step:
    def step(journal: Journal) -> None:
        with pytest.raises(Interrupted), journal.transaction():
            inner(journal)
            raise Interrupted

    return step


simple = st.one_of(
    st.lists(rows(), max_size=4).map(lambda found: lambda journal: journal.record_applied(found)),
    st.tuples(clusters, st.lists(identities, max_size=2)).map(
        lambda found: lambda journal: journal.remove_applied(*found)
    ),
    placements.map(lambda found: lambda journal: journal.record_bindings("r", found)),
    changes.map(lambda found: lambda journal: journal.patch_bindings("r", found)),
    st.dictionaries(st.sampled_from(NAMES), st.sampled_from("12")).map(
        lambda found: lambda journal: journal.record_in_force("", found)
    ),
    documents.map(lambda found: lambda journal: journal.record_state(found)),
    st.tuples(st.sampled_from(NAMES), st.dictionaries(clusters, st.none() | st.sampled_from("12").map(record))).map(
        lambda found: lambda journal: journal.record_rollouts(*found)
    ),
)
steps: st.SearchStrategy[Step] = st.one_of(
    simple,
    simple.map(failing),
    st.builds(finish, st.lists(rows(), max_size=3), st.lists(st.tuples(clusters, identities), max_size=2)),
    st.just(lambda journal: journal.reset()),
)


def known(journal: Journal) -> Any:
    ledger = {name: list(found.items()) for name, found in journal.ledger().items()}
    rollouts = [(name, list(found.items())) for name, found in journal.rollout_records().items()]
    placed = list(journal.previous_placements().items())
    return list(ledger.items()), placed, journal.good_blobs(), journal.state(), rollouts


@settings(max_examples=60)
@given(st.lists(steps, max_size=8))
def test_what_the_writer_knows_is_what_a_reader_reads(run: list[Step]) -> None:
    with tempfile.TemporaryDirectory() as folder, Journal.open(Path(folder) / "journal.db") as journal:
        known(journal)
        with Journal.open(journal.path, read_only=True) as reader:
            for step in run:
                step(journal)
                assert known(journal) == known(reader)


def test_an_earlier_ledger_is_never_changed_and_untouched_clusters_are_the_same(tmp_path: Path) -> None:
    app = Identity("", "ConfigMap", "demo", "app")
    row = AppliedRow(cluster="m1", gvk=GVK("", "v1", "ConfigMap"), identity=app)
    with Journal.open(tmp_path / "journal.db") as journal:
        journal.record_applied([row, AppliedRow(cluster="m2", gvk=row.gvk, identity=app)])
        before = journal.ledger()
        journal.remove_applied("m1", [app])
        after = journal.ledger()
        assert before["m1"] == {app: row}
        assert "m1" not in after
        assert after["m2"] is before["m2"]


def test_a_list_of_the_picture_that_did_not_change_is_not_written_again(tmp_path: Path) -> None:
    with Journal.open(tmp_path / "journal.db") as journal:
        journal.record_state({"version": 1, "policies": ["long"], "held": []})
        # Somebody else's change of that row shows whether it is written.
        journal._file.execute("DELETE FROM state WHERE name = 'picture.policies'")
        journal.record_state({"version": 2, "policies": ["long"], "held": ["a"]})
        with Journal.open(journal.path, read_only=True) as reader:
            assert reader.state() == {"version": 2, "held": ["a"]}


def test_a_picture_of_an_earlier_version_is_read_and_replaced(tmp_path: Path) -> None:
    with Journal.open(tmp_path / "journal.db") as journal:
        journal.record_state({"version": 1})
        with journal.transaction():
            journal._file.put(STATE, [("picture", '{"version": 1, "held": ["a"]}')])
    with Journal.open(tmp_path / "journal.db") as journal:
        assert journal.state() == {"version": 1, "held": ["a"]}
        journal.record_state({"version": 2, "held": []})
        with Journal.open(journal.path, read_only=True) as reader:
            assert reader.state() == {"version": 2, "held": []}
