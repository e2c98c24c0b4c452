"""Conditions of controllers: they accept an object, resolve its references, and have set it up.

Source: Gateway API: conditions of Gateways, listeners, routes by parent, and policies by ancestor; Kubernetes, API
conventions: a condition with an observedGeneration counts for that generation alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from reconciler.interpreters.reading import mappings, text
from reconciler.model.observation import Health
from reconciler.model.tree import Json, JsonObject, dig


class Told(NamedTuple):
    """Reported health, and its reason in words; empty if healthy."""

    health: Health
    why: str = ""


WELL: Final = Told(Health.HEALTHY)

_GOOD: Final[Mapping[str, tuple[str, str]]] = {
    "Accepted": ("accepts it", "does not accept it"),
    "ResolvedRefs": ("finds what it refers to", "does not find what it refers to"),
    "Programmed": ("has set it up", "has not set it up"),
}
"""Conditions that should be true: words for an unreported and for a false one."""

_BAD: Final[Mapping[str, str]] = {
    "Conflicted": "finds it in conflict with another",
    "PartiallyInvalid": "leaves a part of it out",
}
"""Conditions that should be false or absent, with the words for a true one."""

_PASSING: Final = frozenset({"Pending", "Waiting", "AddressNotAssigned"})
"""Reasons of temporary states. An address may never come, as that of an Ingress may not."""


def told_by(who: str, conditions: Json, live: JsonObject, needed: tuple[str, ...]) -> Told:
    """Return the health from one controller; `who` begins the sentence. `needed`: conditions of a full answer."""
    entries = {text(entry.get("type")): entry for _, entry in mappings(conditions)}
    return worst(_each(who, entries, live, needed))


def worst(found: Iterable[Told]) -> Told:
    """Return the first that is Unhealthy, else the first that is Progressing, else Healthy."""
    waiting = WELL
    for told in found:
        if told.health is Health.UNHEALTHY:
            return told
        if waiting is WELL and told.health is not Health.HEALTHY:
            waiting = told
    return waiting


def _each(
    who: str, entries: Mapping[str, Mapping[str, Any]], live: JsonObject, needed: tuple[str, ...]
) -> Iterator[Told]:
    generation = dig(live, "metadata", "generation")
    for kind, (right, wrong) in _GOOD.items():
        entry = entries.get(kind)
        if entry is None:
            if kind in needed:
                yield _waits(f"{who} has not said yet whether it {right}")
        elif _is_stale(entry, generation):
            yield _waits(f"{who} has not seen the newest spec yet")
        elif entry.get("status") == "False":
            passes = text(entry.get("reason")) in _PASSING
            yield Told(Health.PROGRESSING if passes else Health.UNHEALTHY, f"{who} {wrong}{_detail(entry)}")
        elif entry.get("status") != "True":
            yield _waits(f"{who} has not said yet whether it {right}{_detail(entry)}")
    for kind, wrong in _BAD.items():
        entry = entries.get(kind)
        if entry is not None and entry.get("status") == "True" and not _is_stale(entry, generation):
            yield Told(Health.UNHEALTHY, f"{who} {wrong}{_detail(entry)}")


def _waits(why: str) -> Told:
    return Told(Health.PROGRESSING, why)


def _is_stale(entry: Mapping[str, Any], generation: Json) -> bool:
    observed = entry.get("observedGeneration")
    return isinstance(observed, int) and isinstance(generation, int) and observed != generation


def _detail(entry: Mapping[str, Any]) -> str:
    said = ": ".join(filter(None, (text(entry.get("reason")), text(entry.get("message")))))
    return f" ({said})" if said else ""
