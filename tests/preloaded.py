"""Imports all of the program but its leaves: the server of `tests.program` does so once for all its processes."""

from __future__ import annotations

import importlib
import pkgutil

import reconciler

LEAVES = ("reconciler.__main__", "reconciler.cli.demo", "reconciler.importers", "reconciler.sim")

for module in pkgutil.walk_packages(reconciler.__path__, "reconciler."):
    if not module.name.startswith(LEAVES):
        importlib.import_module(module.name)
