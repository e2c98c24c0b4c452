"""What is declared to be needed is what the program imports, and the other way round."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import reconciler

ROOT = Path(reconciler.__file__).parent
PROJECT = tomllib.loads((ROOT.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
MODULES = {"pyyaml": "yaml", "prometheus-client": "prometheus_client"}
"""Distributions whose module has another name."""


def names(requirements: list[str]) -> Iterator[str]:
    for requirement in requirements:
        found = re.match(r"[A-Za-z0-9._-]+", requirement)
        assert found is not None, requirement
        name = found[0].lower()
        yield MODULES.get(name, name)


def imported() -> set[str]:
    """Every module of somebody else's that the program imports, wherever in a file."""
    found: set[str] = set()
    for file in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.partition(".")[0])
    return found - sys.stdlib_module_names - {"reconciler"}


def test_every_declared_dependency_is_imported_and_every_imported_one_declared() -> None:
    assert imported() == set(names(PROJECT["dependencies"]))


def test_what_only_tests_need_is_not_declared_for_the_program() -> None:
    assert not set(names(PROJECT["dependencies"])) & set(names(PROJECT["optional-dependencies"]["dev"]))
