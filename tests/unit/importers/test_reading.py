"""A foreign document read field by field: whatever nobody asked for is told, with its line and never its value."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from reconciler.api.problem import Source
from reconciler.importers import Notes, Reading, Settings, Uncarried, grouped, of_settings
from reconciler.importers.reading import FAILED, Remark
from tests.unit.importers.told import documents_of
from tests.unit.yaml_cases import cases

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
    told = {found.subject.removeprefix("spec.") for found in notes.sorted()}
    assert told == body.keys() - asked
    lines = text.splitlines()
    for found in notes.sorted():
        assert lines[found.source.line - 1].strip(" {").startswith(found.subject.removeprefix("spec."))
        assert "canary" not in str(found)


@pytest.mark.parametrize("case", cases("importing/settings.yaml"))
def test_parameters_are_read_as_helm_reads_them(case: dict[str, Any]) -> None:
    settings = [Settings(name, value, is_text) for name, value, is_text in case["set"]]
    assert of_settings(settings, case.get("over", {})) == case["is"]


@pytest.mark.parametrize(
    "name", ["a[", "a[x]", "a[0]x", "[0]", "a..b", ".a", "a.", "", "a,b", "a={x", "a[99999]", "s.x", "s[0]"]
)
def test_a_parameter_that_names_no_value_is_refused(name: str) -> None:
    with pytest.raises(Uncarried):
        of_settings([Settings(name, "x")], {"s": "text"})


@pytest.mark.parametrize("value", ["{a,b", "{a}x", "a,b=c", "a\\"])
def test_a_value_that_helm_would_not_read_as_one_is_refused(value: str) -> None:
    with pytest.raises(Uncarried):
        of_settings([Settings("a", value)])


def test_an_empty_value_below_a_list_is_refused_since_helm_leaves_it_out() -> None:
    with pytest.raises(Uncarried, match="Helm leaves it out"):
        of_settings([Settings("a[0].b", "")])


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
    found = [Remark(Source(path="a.yaml", line=1), "Kustomization", why.format(**each), FAILED) for each in names]
    assert [line.endswith("(2 of this reason; --all names each)") for line in grouped(found)] == [True]
    assert len(list(grouped([found[0], Remark(Source(path="a.yaml", line=1), "a", "it is a plugin", FAILED)]))) == 2
