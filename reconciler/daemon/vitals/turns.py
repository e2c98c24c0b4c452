"""What the log says when an object comes into another state: once when it begins, once when it is over."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Final, TypeGuard

from msgspec import Struct

from reconciler.stages.state import Degraded, Held, HeldBy, ObjectState, Refused, Turn, says_more

log = logging.getLogger("reconciler")

_LINES_MAX: Final = 50
"""So many objects of one round are named; a cluster that breaks as a whole is one more line, not thousands."""


class _Line(Struct, frozen=True, kw_only=True):
    turn: Turn
    event: str
    message: str
    level: int = logging.WARNING
    error: str = ""
    why: str = ""
    err_code: str = ""


def tell_turns(turns: Sequence[Turn]) -> None:
    """Log what is refused or degraded since, and what is so no longer."""
    lines = [line for turn in turns for line in _lines(turn)]
    for line in lines[:_LINES_MAX]:
        extra = {"event": line.event, "cluster": line.turn.cluster, "obj": str(line.turn.identity)}
        extra |= {"error": line.error} if line.error else {}
        extra |= {"why": line.why} if line.why else {}
        extra |= {"err_code": line.err_code} if line.err_code else {}
        log.log(line.level, line.message, extra=extra)
    if len(lines) > _LINES_MAX:
        clusters = sorted({line.turn.cluster for line in lines})
        log.warning(
            "%d more objects came into another state; status lists them",
            len(lines) - _LINES_MAX,
            extra={"event": "StatesChanged", "cluster": ",".join(clusters)},
        )


def _lines(turn: Turn) -> Iterator[_Line]:
    before, after = _sync(turn.before), _sync(turn.after)
    if isinstance(after, Refused) and after != before:
        yield _Line(turn=turn, event="ObjectRefused", message="an object that is not ours is in the way",
                    error=after.why, err_code=after.code)  # fmt: skip
    elif isinstance(before, Refused) and not isinstance(after, Refused):
        yield _Line(turn=turn, event="WayIsFree", message="nothing is in the way any more", level=logging.INFO)
    if _is_held(after) and not _is_held(before):
        yield _Line(turn=turn, event="ChangeHeld", message="a change waits for a person", why=after.why)
    elif _is_held(before) and not _is_held(after):
        yield _Line(turn=turn, event="HoldOver", message="a change is held no longer", level=logging.INFO)
    was, now = _health(turn.before), _health(turn.after)
    if isinstance(now, Degraded) and (not isinstance(was, Degraded) or says_more(was.why, now.why)):
        yield _Line(turn=turn, event="HealthDegraded", message="an object is degraded", error=now.why)
    elif isinstance(was, Degraded) and not isinstance(now, Degraded):
        yield _Line(turn=turn, event="HealthChanged", message="an object is degraded no longer", level=logging.INFO)


def _is_held(sync: object) -> TypeGuard[Held]:
    """Whether a person has to confirm or allow it. A suspension is told by itself."""
    return isinstance(sync, Held) and sync.by in (HeldBy.GUARD, HeldBy.REPLACEMENT)


def _sync(state: ObjectState | None) -> object:
    return state.sync if state is not None else None


def _health(state: ObjectState | None) -> object:
    return state.health if state is not None else None
