"""Directives of other tools are read, the same here, or named. Source: the tools, beside each case."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.api.problem import Document
from reconciler.ownership import DIRECTIVES, DirectiveEffect, MarkPlace, directives_of
from reconciler.ownership.directives import DOMAINS
from reconciler.templates import read_template
from tests.docs.pages import ROOT
from tests.unit.yaml_cases import CASES
from tests.yaml_text import load_yaml

ROWS = load_yaml((CASES / "ownership/directives.yaml").read_text())["cases"]
SAID = [(key, value, row["effect"]) for row in ROWS for key, values in row["says"].items() for value in values]
TOLD = {
    "unknown": ("directive-unknown", "warning"),
    "dropped": ("directive-dropped", "warning"),
    "refused": ("directive-refused", "error"),
    "hook": ("directive-refused", "error"),
    "left out": ("directive-refused", "error"),
}


def told(field: str, key: str, value: str) -> list[tuple[str, str]]:
    """Codes and severities of what a store says of an object with this label or annotation, but for marks."""
    body: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", field: {key: value}}}
    template, problems = read_template(Document(path="a.yaml", line=1, body=body, locate=len))
    assert (template is None) == any(problem.severity == "error" for problem in problems)
    assert all(problem.source.path and problem.source.line for problem in problems)
    return [(p.code, str(p.severity)) for p in problems if p.code != "template-of-another-tool"]


@pytest.mark.parametrize(("key", "value", "effect"), SAID)
def test_a_directive_has_the_effect_of_the_table_and_is_named_unless_it_is_kept_to(
    key: str, value: str, effect: str
) -> None:
    found = {one.effect.value for one in directives_of({"annotations": {key: value}})}
    assert found == ({effect} if effect != "none" else set())
    assert set(told("annotations", key, value)) == ({TOLD[effect]} if effect in TOLD else set())


def test_every_row_has_a_case_and_a_source() -> None:
    assert {(row.key.replace("*", "any"), row.value) for row in DIRECTIVES} <= {(key, value) for key, value, _ in SAID}
    assert all(row.source and row.here for row in DIRECTIVES)
    assert len({(row.key, row.value) for row in DIRECTIVES}) == len(DIRECTIVES)


def test_each_option_of_a_list_counts_by_itself() -> None:
    options = "Prune=false, Force=true,,Validate=false,Prune=flase"
    found = list(directives_of({"annotations": {"argocd.argoproj.io/sync-options": options}}))
    assert [(one.value, one.effect.value) for one in found] == [
        ("Prune=false", "keep"), ("Force=true", "replace"), ("Validate=false", "dropped"), ("Prune=flase", "unknown"),
    ]  # fmt: skip


NAMES = st.from_regex(r"[a-z]([a-z0-9./*-]{0,20}[a-z0-9])?", fullmatch=True).filter(lambda name: "/" not in name)
KNOWN = {row.key for row in DIRECTIVES}
HOOKS = ("argocd.argoproj.io/hook", "helm.sh/hook")


@given(st.sampled_from(DOMAINS), st.sampled_from(("", "new.")), NAMES, st.text(max_size=40), st.sampled_from(MarkPlace))
def test_what_is_in_a_domain_of_a_tool_and_in_no_row_is_never_silent(
    domain: str, below: str, name: str, value: str, place: MarkPlace
) -> None:
    key = f"{below}{domain}/{name}"
    if key in KNOWN or place is MarkPlace.OWNER or any(key.startswith(row[:-1]) for row in KNOWN if row[-1] == "*"):
        return
    assert told(place.value, key, value), (key, value)


@given(st.sampled_from(DIRECTIVES), st.text(max_size=40))
def test_a_value_that_is_in_no_row_is_never_silent(row: Any, value: str) -> None:
    values = {other.value.lower() for other in DIRECTIVES if other.key == row.key}
    if "" in values or any(part.strip().lower() in values for part in value.split(",")):
        return
    (severity,) = {severity for code, severity in told("annotations", row.key, value)}
    assert severity == ("error" if row.key in HOOKS else severity)


@pytest.mark.parametrize("effect", DirectiveEffect)
def test_the_page_on_marks_says_each_effect(effect: DirectiveEffect) -> None:
    page = (ROOT / "docs/reference/directives.md").read_text(encoding="utf-8")
    assert effect.value in page


def test_a_value_that_may_hold_anything_is_not_repeated() -> None:
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "annotations": {"helm.sh/x": "canary"}}}
    _, problems = read_template(Document(path="a.yaml", line=1, body=body, locate=lambda steps: 1))
    assert problems
    assert "canary" not in json.dumps([problem.message for problem in problems])


@pytest.mark.parametrize(("value", "is_told"), [("allowed", False), ("alowed", True), ("", True)])
def test_another_value_of_our_own_annotation_to_replace_is_named(value: str, is_told: bool) -> None:
    assert told("annotations", "fleet.reconciler/replace", value) == [("directive-unknown", "warning")] * is_told
