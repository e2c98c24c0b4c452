"""Every interpreter there is, by group and kind.

A kind is known because a module of this package has an `INTERPRETER`. Further kinds come from installed packages
through the entry-point group `reconciler.interpreters`; the shell loads them once, before the first round.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Callable, Iterable, Mapping
from importlib.machinery import PathFinder
from pathlib import Path
from types import MappingProxyType
from typing import Final

from msgspec import Struct

import reconciler.interpreters as package
from reconciler.errors import ConfigurationError
from reconciler.interpreters.base import Interpreter

ENTRY_POINT_GROUP: Final = "reconciler.interpreters"

GENERIC: Final = Interpreter(kinds=())
"""What is known of a kind that nobody described: it has no replicas, no dependencies, and kstatus tells its health."""

Lookup = Callable[[str, str], Interpreter]
"""`interpreter_for` of the built-in kinds, or of a registry with more."""


class Registry(Struct, frozen=True):
    """Interpreters by (group, kind)."""

    by_kind: Mapping[tuple[str, str], Interpreter]

    def interpreter_for(self, group: str, kind: str) -> Interpreter:
        """The interpreter of a kind; `GENERIC` for one that is not described."""
        return self.by_kind.get((group, kind), GENERIC)


def registry_of(named: Iterable[tuple[str, Interpreter]]) -> Registry:
    """A registry of interpreters with the name of where each is from; a kind that two describe is an error.

    Raises:
        ConfigurationError: two interpreters describe one kind; the message names both.
    """
    by_kind: dict[tuple[str, str], Interpreter] = {}
    origins: dict[tuple[str, str], str] = {}
    for origin, interpreter in named:
        for kind in interpreter.kinds:
            if kind in origins:
                group, name = kind
                where = f"{name} of {group}" if group else name
                raise ConfigurationError(f"{where} is described by both {origins[kind]} and {origin}; remove one")
            by_kind[kind] = interpreter
            origins[kind] = origin
    return Registry(MappingProxyType(by_kind))


def _built_in() -> tuple[tuple[str, Interpreter], ...]:
    found = (module.name for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."))
    modules = {name.rpartition(".")[2]: importlib.import_module(name) for name in found if name != __name__}
    held = ((name, getattr(modules[name], "INTERPRETER", None)) for name in sorted(modules))
    return tuple((name, interpreter) for name, interpreter in held if isinstance(interpreter, Interpreter))


BUILT_IN: Final = _built_in()
"""(module, interpreter) of this package, in the order of names."""

_installed: list[Registry] = [registry_of(BUILT_IN)]


def interpreter_for(group: str, kind: str) -> Interpreter:
    """The interpreter of a kind, plugins included once they are installed; `GENERIC` for one that is not described."""
    return _installed[-1].interpreter_for(group, kind)


def install(registry: Registry) -> None:
    """Use this registry from now on. The shell calls it once, before anything is computed."""
    _installed[:] = [registry]


def with_plugins() -> Registry:
    """The built-in interpreters and those of installed packages. Reads the installation, so only the shell calls it.

    Raises:
        ConfigurationError: a plugin cannot be loaded, is no `Interpreter`, or describes a kind that is known.
    """
    if not _may_have_plugins():
        return registry_of(BUILT_IN)
    from importlib.metadata import entry_points  # noqa: PLC0415  # It takes 20 ms, and few have plugins.

    plugins = []
    for entry in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda entry: (entry.name, entry.value)):
        try:
            loaded = entry.load()
        except (ImportError, AttributeError) as error:
            raise ConfigurationError(
                f"interpreter plugin {entry.name} ({entry.value}) does not load: {error}"
            ) from error
        if not isinstance(loaded, Interpreter):
            raise ConfigurationError(f"interpreter plugin {entry.name} ({entry.value}) is no Interpreter")
        plugins.append((f"plugin {entry.name}", loaded))
    return registry_of((*BUILT_IN, *plugins))


def _may_have_plugins() -> bool:
    """Whether an installed package names our group, or packages are where only the import system can tell."""
    if any(finder is not PathFinder and hasattr(finder, "find_distributions") for finder in sys.meta_path):
        return True
    for folder in map(Path, sys.path):
        if folder.is_file():
            return True  # An archive.
        for pattern in ("*.dist-info", "*.egg-info", "EGG-INFO"):
            for found in folder.glob(f"{pattern}/entry_points.txt"):
                if _names_our_group(found):
                    return True
    return False


def _names_our_group(file: Path) -> bool:
    try:
        return ENTRY_POINT_GROUP.encode() in file.read_bytes()
    except OSError:
        return True
