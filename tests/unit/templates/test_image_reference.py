"""Image references, by the table tests/cases/overrides/images.yaml, and laws over all of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.api.policies import ImageComponent, OverrideOperator
from reconciler.templates import ImageFault, override_image, parse_image, replaces_registry
from reconciler.templates.facts import ImageReference
from tests.yaml_text import load_yaml

CASES = load_yaml((Path(__file__).parents[2] / "cases" / "overrides" / "images.yaml").read_text())

registries = st.sampled_from(["", "localhost", "reg.example", "reg:5000", "a.b-c.example:80", "[::1]:5000"])
repositories = st.lists(
    st.from_regex(r"[a-z0-9]{1,4}(?:(?:\.|_|__|-{1,2})[a-z0-9]{1,3}){0,2}", fullmatch=True), min_size=1, max_size=3
).map("/".join)
tags = st.one_of(st.just(""), st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,8}", fullmatch=True))
digests = st.one_of(st.just(""), st.from_regex(r"sha256:[0-9a-f]{32,40}", fullmatch=True))


@st.composite
def references(draw: st.DrawFn) -> ImageReference:
    registry, repository = draw(registries), draw(repositories)
    # Without a registry a first part such as `a.b` would be one.
    first, slash, _ = repository.partition("/")
    if not registry and slash and ("." in first or first == "localhost"):
        registry = "reg.example"
    return ImageReference(registry=registry, repository=repository, tag=draw(tags), digest=draw(digests))


@pytest.mark.parametrize("case", CASES, ids=[case["case"] for case in CASES])
def test_image(case: dict[str, Any]) -> None:
    component, operator, value = case["override"]
    result = override_image(case["image"], ImageComponent(component), OverrideOperator(operator), value)
    if "error" in case:
        assert isinstance(result, ImageFault), result
        assert case["error"] in result.message
    else:
        assert result == case["expect"]


def test_the_table_has_every_component_with_every_operator() -> None:
    assert {tuple(case["override"][:2]) for case in CASES} == {
        (component, operator) for component in ImageComponent for operator in OverrideOperator
    }
    assert all(case["source"] for case in CASES)


@given(references())
def test_what_is_written_parses_to_the_same_parts(reference: ImageReference) -> None:
    assert parse_image(str(reference)) == reference


@given(st.text(alphabet="aB1.:/@_-[ sh256", max_size=60))
def test_what_parses_is_written_as_it_was(text: str) -> None:
    parsed = parse_image(text)
    assert parsed is None or str(parsed) == text


@given(references(), st.sampled_from(["reg.example", "other:5000", ""]))
def test_another_registry_leaves_everything_else(reference: ImageReference, registry: str) -> None:
    result = override_image(str(reference), ImageComponent.REGISTRY, OverrideOperator.REPLACE, registry)
    first = reference.repository.partition("/")[0]
    if registry or not ("." in first and "/" in reference.repository):
        assert isinstance(result, str)
        assert parse_image(result) == ImageReference(
            registry=registry, repository=reference.repository, tag=reference.tag, digest=reference.digest
        )


@pytest.mark.parametrize("text", ["a" * 256, "a" * 10_000, "a-" * 120 + "!", "a/" * 120 + "A", "x@" + "s" * 1000])
def test_a_hostile_text_is_no_image_and_takes_no_time(text: str) -> None:
    assert parse_image(text) is None


hosts = st.one_of(registries, st.text(alphabet="aB1.:/@_-[] ", max_size=12), st.sampled_from(["reg", "r" * 240]))


@given(st.one_of(references().map(str), st.text(alphabet="aB1.:/@_-[ sh256", max_size=60)), hosts)
def test_whether_a_registry_is_replaced_is_told_as_replacing_it_would(image: str, registry: str) -> None:
    told = replaces_registry(image, registry)
    result = override_image(image, ImageComponent.REGISTRY, OverrideOperator.REPLACE, registry)
    assert told is None or (isinstance(result, str) and told == (result != image))


@given(references(), hosts, st.sampled_from(OverrideOperator))
def test_a_name_that_is_not_matched_is_one(
    reference: ImageReference, registry: str, operator: OverrideOperator
) -> None:
    result = override_image(str(reference), ImageComponent.REGISTRY, operator, registry)
    assert isinstance(result, ImageFault) or parse_image(result) is not None
