"""Print the figures of the house and refuse what is above its limit.

Each limit is the figure of the last step, and is lowered with each step; a figure below its limit says so. Names of
scripts/replaced_terms.md that are still there stand in scripts/replaced_names.txt, which only shrinks. Run:
`python scripts/check_house.py`; with `--lower` it lowers the limits to the figures, and takes names that are gone out
of that list. Exit code 1: a figure is above its limit, or a name is not in the list.
"""

from __future__ import annotations

import ast
import gc
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parent.parent
PACKAGE: Final = ROOT / "reconciler"
LEAVES: Final = ("sim", "cli/demo", "importers")
"""Folders that nothing but their own commands imports."""
QUESTION: Final = re.compile(r"\s*(What|Which|Who|Whose|Whether|How|Where|When|Why)\b")
VAGUE: Final = re.compile("asked|found|given|kept|made|meant|met|noted|said|seen|shown|sight|taken|told")
FUNCTION_LINES_MAX: Final = 70
FILE_LINES_MAX: Final = 400
LEFT: Final = ROOT / "scripts/replaced_names.txt"
"""Each replaced name that is still there: its module, its kind and the name. Of a package, the name of its folder."""
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
    def name(self) -> str:
        """Return the last part of the name by which it is imported."""
        return self.path.parent.name if self.path.name == "__init__.py" else self.path.stem

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
def all_nodes() -> tuple[tuple[Module, ast.AST], ...]:
    """Return each node with its module."""
    return tuple((module, node) for module in modules() for node in ast.walk(module.tree))


@cache
def nodes_beside(folder: str) -> tuple[ast.AST, ...]:
    """Return each statement, and each module, of a folder beside the package."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in (ROOT / folder).rglob("*.py")]
    return tuple(node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.stmt | ast.Module))


@cache
def nodes(*kinds: type[ast.AST]) -> tuple[tuple[Module, ast.AST], ...]:
    """Return each node of these kinds with its module."""
    return tuple((module, node) for module, node in all_nodes() if isinstance(node, kinds))


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
    yield from (module.name for module in modules())


def doubled(names: Iterator[str]) -> int:
    """Return how many names stand for more than one thing."""
    return sum(count > 1 for name, count in Counter(names).items() if not name.startswith("__"))


@cache
def replaced() -> frozenset[str]:
    """Return the names on the left of the table of scripts/replaced_terms.md, in small letters."""
    text = (ROOT / "scripts/replaced_terms.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("|")]
    return frozenset(name.strip().lower() for row in rows[2:] for name in row.split(","))


@cache
def replaced_names() -> Counter[str]:
    """Return the classes, modules and functions that have a name that others have replaced, as lines of `LEFT`."""
    kinds = {"class": (ast.ClassDef,), "function": (ast.FunctionDef, ast.AsyncFunctionDef)}
    named = [(module, "module", module.name) for module in modules()]
    named += [
        (module, kind, str(getattr(node, "name", ""))) for kind, of in kinds.items() for module, node in nodes(*of)
    ]
    return Counter(
        f"{module.name} {kind} {name.strip('_')}"
        for module, kind, name in named
        if name.strip("_").lower() in replaced()
    )


def names_left() -> Counter[str]:
    """Return the replaced names that may still be there."""
    return Counter(LEFT.read_text(encoding="utf-8").splitlines())


@cache
def imports() -> dict[str, frozenset[str]]:
    """Return for each module the modules that it imports anywhere, but for types alone. A package is its `__init__`."""
    names = {dotted(module.path): module for module in modules()}

    def target(package: str, name: str) -> str:
        return f"{package}.{name}" if f"{package}.{name}" in names else package

    return {
        name: frozenset(
            target(node.module or "", alias.name) if isinstance(node, ast.ImportFrom) else alias.name
            for node in executed(module.tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
        )
        & names.keys()
        for name, module in names.items()
    }


def dotted(path: Path) -> str:
    """Return the name by which a module is imported."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def executed(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements below a node, but for those that only type checkers read."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            yield from (below for other in child.orelse for below in (other, *executed(other)))
        elif isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield child
            yield from executed(child)


def reached(name: str, of: dict[str, frozenset[str]]) -> set[str]:
    """Return the modules that a module imports, itself or through others."""
    found: set[str] = set()
    ahead = [name]
    while ahead:
        for other in of[ahead.pop()] - found:
            found.add(other)
            ahead.append(other)
    return found


