"""Interpreters that raise, as one may that somebody installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from msgspec.structs import replace

from reconciler.api.content import JsonObject
from reconciler.kinds import BUILT_IN_KINDS, Interpreter

Raises = Callable[[JsonObject], bool]
"""True if it raises for a live object."""


class InterpreterFault(Exception):
    """A fault that nobody thought of."""


def raising(group: str, kind: str, when: Raises = lambda live: True) -> Interpreter:
    """The interpreter of a kind, which raises as soon as a live object is judged."""
    known = BUILT_IN_KINDS.of(group, kind)

    def fail_for(judge: Callable[..., Any]) -> Callable[..., Any]:
        def judged(live: JsonObject, *more: Any) -> Any:
            return _fail() if when(live) else judge(live, *more)

        return judged

    failing = replace(known, health=fail_for(known.health), outcome=fail_for(known.outcome))
    return replace(failing, available=fail_for(known.available)) if known.counts_replicas else failing


def _fail() -> NoReturn:
    raise InterpreterFault("hunter2")
