"""Rules that reviewers would otherwise have to count. Source: docs/how-to/contribute.md."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import reconciler

ROOT = Path(reconciler.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 70
PACKAGE_FILES_MAX = 15
PACKAGES = sorted({file.parent for file in FILES} - {ROOT / "cli"})
TESTS = Path(__file__).parent
VAGUE = {"util", "utils", "helper", "helpers", "manager", "common", "misc"}


def functions(file: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def is_command(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """A command of click states its options as decorators and parameters."""
    return any("option" in ast.unparse(decorator) for decorator in function.decorator_list)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.relative_to(ROOT).as_posix())
def test_files_and_functions_can_be_read_in_one_sitting(file: Path) -> None:
    assert len(file.read_text(encoding="utf-8").splitlines()) <= FILE_LINES_MAX
    for function in functions(file):
        if not is_command(function):
            length = (function.end_lineno or 0) - function.lineno + 1
            assert length <= FUNCTION_LINES_MAX, f"{function.name} has {length} lines"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.relative_to(ROOT).as_posix())
def test_names_of_files_say_what_is_inside(file: Path) -> None:
    assert not VAGUE & set(file.stem.split("_"))


def test_the_files_are_found() -> None:
    assert len(FILES) > 200


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.relative_to(ROOT).as_posix())
def test_a_package_is_its_own_table_of_contents(package: Path) -> None:
    assert len(list(package.glob("*.py"))) <= PACKAGE_FILES_MAX
    promise = ast.get_docstring(ast.parse((package / "__init__.py").read_text(encoding="utf-8")))
    assert promise
    assert promise.endswith(".")


def test_unit_tests_lie_where_their_subjects_lie() -> None:
    rooms = {path.name for path in ROOT.iterdir() if path.is_dir()}
    folders = {file.parent.relative_to(TESTS) for file in TESTS.rglob("test_*.py")}
    assert not [
        str(folder) for folder in folders if folder.parts and folder.parts[0] in rooms and not (ROOT / folder).is_dir()
    ]
