"""FieldsV1: reading, joining, subtracting."""

from __future__ import annotations

from typing import Any

from reconciler.ownership import (
    Keyed,
    Member,
    entries_of,
    fields_of,
    owners_of,
    owns,
    owns_within,
    step_of,
    subtree,
    union,
)
from reconciler.ownership.managed_fields import difference, made_by, managers_of, paths_of
from tests.unit.ownership_notation import US, fields_v1, managed


def body(**owners: list[str]) -> dict[str, Any]:
    """An object with that ownership; `us` is us."""
    return {"metadata": {"managedFields": managed({k.replace("_", " "): v for k, v in owners.items()})}}


def test_reads_every_kind_of_step() -> None:
    assert step_of("f:a.b") == "a.b"
    assert step_of('k:{"port":80,"protocol":"TCP"}') == Keyed((("port", 80), ("protocol", "TCP")))
    assert step_of('v:"x"') == Member("x")
    assert step_of("i:3") == 3


def test_malformed_steps_are_nothing() -> None:
    for raw in (".", "k:[1]", "k:{", "v:{}", "i:x", "z:1", ""):
        assert step_of(raw) is None


def test_entries_that_are_not_well_formed_are_left_out() -> None:
    entries = [{"manager": "a"}, {"manager": "b", "fieldsV1": []}, 5, {"manager": "c", "fieldsV1": {}}]
    assert [entry["manager"] for entry in entries_of({"metadata": {"managedFields": entries}})] == ["c"]
    assert entries_of({"metadata": {"managedFields": "x"}}) == ()
    assert entries_of({}) == ()


def test_ours_is_what_we_applied_to_the_object_itself() -> None:
    live = {
        "metadata": {
            "managedFields": managed(
                {
                    "us": ["spec.a"],
                    f"{US} Apply status": ["status.b"],
                    f"{US} Update": ["spec.c"],
                    "x Apply": ["spec.d"],
                }
            )
        }
    }
    assert list(paths_of(fields_of(live, US))) == [("spec", "a")]


def test_owning_something_below_is_not_owning_the_place() -> None:
    fields = fields_v1("spec.list[name=a].x", "spec.leaf")
    item = ("spec", "list", Keyed((("name", "a"),)))
    assert owns(fields, item)
    assert owns(fields, ("spec", "leaf"))
    assert not owns(fields, ("spec",))
    assert owns_within(fields, ("spec",))
    assert not owns_within(fields, ("status",))
    assert subtree(fields, ("spec", "leaf")) == {}


def test_union_and_difference_keep_the_place_itself_apart_from_what_is_below() -> None:
    whole, below = fields_v1("spec.map"), fields_v1("spec.map.a")
    joined = union([whole, below])
    assert set(paths_of(joined)) == {("spec", "map"), ("spec", "map", "a")}
    assert set(paths_of(difference(joined, below))) == {("spec", "map")}
    assert set(paths_of(difference(joined, whole))) == {("spec", "map", "a")}
    assert difference(below, joined) == {}


def test_names_owners_below_a_path_and_the_last_writer_first() -> None:
    live = body(one_Update=["spec.a.b"], two_Update=["spec.a.c"], three_Update=["spec.x"])
    assert [owner.manager for owner in owners_of(live, ("spec", "a"))] == ["two", "one"]
    assert managers_of(live, ("spec", "a", "b")) == {"one"}
    assert managers_of(live, ("status",)) == frozenset()


def test_who_writes_the_status_in_the_second_of_the_creation_did_not_make_it() -> None:
    entry = {"operation": "Update", "time": "2026-01-01T00:00:00Z", "fieldsV1": {}}
    server = {**entry, "manager": "kube-apiserver", "subresource": "status"}
    assert (
        made_by({"metadata": {"managedFields": [server, {**entry, "manager": "kubectl-create"}]}}) == "kubectl-create"
    )
    assert made_by({"metadata": {"managedFields": [server]}}) == "kube-apiserver"
