"""Paths as people read them."""

from __future__ import annotations

import doctest

import pytest

from reconciler.api.plan import MISSING
from reconciler.ownership import FieldPath, Keyed, Member, field_path, matches, parse_path, path_text, value_at
from reconciler.ownership.field_path import Wildcard

PATHS: list[tuple[FieldPath, str]] = [
    (("spec", "replicas"), "spec.replicas"),
    (("metadata", "annotations", "a.b/c"), "metadata.annotations['a.b/c']"),
    (("data", "it's"), r"data['it\'s']"),
    (("spec", "containers", Keyed((("name", "nginx"),)), "image"), "spec.containers[name=nginx].image"),
    (("spec", "ports", Keyed((("port", 80), ("protocol", "TCP")))), "spec.ports[port=80,protocol=TCP]"),
    (("rules", Keyed((("name", "80"),))), 'rules[name="80"]'),
    (("rules", Keyed((("name", "a, b]"),))), 'rules[name="a, b]"]'),
    (("metadata", "finalizers", Member("x")), 'metadata.finalizers["x"]'),
    (("spec", "ports", Member(80)), "spec.ports[=80]"),
    (("spec", "flags", Member(True)), "spec.flags[=true]"),
    (("spec", "steps", 3, "run"), "spec.steps[3].run"),
    (("spec", "containers", Wildcard(), "image"), "spec.containers[*].image"),
]


@pytest.mark.parametrize(("path", "text"), PATHS, ids=[text for _, text in PATHS])
def test_writes_and_reads_a_path(path: FieldPath, text: str) -> None:
    assert path_text(path) == text
    assert parse_path(text) == path


@pytest.mark.parametrize("text", ["", "spec.", "spec..x", "spec[", "spec[name]", "spec['x", "a b", "spec]x"])
def test_refuses_what_is_no_path(text: str) -> None:
    assert parse_path(text) is None


@pytest.mark.parametrize(
    ("pattern", "path", "is_match"),
    [
        ("spec", "spec.replicas", True),
        ("spec.replicas", "spec", False),
        ("spec.replicas", "spec.replicasMax", False),
        ("spec.containers[*].image", "spec.containers[name=a].image", True),
        ("spec.ports[port=80]", "spec.ports[port=80,protocol=UDP].nodePort", True),
        ("spec.ports[port=81]", "spec.ports[port=80,protocol=UDP].nodePort", False),
        ("metadata.labels.*", "metadata.labels.a", True),
        ('metadata.annotations["a/b"]', "metadata.annotations['a/b']", True),
    ],
)
def test_matches_paths_below_a_pattern(pattern: str, path: str, is_match: bool) -> None:
    one, other = parse_path(pattern), parse_path(path)
    assert one is not None
    assert other is not None
    assert matches(one, other) is is_match


def test_finds_values() -> None:
    tree = {"ports": [{"port": 1}, {"port": 1, "protocol": "UDP", "x": 5}], "set": ["a"], "list": [7]}
    assert value_at(tree, ("ports", Keyed((("port", 1), ("protocol", "UDP"))), "x")) == 5
    assert value_at(tree, ("ports", Keyed((("port", 1), ("protocol", "TCP"))))) == {"port": 1}
    assert value_at(tree, ("set", Member("a"))) == "a"
    assert value_at(tree, ("list", 0)) == 7
    for path in (("set", Member("b")), ("list", 1), ("ports", "x"), ("set", "a", "b")):
        assert value_at(tree, path) is MISSING


def test_examples_of_the_docstrings() -> None:
    assert doctest.testmod(field_path).failed == 0
