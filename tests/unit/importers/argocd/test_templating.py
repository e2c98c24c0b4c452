"""Templates of an ApplicationSet: what is plain is filled in, and all else is refused, never half evaluated."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.importers import Uncarried
from reconciler.importers.argocd.generators import matches
from reconciler.importers.argocd.templating import filled

PARAMS = {"name": "EU_1", "path": {"basename": "web", "segments": ["apps", "web"]}, "labels": {"a/b": "c"}, "on": True}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("x-{{ .name }}-{{.path.basename}}", "x-EU_1-web"),
        ('{{ index .labels "a/b" }}', "c"),
        ("{{ index .path.segments 1 }}", "web"),
        ('{{ .absent | default "y" }}', "y"),
        ('{{ default "y" .name }}', "EU_1"),
        ("{{ .name | normalize }}", "eu-1"),
        ("{{ .name | lower | upper }}", "EU_1"),
        ("{{ .on }}", "true"),
    ],
)
def test_what_is_plain_is_filled_in(text: str, wanted: str) -> None:
    assert filled(text, PARAMS, go=True) == wanted
    assert filled({"a": [text]}, PARAMS, go=True) == {"a": [wanted]}


@pytest.mark.parametrize(
    "text",
    [
        "{{ .absent }}", "{{ .path }}", "{{ range .x }}", "{{ if .on }}x{{ end }}", "{{ env .name }}",
        "{{ .name | b64enc }}",
        "{{- .name }}", "{{ index .path.segments 9 }}", "{{ (index .labels .name) }}", "{{ $x := .name }}", "{{ }}",
        "{{ default .name }}", "{{ lower .absent }}", "{{ .name .name }}", "{{ \"a\" | .name }}",
    ],
)  # fmt: skip
def test_all_else_is_refused(text: str) -> None:
    with pytest.raises(Uncarried):
        filled(text, PARAMS, go=True)


def test_without_templates_of_go_a_name_is_a_parameter_or_refused() -> None:
    flat = {"name": "a", "metadata.labels.x": "b", "path[0]": "c"}
    assert filled("{{name}} {{ metadata.labels.x }} {{path[0]}}", flat, go=False) == "a b c"
    with pytest.raises(Uncarried):
        filled("{{other}}", flat, go=False)


@given(text=st.text("{}-a \n", max_size=20))
def test_names_end_at_the_first_braces_and_lose_dashes_and_blanks(text: str) -> None:
    """As the expression says that tries every end from every beginning."""
    found = re.compile(r"\{\{-?\s*(.*?)\s*-?\}\}", re.DOTALL)
    values = {hole[1]: f"<{hole[1]}>" for hole in found.finditer(text)}
    assert filled(text, values, go=False) == found.sub(lambda hole: values[hole[1]], text)


@pytest.mark.parametrize(
    ("path", "pattern", "is_one"),
    [
        ("apps/web", "apps/*", True),
        ("apps/web/x", "apps/*", False),
        ("apps/web/x/config.json", "apps/**/config.json", True),
        ("apps/config.json", "apps/**/config.json", True),
        ("other", "**", True),
        ("/".join("a" * 60), "/".join(["**"] * 60 + ["b"]), False),
    ],
)
def test_patterns_of_paths(path: str, pattern: str, is_one: bool) -> None:
    assert matches(path, pattern) is is_one
