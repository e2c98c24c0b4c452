"""What an interpreter is: everything the pipeline needs to know about one kind, as pure functions on bodies.

A new kind is one file with an `INTERPRETER` and a folder of cases under `tests/interpreters/`. Every field has a
default that is right for a kind without replicas, dependencies or health.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from reconciler.model.demand import Demand, DependencyRef
from reconciler.model.observation import Health
from reconciler.model.tree import Json, JsonObject


def _no_demand(body: JsonObject) -> Demand:
    return Demand(replicas=None)


def _same(body: JsonObject, replicas: int) -> JsonObject:
    return body


def _no_dependencies(body: JsonObject) -> tuple[DependencyRef, ...]:
    return ()


def _healthy(live: JsonObject) -> Health:
    return Health.HEALTHY


def _no_images(body: JsonObject) -> tuple[tuple[tuple[str | int, ...], str], ...]:
    return ()


def _as_is(body: JsonObject) -> JsonObject:
    return body


def _no_pod_template(body: JsonObject) -> Json:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreter:
    """Knowledge of the kinds in `kinds`, which are (group, kind) pairs."""

    kinds: tuple[tuple[str, str], ...]
    namespaced: bool = True
    demand: Callable[[JsonObject], Demand] = _no_demand
    """Replicas and shape of a template. A missing spec.replicas counts as the API server's default."""
    with_replicas: Callable[[JsonObject, int], JsonObject] = _same
    """The body with the assigned replicas, copy on write (a Job: parallelism and its share of completions is set by
    `render`, which knows the other clusters)."""
    dependencies: Callable[[JsonObject], tuple[DependencyRef, ...]] = _no_dependencies
    """What must travel with it under propagateDeps, in the namespace of the body."""
    images: Callable[[JsonObject], tuple[tuple[tuple[str | int, ...], str], ...]] = _no_images
    """Every image as (steps, reference): containers and init containers."""
    pod_template: Callable[[JsonObject], Json] = _no_pod_template
    """The pod template (mapping with metadata and spec), or None."""
    health: Callable[[JsonObject], Health] = _healthy
    """Health of a live object."""
    sanitize: Callable[[JsonObject], JsonObject] = _as_is
    """The template without what must never be sent (server fields, controller-made labels), in canonical form
    (a Secret: stringData folded into data)."""
