"""Interpreters beside the built-in ones, as somebody may install them, and some that raise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from msgspec.structs import replace

from reconciler.api.content import JsonObject
from reconciler.kinds import BUILT_IN_KINDS, Interpreter, Registry, registry_of
from reconciler.kinds.built_in import BUILT_IN

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

    failing = replace(known, health=fail_for(known.health), outcome=fail_for(known.outcome))
    return replace(failing, available=fail_for(known.available)) if known.counts_replicas else failing


def registry_with(*given: tuple[str, Interpreter]) -> Registry:
    taken = {kind for _, interpreter in given for kind in interpreter.kinds}
    return registry_of([*given, *((name, known) for name, known in BUILT_IN if taken.isdisjoint(known.kinds))])


def _fail() -> NoReturn:
    raise InterpreterFault("hunter2")