@cache
def import_circles() -> frozenset[frozenset[str]]:
    """Return the sets of modules that import each other."""
    left = imports()
    while gone := {name for name, others in left.items() if not others}:  # they are in no circle
        left = {name: others - gone for name, others in left.items() if name not in gone}
    reach = {name: reached(name, left) for name in left}
    return frozenset(
        frozenset(other for other in reach[name] if name in reach[other]) for name in reach if name in reach[name]
    )


def question_docstrings() -> int:
    """Return how many docstrings begin with a question word, those of attributes and constants, and of tests, too."""
    found = (node for _, node in nodes(ast.Expr))
    return sum(
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and bool(QUESTION.match(str(node.value.value)))
        for node in (*found, *nodes_beside("tests"), *nodes_beside("bench"), *nodes_beside("scripts"))
    )


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
        if "controller" in module.path.parts
    )


def time_constants() -> list[Path]:
    """Return the file of each constant of the daemon that is a number of seconds."""
    found = []
    for module in modules():
        for statement in module.tree.body if "controller" in module.path.parts else ():
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


def imports_past_faces() -> int:
    """Return the share of names that tests import from inner modules, in per cent. Modules of `api` are faces."""
    found = [
        node.module
        for node in nodes_beside("tests")
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("reconciler.")
        for _ in node.names
    ]
    inner = [name for name in found if name and name.count(".") > 1 and not name.startswith("reconciler.api.")]
    past = sum(not ROOT.joinpath(*name.split("."), "__init__.py").exists() for name in inner)
    return round(100 * past / len(found))


def vague_names() -> int:
    """Return how many arguments and assignments have a participle for a name, which says nothing of the content."""
    arguments = (node.arg for _, node in all_nodes() if isinstance(node, ast.arg))
    stores = (node.id for _, node in all_nodes() if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    return sum(bool(VAGUE.fullmatch(name)) for name in (*arguments, *stores))


FIGURES: Final = (
    Figure("lines of reconciler/ but for sim, demo, importers", lambda: sum(one.lines for one in modules()), 87_788),
    Figure("Python files there", lambda: len(modules()), 433),
    Figure("folders there", lambda: len({module.path.parent for module in modules()}), 50),
    Figure("names of classes that are used more than once", lambda: doubled(node.name for node in classes()), 1),
    Figure("names of modules that are used more than once", lambda: doubled(module_names()), 14),
    Figure("names that others have replaced", lambda: replaced_names().total(), 0),
    Figure("variables named found, told, seen and the like", vague_names, 0),
    Figure("import circles, those inside functions too", lambda: len(import_circles()), 0),
    Figure("docstrings that begin with a question word", question_docstrings, 0),
    Figure("records that carry the ledger", ledger_records, 1),
    Figure("fields that are Callables", callable_fields, 3),
    Figure("nonlocal statements", lambda: len(nodes(ast.Nonlocal)), 0),
    Figure("places of the daemon that start tasks or threads", task_starts, 3),
    Figure("time constants of the daemon", lambda: len(time_constants()), 30),
    Figure("files of the daemon with time constants", lambda: len(set(time_constants())), 1),
    Figure("functions over 70 lines", long_functions, 0),
    Figure("files over 400 lines", lambda: sum(one.lines > FILE_LINES_MAX for one in modules()), 0),
    Figure("imports of tests past faces, in per cent", imports_past_faces, 20),
    Figure("words of docs/", words_of_docs, 59_975),
)


def lower() -> None:
    """Lower each limit to its figure, and take names that are gone out of the list; one that moved is named again."""
    gone = Counter(line.partition(" ")[2] for line in (names_left() - replaced_names()).elements())
    kept = list((names_left() & replaced_names()).elements())
    for line in (replaced_names() - names_left()).elements():
        if gone[named := line.partition(" ")[2]]:
            gone[named] -= 1
            kept.append(line)
    LEFT.write_text("".join(f"{line}\n" for line in sorted(kept)), encoding="utf-8")
    here = Path(__file__)
    text = here.read_text(encoding="utf-8")
    for figure in FIGURES:
        if (found := figure.measure()) < figure.limit:
            line = re.compile(rf'(    Figure\("{re.escape(figure.name)}".*, )[\d_]+(\),)')
            text = line.sub(rf"\g<1>{found:_}\g<2>", text)
    here.write_text(text, encoding="utf-8")


def main() -> int:
    """Print each name that may not be there, and each figure with its limit; 1 when there is one, or one is above."""
    gc.disable()  # millions of nodes live until the end: to look through them again and again doubles the time
    if "--lower" in sys.argv[1:]:
        lower()
        return 0
    refused = replaced_names() - names_left()
    for line in sorted(refused):
        sys.stdout.write(f"REPLACED by scripts/replaced_terms.md, and not in {LEFT.name}: {line}\n")
    is_over = bool(refused)
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
