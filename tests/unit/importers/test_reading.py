"""A foreign document read field by field: whatever nobody asked for is told, with its line and never its value."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from reconciler.api.problem import Source
from reconciler.importers import Notes, Reading, Settings, Uncarried, grouped, of_settings
from reconciler.importers.reading import Failure
from tests.unit.importers.told import documents_of

KEYS = st.sampled_from(["a", "b", "c", "d", "e"])
VALUES = st.integers(1, 9) | st.sampled_from(["canary", True]) | st.lists(st.integers(0, 9), min_size=1)


@given(body=st.dictionaries(KEYS, VALUES), asked=st.sets(KEYS))
def test_each_field_was_asked_for_or_is_told(body: dict[str, Any], asked: set[str]) -> None:
    text = yaml.safe_dump({"kind": "X", "spec": body}, sort_keys=False)
    document = documents_of(text)[0]
    notes = Notes()
    reading = Reading(document, document.body, (), notes).child("spec")
    for key in asked:
        reading.value(key)
    reading.rest()
    told = {found.field.removeprefix("spec.") for found in notes.sorted()}
    assert told == body.keys() - asked
    lines = text.splitlines()
    for found in notes.sorted():
        assert lines[found.source.line - 1].strip(" {").startswith(found.field.removeprefix("spec."))
        assert "canary" not in str(found)


@pytest.mark.parametrize(
    ("settings", "values"),
    [
        ([("a.b", "1"), ("a.c", "x")], {"a": {"b": 1, "c": "x"}}),
        ([(r"a.b\.c/d", "true")], {"a": {"b.c/d": True}}),
        ([("a", "null"), ("b", "007"), ("c", "-5"), ("d", "1.5")], {"a": None, "b": "007", "c": -5, "d": "1.5"}),
        ([("a", "x,y")], {"a": "x,y"}),
    ],
)
def test_parameters_are_read_as_helm_reads_them(settings: list[tuple[str, str]], values: dict[str, Any]) -> None:
    assert of_settings(Settings(*setting) for setting in settings) == values


@pytest.mark.parametrize("name", ["a[0]", "a..b", ".a", "a.", "", "a,b", "a={x"])
def test_a_parameter_that_is_no_plain_name_is_refused(name: str) -> None:
    with pytest.raises(Uncarried):
        of_settings([Settings(name, "x")])


@pytest.mark.parametrize("value", ["{a,b}", r"a\,b"])
def test_a_parameter_with_a_list_or_an_escape_is_refused(value: str) -> None:
    with pytest.raises(Uncarried):
        of_settings([Settings("a", value)])


@pytest.mark.parametrize(
    "why",
    [
        "its {kind} {space}/{name} is not among the documents; give it too",
        "the path {path} of the {kind} {name} is of 0 copies of folders",
        "the ConfigMap {space}/{name} with {name}.yaml is not among the documents",
        "the chart has the version '{name}'",
    ],
)
def test_reasons_that_differ_by_what_they_name_are_one_line(why: str) -> None:
    names = [{"kind": "GitRepository", "space": "a", "name": "b", "path": "apps/a"},
             {"kind": "GitRepository", "space": "flux-system", "name": "kagent-crds", "path": "apps/b"}]  # fmt: skip
    found = [Failure(Source(path="a.yaml", line=1), "Kustomization", why.format(**each)) for each in names]
    assert [line.endswith("(2 of this reason; --all names each)") for line in grouped(found)] == [True]
    assert len(list(grouped([found[0], Failure(Source(path="a.yaml", line=1), "a", "it is a plugin")]))) == 2
