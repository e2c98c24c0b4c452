"""Interpreters beside the built-in ones, as somebody may install them, and some that raise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from reconciler.api.content import JsonObject
from reconciler.kinds import BUILT_IN_KINDS, Interpreter, Registry, registry_of
from reconciler.kinds.registry import BUILT_IN

Raises = Callable[[JsonObject], bool]
"""True if it raises for a live object."""


class InterpreterFault(Exception):
    """A fault that nobody thought of."""


def raising(group: str, kind: str, when: Raises = lambda live: True) -> Interpreter:
    known = BUILT_IN_KINDS.of(group, kind)

    def fail_for(judge: Callable[..., Any]) -> Callable[..., Any]:
        def judged(live: JsonObject, *more: Any) -> Any:
            return _fail() if when(live) else judge(live, *more)

        return judged

    names = ("health", "outcome", "available")
    return with_rules(known, **{name: fail_for(getattr(known, name)) for name in names})


def with_rules(known: Interpreter, **rules: Callable[..., Any]) -> Interpreter:
    """Return an interpreter with functions of bodies instead of its methods."""
    other: Any = type("Other", (type(known),), {name: staticmethod(rule) for name, rule in rules.items()})
    interpreter: Interpreter = other.__new__(other)
    vars(interpreter).update(vars(known))
    return interpreter


def registry_with(*given: tuple[str, Interpreter]) -> Registry:
    taken = {kind for _, interpreter in given for kind in interpreter.kinds}
    return registry_of([*given, *((name, known) for name, known in BUILT_IN if taken.isdisjoint(known.kinds))])


def _fail() -> NoReturn:
    raise InterpreterFault("hunter2")
