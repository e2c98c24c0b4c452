from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from reconciler.api.problem import Document, Severity
from reconciler.documents import Field, FieldType, document_fields, either_case, shape, walk
from reconciler.policy import parse_propagation_policy

BELOW = shape(Field("deep", FieldType.TEXT, "Deep."))
ROOT = shape(
    Field("text", FieldType.TEXT, "Text.", spellings=("txt",)),
    Field("size", FieldType.INTEGER, "Size."),
    Field("mode", FieldType.TEXT, "Mode.", values=either_case("Fast", Quick="Fast")),
    Field("one", FieldType.OBJECT, "One.", shape=BELOW),
    Field("many", FieldType.OBJECTS, "Many.", shape=BELOW),
    Field("both", FieldType.TEXT_OR_OBJECT, "Both.", shape=BELOW),
    Field("free", FieldType.ANY, "Free."),
    Field("needed", FieldType.FLAG, "Needed.", required=True),
)


def _document(body: dict[str, Any]) -> Document:
    return Document(path="a.yaml", line=1, body=body, locate=lambda steps: len(steps) + 1)


def test_absent_fields_have_neutral_values() -> None:
    fields = document_fields(_document({"needed": False}), ROOT)
    assert fields.report.problems == []
    assert (fields.text("text"), fields.text("text", "other"), fields.integer("size")) == ("", "other", None)
    assert (fields.flag("needed"), fields.child("one"), list(fields.children("many"))) == (False, None, [])
    assert (fields.has("free"), fields.any("free"), fields.any("both")) == (False, None, None)


def test_null_is_absent_except_where_anything_may_stand() -> None:
    fields = document_fields(_document({"needed": True, "text": None, "free": None}), ROOT)
    assert not fields.has("text")
    assert fields.has("free")
    assert fields.any("free") is None


def test_null_does_not_stand_for_a_required_field() -> None:
    fields = document_fields(_document({"needed": None}), ROOT)
    assert [problem.code for problem in fields.report.problems] == ["field-required"]


def test_spellings_lead_to_one_field_and_keep_their_place() -> None:
    fields = document_fields(_document({"needed": True, "txt": "a"}), ROOT)
    assert fields.text("text") == "a"
    assert fields.path("text") == ("txt",)


def test_values_become_canonical() -> None:
    for spelling in ("Fast", "fast", "Quick", "quick"):
        assert document_fields(_document({"needed": True, "mode": spelling}), ROOT).text("mode") == "Fast"


def test_object_may_be_a_string_where_it_is_allowed() -> None:
    fields = document_fields(_document({"needed": True, "both": "a"}), ROOT)
    assert fields.any("both") == "a"
    assert fields.child("both") is None
    below = document_fields(_document({"needed": True, "both": {"deep": "b"}}), ROOT).child("both")
    assert below is not None
    assert (below.text("deep"), below.steps) == ("b", ("both",))


def test_items_of_a_list_know_their_path() -> None:
    fields = document_fields(_document({"needed": True, "many": [{"deep": "a"}, {"deep": 1}]}), ROOT)
    assert [item.text("deep") for item in fields.children("many")] == ["a", ""]
    (problem,) = fields.report.problems
    assert (problem.path, problem.source.line) == ("many[1].deep", 4)


def test_hints_and_warnings_are_no_errors() -> None:
    fields = document_fields(_document({"needed": True}), ROOT)
    fields.report.warning("a-code", "text", "one")
    fields.report.warning("a-code", "text", "two", severity=Severity.HINT)
    assert not fields.report.has_errors
    fields.report.error("a-code", "text")
    assert fields.report.has_errors


def test_walk_lists_parents_before_children() -> None:
    assert [path for path, _ in walk(ROOT)] == [
        "text", "size", "mode", "one", "one.deep", "many", "many[].deep", "both", "both.deep", "free", "needed",
    ]  # fmt: skip


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=5), below, max_size=3),
    max_leaves=8,
)
KEYS = sorted({path.rpartition(".")[2].removesuffix("[]") for path, _ in walk(ROOT)})
BODIES = st.dictionaries(st.sampled_from([*KEYS, "zzz"]), JSON, max_size=6)


@given(BODIES)
def test_whatever_is_written_reading_never_fails(body: dict[str, Any]) -> None:
    fields = document_fields(_document(body), ROOT)
    one = fields.child("one")
    items = list(fields.children("many"))
    assert isinstance(fields.text("text"), str)
    assert all(isinstance(item.text("deep"), str) for item in items)
    assert one is None or isinstance(one.text("deep"), str)
    assert all(problem.source.path == "a.yaml" for problem in fields.report.sorted())


@given(st.dictionaries(st.sampled_from(["apiVersion", "kind", "metadata", "spec"]), JSON))
def test_whatever_is_written_a_policy_is_refused_with_a_problem(body: dict[str, Any]) -> None:
    policy, problems = parse_propagation_policy(_document({"kind": "PropagationPolicy"} | body))
    assert policy is not None or any(problem.severity is Severity.ERROR for problem in problems)
