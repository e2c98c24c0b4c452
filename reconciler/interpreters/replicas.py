"""`spec.replicas`, for the kinds that have it."""

from __future__ import annotations

from reconciler.interpreters.reading import count, status_count
from reconciler.model.tree import JsonObject, dig, with_value

REPLICAS = ("spec", "replicas")


def replicas_of(body: JsonObject) -> int:
    """spec.replicas; 1 when it is missing, as the API server fills it in (Karmada counts 0)."""
    return count(dig(body, *REPLICAS), 1)


def available_replicas(live: JsonObject) -> int | None:
    """status.availableReplicas; None before a controller has seen the object."""
    return status_count(live, "availableReplicas")


def with_count(body: JsonObject, path: tuple[str, ...], number: int) -> JsonObject:
    """The body with the number at the path, copy on write; the body itself when it has it already."""
    return body if dig(body, *path) == number else with_value(body, path, number)


def with_replicas(body: JsonObject, replicas: int) -> JsonObject:
    """The body with spec.replicas set, copy on write."""
    return with_count(body, REPLICAS, replicas)
