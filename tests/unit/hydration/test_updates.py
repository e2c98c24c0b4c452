"""Newer versions by range, and the files that name them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.hydration import ImageVersion, image_versions, is_newer, is_range, newest, with_newer
from reconciler.report import dump_yaml
from reconciler.yaml import edited, read_yaml
from tests.unit.yaml_cases import cases

NAME = "registry.example.com/web"


@pytest.mark.parametrize("case", cases("hydration/version_ranges.yaml"))
def test_the_newest_of_a_range_is_found(case: dict[str, Any]) -> None:
    assert is_range(str(case["range"]))
    assert newest(map(str, case["of"]), str(case["range"]), str(case["now"])) == str(case["newest"])


@pytest.mark.parametrize("text", ["", "latest", ">>1", "1.2 or 2", "1.x,", "||", "^", "1.2.3.4", ">1<2", "1.2-01"])
def test_what_is_no_range_is_known(text: str) -> None:
    assert not is_range(text)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 12), st.integers(0, 3))), st.sampled_from(["1.x", "^1.2", "*"])
)
def test_the_newest_is_among_the_versions_and_newer(numbers: list[tuple[int, int, int]], allowed: str) -> None:
    versions = [".".join(map(str, each)) for each in numbers]
    found = newest(versions, allowed, "1.2.0")
    assert not found or (found in versions and is_newer(found, "1.2.0"))


@pytest.mark.parametrize("case", cases("hydration/image_updates.yaml"))
def test_images_become_newer_where_they_stand(case: dict[str, Any]) -> None:
    (document,) = read_yaml("values.yaml", case["before"].encode()).documents

    def newer(version: ImageVersion) -> ImageVersion:
        return ImageVersion("1.3.0", f"sha256:{'b' * 32}" if version.digest else "")

    body = with_newer(document.body, NAME, newer)
    assert edited("values.yaml", case["before"].encode(), [body], dump_yaml).decode() == case["after"]
    assert bool(image_versions(document.body, NAME)) is (case["before"] != case["after"])
