from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import reconciler
from reconciler.report.problems_text import problem_codes

ROOT = Path(reconciler.__file__).parent
_TEXT = re.compile(r'"([a-z0-9-]+)"')
CODE = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)+")
REPORTERS = frozenset({"error", "warning", "hint", "report", "Problem", "Shortfall", "Note", "YamlRefused", "_problem"})


def reported_codes() -> Iterator[tuple[str, str]]:
    """Every code that the program reports, with the module."""
    for path in sorted(ROOT.rglob("*.py")):
        if "sim" in path.relative_to(ROOT).parts:
            continue
        for call in (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)):
            name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
            named = [keyword.value for keyword in call.keywords if keyword.arg == "code"]
            given = [*named, *(call.args[:4] if name in REPORTERS else ())]
            texts = (given.value for given in given if isinstance(given, ast.Constant))
            yield from ((text, path.name) for text in texts if isinstance(text, str) and CODE.fullmatch(text))


def test_every_code_that_is_reported_is_explained() -> None:
    reported = dict(reported_codes())
    assert len(reported) > 100
    assert not {code: module for code, module in reported.items() if code not in problem_codes()}


def test_every_code_that_is_explained_is_in_the_program() -> None:
    texts = {text for path in ROOT.rglob("*.py") for text in _TEXT.findall(path.read_text(encoding="utf-8"))}
    assert not problem_codes().keys() - texts


@pytest.mark.parametrize("code", problem_codes())
def test_explanations_are_whole(code: str) -> None:
    explained = problem_codes()[code]
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", code)
    assert explained.meaning.endswith(".")
    assert explained.remedy.endswith(".")


def test_codes_are_sorted_and_none_is_explained_twice() -> None:
    lines = (ROOT / "report/problem_codes.txt").read_text(encoding="utf-8").splitlines()
    assert [line.partition("|")[0] for line in lines] == sorted(problem_codes())
