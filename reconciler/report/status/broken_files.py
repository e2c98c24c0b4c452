"""Unreadable files of the store: since when, their replacement, and the objects they may concern.

Source: design#broken-input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

from reconciler.api.content import Json, JsonObject, dig
from reconciler.api.fleet import FrozenReach
from reconciler.api.problem import Problem, Severity
from reconciler.fleet import LAST_GOOD
from reconciler.incremental import by_key
from reconciler.scheduler import Schedule

_NAMED_MAX: Final = 20
_SHOWN_MAX: Final = 5
"""Limit of files in the first lines; the problems name all of them."""
_NAMED_IN_LINES: Final = 3


class ReplacedFile(StrEnum):
    """The replacement of an unreadable file."""

    LAST_GOOD = "last-good"
    """Its last good content."""
    NOTHING = "nothing"
    """It is new: placed objects go on, unplaced ones wait."""
    FROZEN = "frozen"
    """Unknown: all objects that it could concern stay as they are in the clusters."""


def broken_part(schedule: Schedule, time: str, before: JsonObject | None, masked: Callable[[str], str]) -> list[Json]:
    """Return `[{file, since, why, inForce, reach, frozen, resources}]`, by file.

    `before`: the earlier document, with the start times. `frozen`: number of the store's resources that wait for it.
    """
    fleet = schedule.fleet
    if not fleet.frozen:
        return []
    since = {entry["file"]: entry["since"] for entry in (dig(before, "broken") or ())}
    waiting = by_key((reach.source.path, identity) for identity, reach in sorted(schedule.claims.frozen.items()))
    reaches = by_key((reach.source.path, reach) for reach in fleet.frozen)
    problems = by_key((problem.source.path, problem) for problem in fleet.problems if not problem.cluster)
    return [
        {
            "file": path,
            "since": since.get(path, time),
            "why": masked(_why(problems.get(path, ()))),
            "inForce": str(_in_force(found, problems.get(path, ()))),
            # For a new file none: `frozen` counts its effect.
            "reach": sorted({words for reach in found if not reach.is_new for words in _words(reach)}),
            "frozen": len(waiting.get(path, ())),
            "resources": [str(identity) for identity in waiting.get(path, ())[:_NAMED_MAX]],
        }
        for path, found in sorted(reaches.items())
    ]


def _why(problems: Iterable[Problem]) -> str:
    told = sorted(problems, key=lambda problem: (problem.severity is not Severity.ERROR, problem.code == LAST_GOOD))
    return next((problem.message for problem in told), "")


def _in_force(reaches: Iterable[FrozenReach], problems: Iterable[Problem]) -> ReplacedFile:
    if any(problem.code == LAST_GOOD for problem in problems):
        return ReplacedFile.LAST_GOOD
    return ReplacedFile.NOTHING if all(reach.is_new for reach in reaches) else ReplacedFile.FROZEN


def _words(reach: FrozenReach) -> Iterable[str]:
    if reach.everything:
        yield "everything"
    if reach.selectors:
        yield f"what {reach.policy} selects" if reach.policy is not None else "what its selectors select"
    elif reach.namespace:
        yield f"everything in namespace {reach.namespace}"
    yield from map(str, reach.identities)


def broken_lines(broken: Sequence[Mapping[str, Any]]) -> list[str]:
    """The first lines of `status` about them; none where the store is whole."""
    lines = [
        f"{entry['file']} since {entry['since']}: {entry['why']}; {_effect(entry)}" for entry in broken[:_SHOWN_MAX]
    ]
    if len(broken) > _SHOWN_MAX:
        lines.append(f"and {len(broken) - _SHOWN_MAX} more files, see the problems below")
    return (
        [*lines, "until the store is mended, nothing is taken for deleted because it is gone from it"] if lines else []
    )


def _effect(entry: Mapping[str, Any]) -> str:
    names = ", ".join(entry["resources"][:_NAMED_IN_LINES])
    more = entry["frozen"] - min(entry["frozen"], _NAMED_IN_LINES)
    whom = f"{names} and {more} more" if more else names
    if entry["inForce"] == ReplacedFile.FROZEN:
        reach = ", ".join(entry["reach"]) or "nothing"
        return f"frozen is {reach}" + (f" ({whom})" if whom and whom != reach else "")
    kept = (
        "its last good content stays in force"
        if entry["inForce"] == ReplacedFile.LAST_GOOD
        else "what is placed goes on"
    )
    return f"{kept}, and {whom} {'wait' if entry['frozen'] > 1 else 'waits'}" if whom else kept
