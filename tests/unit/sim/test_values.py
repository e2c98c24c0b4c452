"""Quantities, selectors, patches and ages: small functions of values."""

from __future__ import annotations

from typing import Any

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.sim.api.tables import duration
from reconciler.sim.objects import quantities
from reconciler.sim.objects.patches import json_patch, merge_patch
from reconciler.sim.objects.selectors import labels_match, object_matches


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("1000m", "1"), ("0.5", "500m"), ("1024Mi", "1Gi"), ("1.5Gi", "1536Mi"), ("0", "0"), ("100m", "100m"),
        ("1e3", "1e3"), ("1000", "1k"), ("1500", "1500"), ("512Ki", "512Ki"), ("0.0001", "100u"), ("2000000", "2M"),
        (3, "3"),
    ],
)  # fmt: skip
def test_quantities_have_one_spelling(text: str | int, canonical: str) -> None:
    assert quantities.canonical(text) == canonical


@given(st.integers(0, 10**12), st.sampled_from(["", "m", "k", "M", "Ki", "Mi", "Gi"]))
def test_the_canonical_spelling_is_the_same_amount(number: int, suffix: str) -> None:
    text = f"{number}{suffix}"
    assert quantities.parse(quantities.canonical(text)) == quantities.parse(text)
    assert quantities.canonical(quantities.canonical(text)) == quantities.canonical(text)


@pytest.mark.parametrize("text", ["", "x", "1 Gi", "1KiB", "NaN", "--1"])
def test_nonsense_is_no_quantity(text: str) -> None:
    with pytest.raises(ValueError, match="not a quantity"):
        quantities.parse(text)


@pytest.mark.parametrize(
    ("selector", "labels", "matches"),
    [
        ("", {}, True), ("a", {"a": ""}, True), ("!a", {"a": ""}, False), ("a=b,c!=d", {"a": "b"}, True),
        ("a in (b,c)", {"a": "c"}, True), ("a notin (b)", {}, True), ("a==b", {"a": "c"}, False),
        ("n>3", {"n": "4"}, True),
    ],
)  # fmt: skip
def test_label_queries(selector: str, labels: dict[str, str], matches: bool) -> None:
    assert labels_match(selector)(labels) == matches


def test_an_empty_selector_object_selects_everything_and_none_nothing() -> None:
    assert object_matches({}, {"a": "b"})
    assert not object_matches(None, {"a": "b"})


TREES = st.recursive(st.integers(0, 3), lambda t: st.dictionaries(st.sampled_from("abc"), t, max_size=3), max_leaves=8)
OBJECTS = st.dictionaries(st.sampled_from("abc"), TREES, max_size=3)


@given(OBJECTS, OBJECTS)
def test_a_json_patch_does_what_the_jsonpatch_package_does(old: dict[str, Any], new: dict[str, Any]) -> None:
    operations = jsonpatch.make_patch(old, new).patch
    assert json_patch(old, operations) == new


@given(OBJECTS, OBJECTS)
def test_a_merge_patch_leaves_what_it_says(value: dict[str, Any], patch: dict[str, Any]) -> None:
    merged = merge_patch(value, patch)
    assert merge_patch(merged, patch) == merged
    assert merge_patch(value, {}) == value


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (119, "119s"), (120, "2m"), (190, "3m10s"), (900, "15m"), (10800, "3h"), (12000, "3h20m"),
     (90000, "25h"),
     (200000, "2d7h"), (86400 * 10, "10d"), (86400 * 800, "2y70d")],
)  # fmt: skip
def test_ages_read_as_kubectl_prints_them(seconds: int, text: str) -> None:
    assert duration(seconds) == text
