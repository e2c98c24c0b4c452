"""Templates of an ApplicationSet: filled in as Go does, and all else is refused, never half evaluated."""

from __future__ import annotations

import contextlib
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.importers import Uncarried
from reconciler.importers.argocd.generators import is_file_of, is_folder_of
from reconciler.importers.argocd.templating import Templates, patched
from tests.unit.yaml_cases import cases

GO, STRICT, PLAIN = Templates(go=True), Templates(go=True, is_strict=True), Templates()


@pytest.mark.parametrize("case", cases("importing/go_templates.yaml"))
def test_a_template_of_go_says_what_go_says(case: dict[str, Any]) -> None:
    assert GO.filled({"a": [case["text"]]}, case["params"]) == {"a": [case["is"]]}


@pytest.mark.parametrize("case", cases("importing/go_templates_refused.yaml"))
def test_all_else_is_refused_by_name(case: dict[str, Any]) -> None:
    with pytest.raises(Uncarried, match=re.escape(case["why"])):
        STRICT.filled(case["text"], case["params"])


def test_without_templates_of_go_a_name_is_a_parameter_or_stays() -> None:
    flat = {"name": "a", "metadata.labels.x": "b", "path[0]": "c"}
    assert PLAIN.filled("{{name}} {{ metadata.labels.x }} {{path[0]}}", flat) == "a b c"
    assert PLAIN.filled("{{ $labels.pod }} {{", flat) == "{{ $labels.pod }} {{"


@given(text=st.text("{}-a \n", max_size=20))
def test_names_end_at_the_first_braces_and_lose_blanks(text: str) -> None:
    """As the expression says that tries every end from every beginning."""
    found = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
    values = {hole[1].strip(): f"<{hole[1].strip()}>" for hole in found.finditer(text)}
    assert PLAIN.filled(text, values) == found.sub(lambda hole: values[hole[1].strip()], text)


@given(text=st.text('{}.a-b $|()"if end range\n', max_size=30))
def test_no_text_breaks_the_reading_of_templates(text: str) -> None:
    with contextlib.suppress(Uncarried):
        assert isinstance(GO.filled(text, {"a": "1", "b": [1, {"c": True}]}), str)


def test_a_patch_is_laid_over_an_application_and_null_deletes() -> None:
    body = {"spec": {"source": {"helm": {"values": "a"}}, "syncPolicy": {"automated": {}}}}
    patch = "spec: {syncPolicy: null, source: {helm: {parameters: [{name: a}]}}}"
    assert patched(body, patch) == {"spec": {"source": {"helm": {"values": "a", "parameters": [{"name": "a"}]}}}}
    assert patched(body, " \n") == body
    for wrong in ("[1]", "a: b: c", "spec: {$patch: delete}"):
        with pytest.raises(Uncarried, match="templatePatch"):
            patched(body, wrong)


@pytest.mark.parametrize(
    ("path", "pattern", "is_folder", "is_file"),
    [
        ("apps/web", "apps/*", True, True),
        ("apps/web/x", "apps/*", False, True),
        ("apps/web", "apps/**", True, True),
        ("apps/web/x", "apps/**", False, True),
        ("apps/web/x/config.json", "apps/**/config.json", False, True),
        ("apps/web/x/config.json", "apps/*/config.json", False, True),
        ("apps/config.json", "apps/**/config.json", False, False),
        ("apps/web/a.json", "apps", False, True),
        ("other", "*", True, True),
    ],
)
def test_patterns_of_paths(path: str, pattern: str, is_folder: bool, is_file: bool) -> None:
    assert (is_folder_of(path, pattern), is_file_of(path, pattern)) == (is_folder, is_file)
