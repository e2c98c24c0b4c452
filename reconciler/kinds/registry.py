"""Every interpreter, by group and kind.

Those of this program are in `built_in`. Further ones come from installed packages: the shell loads them once and hands
the registry down. A world and a schedule carry the one they were made with.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from reconciler.errors import ConfigurationError
from reconciler.kinds.built_in import BUILT_IN
from reconciler.kinds.interpreter import GENERIC, Interpreter

__all__ = ["BUILT_IN_KINDS", "GENERIC", "Registry", "registry_of"]


class Registry(Struct, frozen=True):
    """Interpreters by (group, kind)."""

    by_kind: Mapping[tuple[str, str], Interpreter]

    def of(self, group: str, kind: str) -> Interpreter:
        """Return the interpreter of a kind; `GENERIC` for an unknown one."""
        return self.by_kind.get((group, kind), GENERIC)

    def kinds_with(self, field: str) -> frozenset[tuple[str, str]]:
        """Return the kinds with a rule of their own in this field of `Interpreter`."""
        default = getattr(GENERIC, field)
        return frozenset(kind for kind, known in self.by_kind.items() if getattr(known, field) is not default)


def registry_of(named: Iterable[tuple[str, Interpreter]]) -> Registry:
    """A registry of interpreters with the name of where each is from; a kind that two describe is an error.

    Raises ConfigurationError: two interpreters describe one kind; the message names both.
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


BUILT_IN_KINDS: Final = registry_of(BUILT_IN)
"""The kinds of this program's own interpreters. No plan falls back to them: the caller passes its registry."""
