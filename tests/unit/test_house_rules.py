"""Rules that reviewers would otherwise have to count. Source: docs/how-to/contribute.md."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

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


def test_files_and_functions_can_be_read_in_one_sitting() -> None:
    assert len(FILES) > 200
    for file in FILES:
        assert len(file.read_text(encoding="utf-8").splitlines()) <= FILE_LINES_MAX, file
        for function in functions(file):
            length = (function.end_lineno or 0) - function.lineno + 1
            assert length <= FUNCTION_LINES_MAX or is_command(function), f"{file}: {function.name} has {length} lines"


def test_names_of_files_say_what_is_inside() -> None:
    assert not [file for file in FILES if VAGUE & set(file.stem.split("_"))]


def test_a_package_is_its_own_table_of_contents() -> None:
    for package in PACKAGES:
        assert len(list(package.glob("*.py"))) <= PACKAGE_FILES_MAX, package
        promise = ast.get_docstring(ast.parse((package / "__init__.py").read_text(encoding="utf-8")))
        assert promise and promise.endswith("."), package


def test_unit_tests_lie_where_their_subjects_lie() -> None:
    rooms = {path.name for path in ROOT.iterdir() if path.is_dir()}
    folders = {file.parent.relative_to(TESTS) for file in TESTS.rglob("test_*.py")}
    assert not [
        str(folder) for folder in folders if folder.parts and folder.parts[0] in rooms and not (ROOT / folder).is_dir()
    ]
