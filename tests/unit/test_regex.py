from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest

from reconciler.regex import regex

ROOT = Path(__file__).parents[2]


def test_answers_as_a_compiled_one_does() -> None:
    ours, theirs = regex(r"(a+)b?", re.IGNORECASE), re.compile(r"(a+)b?", re.IGNORECASE)
    assert ours.findall("aabA") == theirs.findall("aabA")
    assert ours.sub("x", "aabA") == "xx"
    assert ours.split("-ab-") == theirs.split("-ab-")
    assert [found.span() for found in ours.finditer("aabA")] == [(0, 3), (3, 4)]
    assert ours.pattern == theirs.pattern
    found = ours.fullmatch("AAB")
    assert found is not None
    assert found[1] == "AA"
    assert regex(rb"a").match(b"a")


def test_knows_nothing_else() -> None:
    with pytest.raises(AttributeError):
        regex("a").scanner  # type: ignore[attr-defined] # noqa: B018


def test_every_expression_of_the_program_can_be_compiled() -> None:
    """A broken one would else be found by whoever uses it first."""
    found = 0
    texts = [file.read_text(encoding="utf-8") for file in (ROOT / "reconciler").rglob("*.py")]
    for text in (text for text in texts if "regex(" in text):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "regex":
                found += 1
                if isinstance(node.args[0], ast.Constant):
                    written: Any = node.args[0].value
                    re.compile(written)
    assert found > 50
