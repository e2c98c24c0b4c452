"""Declared dependencies equal imported ones; the locks have all of them."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterable
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
NEEDED = [Requirement(line) for line in PROJECT["dependencies"]]
NEEDED_TO_DEVELOP = [Requirement(line) for line in PROJECT["optional-dependencies"]["dev"]]
OWN = {"reconciler", "tests", "bench", "scripts"}
TOOLS = {
    "editables": ("Makefile", "--editable"),
    "hatchling": ("pyproject.toml", "hatchling.build"),
    "mypy": ("Makefile", "/mypy"),
    "pytest-timeout": ("pyproject.toml", "\ntimeout = "),
    "pytest-xdist": ("Makefile", "/pytest -n "),
    "ruff": ("Makefile", "/ruff"),
    "types-pyyaml": ("pyproject.toml", "strict = true"),
}
"""Dependencies without an import, each with a file that shows its purpose."""


def imported(folder: str) -> set[str]:
    """The distributions of every module of somebody else's that files of the folder import, wherever in a file."""
    modules: set[str] = set()
    for file in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                modules |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                modules.add(node.module.partition(".")[0])
    beside = {path.stem for path in (ROOT / folder).glob("*.py")}
    known = packages_distributions()
    found = set[str]()
    for module in modules - sys.stdlib_module_names - OWN - beside:
        assert module in known, f"{folder} imports {module}, which is not installed"
        found |= {canonicalize_name(name) for name in known[module]}
    return found


def names(requirements: Iterable[Requirement]) -> set[str]:
    return {canonicalize_name(requirement.name) for requirement in requirements}


def locked(file: str) -> dict[str, str]:
    lines = re.findall(r"(?m)^([A-Za-z0-9._-]+)==(\S+)", (ROOT / file).read_text(encoding="utf-8"))
    return {canonicalize_name(name): version for name, version in lines}


def test_every_declared_dependency_is_imported_and_every_imported_one_declared() -> None:
    assert imported("reconciler") == names(NEEDED)


def test_what_tests_and_scripts_import_and_the_tools_that_are_used_are_declared_for_development() -> None:
    used = imported("tests") | imported("bench") | imported("scripts")
    assert names(NEEDED_TO_DEVELOP) == (used - names(NEEDED)) | set(TOOLS)
    for tool, (file, sign) in TOOLS.items():
        assert sign in (ROOT / file).read_text(encoding="utf-8"), f"{tool} is not used in {file}"


def test_what_only_tests_need_is_not_declared_for_the_program() -> None:
    assert not names(NEEDED) & names(NEEDED_TO_DEVELOP)


@pytest.mark.parametrize(
    ("file", "requirements"),
    [("requirements.lock", NEEDED), ("requirements-dev.lock", [*NEEDED, *NEEDED_TO_DEVELOP])],
)
def test_the_lock_has_what_is_declared_in_a_version_that_will_do(file: str, requirements: list[Requirement]) -> None:
    versions = locked(file)
    for requirement in requirements:
        version = versions.get(canonicalize_name(requirement.name))
        assert version is not None, f"{requirement.name} is not in {file}; run make lock"
        assert version in requirement.specifier, f"{file} has {requirement.name} {version}; run make lock"


MENDED = {
    "aiohttp": "3.13.3",        # CVE-2025-69223 to 69230: bodies and compressed data that take all memory
    "cryptography": "46.0.5",   # CVE-2026-26007: points that are in no subgroup; before it CVE-2024-12797
    "jinja2": "3.1.6",          # CVE-2025-27516: a way out of the sandbox
    "orjson": "3.11.6",         # CVE-2025-67221: depth without limit
    "playwright": "1.55.1",     # CVE-2025-59288: browsers fetched without a check of certificates
    "pygit2": "1.14.1",         # CVE-2024-24577 of libgit2: a write beyond the index
    "pyrage": "1.2.3",          # CVE-2024-56327: names of plugins that start programs
    "pytest": "9.0.3",          # CVE-2025-71176: folders under /tmp with known names
    "pyyaml": "5.4",            # CVE-2020-14343: documents that run code
    "requests": "2.32.4",       # CVE-2024-47081: credentials of .netrc to another host
    "urllib3": "2.6.3",         # CVE-2026-21441: compressed answers to redirects without limit
    "certifi": "2024.7.4",      # CVE-2024-39689: authorities that are trusted no more
    "idna": "3.7",              # CVE-2024-3651: names that take time
}  # fmt: skip
"""The first version of a distribution after its last advisory that is known to us."""


def test_every_least_version_and_every_locked_one_is_above_known_advisories() -> None:
    for requirement in [*NEEDED, *NEEDED_TO_DEVELOP]:
        least = [Version(one.version) for one in requirement.specifier if one.operator == ">="]
        name = canonicalize_name(requirement.name)
        assert least or name == "types-pyyaml", f"{name} has no least version"
        assert name not in MENDED or least[0] >= Version(MENDED[name]), f"{name}: raise its least version"
    versions = locked("requirements-dev.lock")
    for known, mended in MENDED.items():
        assert Version(versions[known]) >= Version(mended), f"{known} {versions[known]}; run make lock"


def test_what_is_developed_with_is_what_is_installed() -> None:
    program, development = locked("requirements.lock"), locked("requirements-dev.lock")
    assert len(program) > len(NEEDED)
    assert program.items() <= development.items()
