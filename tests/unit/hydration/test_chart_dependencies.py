"""Dependencies of charts: which are missing, and what turns them on."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.hydration import merged_values, missing_dependencies


@pytest.mark.parametrize(
    ("entry", "values", "is_on"),
    [
        ({}, {}, True),
        ({"condition": "a.enabled"}, {}, True),
        ({"condition": "a.enabled"}, {"a": {"enabled": False}}, False),
        ({"condition": "x.y,a.enabled"}, {"a": {"enabled": False}}, False),
        ({"condition": "x.y,a.enabled"}, {"x": {"y": True}, "a": {"enabled": False}}, True),
        ({"condition": "a.enabled"}, {"a": {"enabled": "no"}}, True),
        ({"tags": ["db", "cache"]}, {"tags": {"db": False}}, False),
        ({"tags": ["db", "cache"]}, {"tags": {"db": False, "cache": True}}, True),
        ({"condition": "a.enabled", "tags": ["db"]}, {"a": {"enabled": True}, "tags": {"db": False}}, True),
    ],
)
def test_a_dependency_is_on_as_helm_says(entry: dict[str, Any], values: dict[str, Any], is_on: bool) -> None:
    (found,) = missing_dependencies({"dependencies": [{"name": "a", "version": "1.x", **entry}]}, ())
    assert found.is_on(values) is is_on


def test_folders_and_archives_are_held() -> None:
    named = [{"name": name} for name in ("folder", "archive", "redis", "none")]
    held = {"folder", "archive-v1.2.3.tgz", "redis-ha-4.0.0.tgz"}
    assert [found.name for found in missing_dependencies({"dependencies": named}, held)] == ["redis", "none"]


def test_values_of_later_files_win_by_field() -> None:
    assert merged_values({"a": {"b": 1, "c": 2}, "d": [1]}, {"a": {"b": 3}, "d": [2]}) == {
        "a": {"b": 3, "c": 2},
        "d": [2],
    }
