"""Print the figures of the house and refuse what is above its limit.

Each limit is the figure of the last step, and is lowered with each step; a figure below its limit says so. Run:
`python scripts/check_house.py`. Exit code 1: a figure is above its limit.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parent.parent
PACKAGE: Final = ROOT / "reconciler"
LEAVES: Final = ("sim", "cli/demo", "stages/importing")
"""Folders that nothing but their own commands imports."""
QUESTION: Final = re.compile(r"(What|Who|Whose|Whether|How|Where|When|Why)\b")
FUNCTION_LINES_MAX: Final = 70
FILE_LINES_MAX: Final = 400
STARTERS: Final = frozenset(
    {"create_task", "ensure_future", "to_thread", "run_in_executor", "Thread", "start_new_thread"}
)
SECONDS: Final = re.compile(r"_?[A-Z][A-Z0-9_]*_(S|MS)$")


class Module(NamedTuple):
    """A module: its path, its text and its tree."""

    path: Path
    text: str
    tree: ast.Module

    @property
    def lines(self) -> int:
        """Return the number of lines."""
        return self.text.count("\n")


class Figure(NamedTuple):
    """A figure by name, what it is today, and the most that it may be."""

    name: str
    measure: Callable[[], int]
    limit: int


@cache
def modules() -> tuple[Module, ...]:
    """Return the modules of the package, but for the leaves, sorted by path."""
    leaves = [PACKAGE / leaf for leaf in LEAVES]
    paths = [path for path in sorted(PACKAGE.rglob("*.py")) if not any(path.is_relative_to(leaf) for leaf in leaves)]
    return tuple(Module(path, text, ast.parse(text)) for path in paths for text in [path.read_text(encoding="utf-8")])


@cache
def nodes(*kinds: type[ast.AST]) -> tuple[tuple[Module, ast.AST], ...]:
    """Return each node of these kinds with its module."""
    return tuple((module, node) for module in modules() for node in ast.walk(module.tree) if isinstance(node, kinds))


def classes() -> Iterator[ast.ClassDef]:
    """Yield each class."""
    yield from (node for _, node in nodes(ast.ClassDef) if isinstance(node, ast.ClassDef))


def functions() -> Iterator[tuple[Module, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Yield each function with its module."""
    for module, node in nodes(ast.FunctionDef, ast.AsyncFunctionDef):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield module, node


def module_names() -> Iterator[str]:
    """Yield the name of each module; that of a package is the name of its folder."""
    for module in modules():
        yield module.path.parent.name if module.path.name == "__init__.py" else module.path.stem


def doubled(names: Iterator[str]) -> int:
    """Return how many names stand for more than one thing."""
    return sum(count > 1 for name, count in Counter(names).items() if not name.startswith("__"))


@cache
def replaced() -> frozenset[str]:
    """Return the names on the left of the last table of docs/glossary.md."""
    text = (ROOT / "docs/glossary.md").read_text(encoding="utf-8").partition("## Replaced names")[2]
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("|")]
    return frozenset(name.strip() for row in rows[2:] for name in row.split(","))


def replaced_names() -> int:
    """Return how many classes, modules and functions have a name that the glossary has replaced."""
    named = [*(node.name for node in classes()), *(node.name for _, node in functions()), *module_names()]
    return sum(name.strip("_") in replaced() for name in named)


def question_docstrings() -> int:
    """Return how many docstrings begin with a question word."""
    found = (
        ast.get_docstring(node) or ""
        for _, node in nodes(ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    )
    return sum(bool(QUESTION.match(text)) for text in found)


def fields() -> Iterator[tuple[ast.ClassDef, ast.AnnAssign]]:
    """Yield each annotated field with its class."""
    for node in classes():
        for statement in node.body:
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                yield node, statement


def ledger_records() -> int:
    """Return how many records carry the ledger."""
    return sum(isinstance(one.target, ast.Name) and one.target.id == "ledger" for _, one in fields())


def callable_fields() -> int:
    """Return how many fields of records are Callables."""
    return sum(ast.unparse(one.annotation).startswith(("Callable[", "Awaitable[")) for _, one in fields())


def task_starts() -> int:
    """Return at how many places the daemon starts tasks or threads."""
    return sum(
        isinstance(node, ast.Call) and ast.unparse(node.func).rsplit(".", 1)[-1] in STARTERS
        for module, node in nodes(ast.Call)
        if "daemon" in module.path.parts
    )


def time_constants() -> list[Path]:
    """Return the file of each constant of the daemon that is a number of seconds."""
    found = []
    for module in modules():
        for statement in module.tree.body if "daemon" in module.path.parts else ():
            targets = (
                statement.targets
                if isinstance(statement, ast.Assign)
                else ([statement.target] if isinstance(statement, ast.AnnAssign) else [])
            )
            found += [module.path for one in targets if isinstance(one, ast.Name) and SECONDS.match(one.id)]
    return found


def is_command(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Tell whether a function is a command of click, which states its options as decorators and parameters."""
    return any("option" in ast.unparse(decorator) for decorator in function.decorator_list)


def long_functions() -> int:
    """Return how many functions have more lines than one reads in one sitting."""
    return sum((node.end_lineno or 0) - node.lineno + 1 > FUNCTION_LINES_MAX for _, node in functions()
               if not is_command(node))  # fmt: skip


def words_of_docs() -> int:
    """Return the number of words of all pages in docs/."""
    return sum(len(page.read_text(encoding="utf-8").split()) for page in (ROOT / "docs").rglob("*.md"))


FIGURES: Final = (
    Figure("lines of reconciler/ but for sim, demo, importers", lambda: sum(one.lines for one in modules()), 91_795),
    Figure("Python files there", lambda: len(modules()), 864),
    Figure("folders there", lambda: len({module.path.parent for module in modules()}), 98),
    Figure("names of classes that are used more than once", lambda: doubled(node.name for node in classes()), 80),
    Figure("names of modules that are used more than once", lambda: doubled(module_names()), 128),
    Figure("names that the glossary has replaced", replaced_names, 172),
    Figure("docstrings that begin with a question word", question_docstrings, 613),
    Figure("records that carry the ledger", ledger_records, 8),
    Figure("fields that are Callables", callable_fields, 43),
    Figure("nonlocal statements", lambda: len(nodes(ast.Nonlocal)), 7),
    Figure("places of the daemon that start tasks or threads", task_starts, 37),
    Figure("time constants of the daemon", lambda: len(time_constants()), 80),
    Figure("files of the daemon with time constants", lambda: len(set(time_constants())), 39),
    Figure("functions over 70 lines", long_functions, 0),
    Figure("files over 400 lines", lambda: sum(one.lines > FILE_LINES_MAX for one in modules()), 0),
    Figure("words of docs/", words_of_docs, 67_405),
)


def main() -> int:
    """Print each figure with its limit; 1 when one is above it."""
    is_over = False
    for figure in FIGURES:
        found = figure.measure()
        is_over |= found > figure.limit
        note = (
            "  ABOVE THE LIMIT"
            if found > figure.limit
            else "  the limit can be lowered"
            if found < figure.limit
            else ""
        )
        sys.stdout.write(f"{found:>8,}  of {figure.limit:>8,}  {figure.name}{note}\n")
    return int(is_over)


if __name__ == "__main__":
    sys.exit(main())
