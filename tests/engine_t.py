"""Engine T on whole bodies, as tests have them."""

from __future__ import annotations

from reconciler.api.content import JsonObject
from reconciler.diff import Difference, desired_of, difference_from
from reconciler.documents import Schema


def three_way(
    desired: JsonObject,
    live: JsonObject,
    *,
    manager: str,
    previous: JsonObject | None = None,
    schema: Schema | None,
    recorded: JsonObject | None = None,
    ignored: tuple[str, ...] = (),
) -> Difference:
    """`difference_from` of a body that would be sent; `recorded`: how the journal keeps it where that differs."""
    wanted = desired_of(desired, recorded)
    return difference_from(wanted, live, manager=manager, previous=previous, schema=schema, ignored=ignored)
