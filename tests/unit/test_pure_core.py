"""The core keeps nothing between two plans, and what is known of kinds is given to it. Source: design#pure-rounds."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import reconciler

ROOT = Path(reconciler.__file__).parent
TEXTS = {file.relative_to(ROOT).as_posix(): file.read_text(encoding="utf-8") for file in sorted(ROOT.rglob("*.py"))}
CORE = (
    "api/",
    "containment.py",
    "diff/",
    "documents/",
    "fleet/",
    "fleet_snapshot.py",
    "hydration/",
    "importers/",
    "incremental.py",
    "kinds/",
    "lease.py",
    "lint/",
    "notify/cloud_event.py",
    "observations/",
    "overrides/",
    "ownership/",
    "placement/",
    "planner/",
    "policy/",
    "regex.py",
    "render/",
    "report/",
    "rights.py",
    "rollouts/",
    "scheduler/",
    "secrets/",
    "staging/",
    "state/",
    "templates/",
    "ticks/",
    "yaml/",
)
WRITES = {
    "add", "append", "appendleft", "clear", "discard", "extend", "insert", "pop", "popitem", "popleft", "remove",
    "reverse", "setdefault", "sort", "update",
}  # fmt: skip
EMPTY = re.compile(r"\{\}|\[\]|(dict|list|set|deque)(\[.*\])?\(\)|defaultdict\b.*")
MEMOS = {
    "documents/schema_check.py": {"_known"},
    "yaml/block.py": {"_earlier_lines", "_lines", "_values"},
    "yaml/nodes.py": {"KEYS", "_plain"},
}
"""Memory of modules that follows from the text, or from the bundled table. It never changes an answer."""
MAY_ASSUME_BUILT_IN_KINDS = {
    "plugins.py": "no plugin is installed",
    "store/parse_cache_rows.py": "only what they say is kept",
    "kinds/registry.py": "they are defined there",
    "kinds/__init__.py": "it is the face of the package",
    "fleet/encrypted_documents.py": "of what they know, encrypted fields are refused when a file is read",
    "templates/facts.py": "only what they say is kept",
}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def assigned(nodes: list[ast.AST]) -> set[str]:
    """The names that get a value."""
    return {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def of_module(tree: ast.Module) -> Iterator[tuple[set[str], ast.Assign | ast.AnnAssign]]:
    """The assignments of a module, with the names that they give a value."""
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield assigned([part for target in targets for part in ast.walk(target)]), node


def is_begun(node: ast.Assign | ast.AnnAssign) -> bool:
    """Return whether a name stands for something empty of which nobody says that it stays so."""
    if node.value is None or (isinstance(node, ast.AnnAssign) and "Mapping" in ast.unparse(node.annotation)):
        return False
    is_short = isinstance(node.value, ast.Call | ast.Dict | ast.List) and len([*ast.walk(node.value)]) < 20
    return is_short and EMPTY.fullmatch(ast.unparse(node.value)) is not None


def written_into(node: ast.AST) -> str:
    """The name of the value that an expression writes into; empty when it writes into none."""
    target: ast.AST | None = None
    if isinstance(node, ast.Subscript | ast.Attribute) and not isinstance(node.ctx, ast.Load):
        target = node.value
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in WRITES:
        target = node.func.value
    while isinstance(target, ast.Subscript | ast.Attribute):
        target = target.value
    return target.id if isinstance(target, ast.Name) else ""


def kept_in(text: str) -> set[str]:
    """Names of a module whose values its functions replace or write into, or begin empty."""
    tree, kept, names = ast.parse(text), set[str](), set[str]()
    for found, node in of_module(tree):
        names |= found
        kept |= found if is_begun(node) else set()
    for function in ast.walk(tree):
        if isinstance(function, FUNCTIONS):
            nodes = [*ast.walk(function)]
            kept.update(name for node in nodes if isinstance(node, ast.Global) for name in node.names)
            written = names & {*map(written_into, nodes)}
            if written:
                kept |= written - assigned(nodes) - {node.arg for node in nodes if isinstance(node, ast.arg)}
    return kept


def optional_registries(text: str) -> list[int]:
    """Lines of fields and parameters for interpreters that may be left out."""
    optional: list[tuple[int, ast.expr | None]] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ClassDef):
            fields = (entry for entry in node.body if isinstance(entry, ast.AnnAssign) and entry.value)
            optional += [(entry.lineno, entry.annotation) for entry in fields]
        if isinstance(node, ast.arguments):
            positional = [*node.posonlyargs, *node.args]
            by_name = zip(node.kwonlyargs, node.kw_defaults, strict=True)
            found = positional[len(positional) - len(node.defaults) :] + [one for one, default in by_name if default]
            optional += [(one.lineno, one.annotation) for one in found]
    return [line for line, annotation in optional if annotation and "Registry" in ast.unparse(annotation)]


def test_the_core_keeps_nothing_between_two_plans() -> None:
    found = {file: kept_in(text) for file, text in TEXTS.items() if file.startswith(CORE)}
    assert len(found) > 200
    assert {file: names for file, names in found.items() if names} == MEMOS


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("_installed = [1]\ndef install(it):\n    _installed[:] = [it]\n", {"_installed"}),
        ("_known: dict = {1: 2}\ndef look(it):\n    return _known.setdefault(it, it)\n", {"_known"}),
        ("_now = None\ndef use(it):\n    global _now\n    _now = it\n", {"_now"}),
        ("_at = Thing()\nclass Room:\n    def enter(self):\n        _at.rooms[0].add(self)\n", {"_at"}),
        ("_all = {1: 2}\ndef leave(it):\n    del _all[it]\n", {"_all"}),
        ("_all: dict[str, int] = {}\ndef look(it):\n    known = _all\n    known[it] = 1\n", {"_all"}),
        ("_all = defaultdict[str, int](int)\n_seen = set[str]()\n_none: Mapping[str, int] = {}\n", {"_all", "_seen"}),
        ("_all = {1: 2}\ndef look(it):\n    found = dict(_all)\n    found[it] = 3\n    return found\n", set()),
        ("_all = {1: 2}\ndef look(_all):\n    _all[1] = 3\n", set()),
    ],
)
def test_what_a_module_keeps_is_found(text: str, names: set[str]) -> None:
    assert kept_in(text) == names


def test_whoever_needs_interpreters_is_given_them() -> None:
    assert {file for file, text in TEXTS.items() if "BUILT_IN_KINDS" in text} == MAY_ASSUME_BUILT_IN_KINDS.keys()
    concerned = {file: text for file, text in TEXTS.items() if "Registry" in text}
    assert not [f"{file}:{line}" for file, text in concerned.items() for line in optional_registries(text)]


def test_interpreters_that_may_be_left_out_are_found() -> None:
    text = (
        "class A:\n a: Registry\n b: Registry = X\ndef f(a: Registry, b: Registry = X, *, c: Registry | None = X): ..."
    )
    assert optional_registries(text) == [3, 4, 4]
