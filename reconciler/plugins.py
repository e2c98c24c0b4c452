"""Interpreters of installed packages, found through the entry-point group `reconciler.interpreters`."""

from __future__ import annotations

import sys
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Final

from reconciler.errors import ConfigurationError
from reconciler.kinds.interpreter import Interpreter
from reconciler.kinds.registry import BUILT_IN, BUILT_IN_KINDS, Registry, registry_of

ENTRY_POINT_GROUP: Final = "reconciler.interpreters"


def with_plugins() -> Registry:
    """The built-in interpreters and those of installed packages.

    Raises ConfigurationError: a plugin cannot be loaded, is no `Interpreter`, or describes a kind that is known.
    """
    if not _may_have_plugins():
        return BUILT_IN_KINDS
    from importlib.metadata import entry_points  # noqa: PLC0415  # It takes 20 ms, and few have plugins.

    plugins = []
    for entry in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda entry: (entry.name, entry.value)):
        try:
            loaded = entry.load()
        except (ImportError, AttributeError, TypeError) as error:
            raise ConfigurationError(
                f"interpreter plugin {entry.name} ({entry.value}) does not load: {error}"
            ) from error
        if not isinstance(loaded, Interpreter):
            raise ConfigurationError(f"interpreter plugin {entry.name} ({entry.value}) is no Interpreter")
        plugins.append((f"plugin {entry.name}", loaded))
    return registry_of((*BUILT_IN, *plugins))


def _may_have_plugins() -> bool:
    """Return whether an installed package may name our group, also if only the import system can find out."""
    if any(finder is not PathFinder and hasattr(finder, "find_distributions") for finder in sys.meta_path):
        return True
    for folder in map(Path, sys.path):
        if folder.is_file():
            return True  # An archive.
        for pattern in ("*.dist-info", "*.egg-info", "EGG-INFO"):
            for path in folder.glob(f"{pattern}/entry_points.txt"):
                if _names_our_group(path):
                    return True
    return False


def _names_our_group(file: Path) -> bool:
    try:
        return ENTRY_POINT_GROUP.encode() in file.read_bytes()
    except OSError:
        return True
