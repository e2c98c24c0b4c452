"""The interpreters of this program: the constants of the modules of kinds, by their names."""

from __future__ import annotations

from typing import Final

from reconciler.kinds import gangs, gateway, jobs, secret_makers, small_kinds, workloads
from reconciler.kinds.interpreter import Interpreter

BUILT_IN: Final[tuple[tuple[str, Interpreter], ...]] = tuple(
    sorted(
        (name.lower().replace("_", ""), value)
        for module in (gangs, gateway, jobs, secret_makers, small_kinds, workloads)
        for name, value in vars(module).items()
        if isinstance(value, Interpreter) and not name.startswith("_")
    )
)
"""Name and interpreter, in the order of names."""
