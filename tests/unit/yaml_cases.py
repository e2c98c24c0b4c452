"""The tables under tests/cases that concern reading files, and how results are compared."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from _pytest.mark.structures import ParameterSet

from reconciler.api.problem import Problem
from reconciler.yaml import YamlFile
from tests.yaml_text import load_yaml

CASES = Path(__file__).parents[1] / "cases"


def cases(table: str) -> list[ParameterSet]:
    """One parameter a case; its id is the case's name or text."""
    rows: list[dict[str, Any]] = load_yaml((CASES / table).read_text())["cases"]
    return [pytest.param(row, id=row.get("name") or repr(row["text"])) for row in rows]


def exactly(value: Any) -> str:
    """JSON text in which 1, 1.0 and true differ, whatever the order of keys."""
    return json.dumps(value, sort_keys=True)


def brief(problems: tuple[Problem, ...]) -> list[str]:
    """Problems as the tables write them, in the order of lines."""
    return [f"{p.severity} {p.source.line} {p.code}" for p in sorted(problems, key=lambda p: (p.source.line, p.code))]


def read_documents(file: YamlFile) -> list[tuple[int, str]]:
    """Line and exact content of each document."""
    return [(document.line, exactly(document.body)) for document in file.documents]


def changed_objects() -> list[ParameterSet]:
    """Each case of badinput/values.yaml: an object, and its problems as "severity code path"."""
    table: dict[str, Any] = load_yaml((CASES / "badinput/values.yaml").read_text())
    rows = []
    for case in table["cases"]:
        body = deepcopy(table["bases"][case["of"]])
        for path, value in case["set"].items():
            *above, name = [int(step) if step.isdecimal() else step for step in path.split(".")]
            node: Any = body
            for step in above:
                node = node[step] if isinstance(node, list) else node.setdefault(step, {})
            node[name] = value
        rows.append(pytest.param(body, case.get("problems", []), id=f"{case['of']} {case['set']}"))
    return rows
