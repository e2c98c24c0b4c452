"""The interpreter: everything the pipeline needs to know about one kind, as pure functions on bodies.

A new kind is one file with an `INTERPRETER` and a folder of cases under `tests/interpreters/`. Every field has a
default that is right for a kind without replicas, dependencies or a rule of health of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from reconciler.api.clusters import Health, RunOutcome
from reconciler.api.content import Json, JsonObject, Step
from reconciler.api.demand import Demand, DependencyRef, Made
from reconciler.api.refs import Identity
from reconciler.kinds.body_fields import kstatus_health, prune_server_fields


class Interpreter(Struct, frozen=True, kw_only=True):
    """Knowledge of the kinds in `kinds`, which are (group, kind) pairs."""

    kinds: tuple[tuple[str, str], ...]
    namespaced: bool = True
    demand: Callable[[JsonObject], Demand] = lambda body: Demand(replicas=None)
    """Replicas and shape of a template. A missing spec.replicas counts as the API server's default."""
    with_replicas: Callable[[JsonObject, int], JsonObject] = lambda body, replicas: body
    """The body with the assigned replicas, copy on write (a Job: parallelism and its share of completions is set by
    `render`, which knows the other clusters)."""
    replicas_path: tuple[str, ...] = ()
    """The field that `with_replicas` sets; empty if none."""
    dependencies: Callable[[JsonObject], tuple[DependencyRef, ...]] = lambda body: ()
    """Dependencies that propagateDeps places along with it, in the namespace of the body or by its grant."""
    makes: Callable[[JsonObject], tuple[Made, ...]] = lambda body: ()
    """Objects that a controller in the cluster makes of it, in the body's namespace. A reference to one needs this
    one."""
    images: Callable[[JsonObject], tuple[tuple[tuple[Step, ...], str], ...]] = lambda body: ()
    """Every image as (steps, reference): containers and init containers."""
    containers: Callable[[JsonObject], tuple[tuple[Step, ...], ...]] = lambda body: ()
    """Steps to every container and init container (mappings with name, command, args)."""
    pod_template: Callable[[JsonObject], Json] = lambda body: None
    """The pod template (mapping with metadata and spec), or None."""
    health: Callable[[JsonObject], Health] = kstatus_health
    """Health of a live object, from its own status."""
    why: Callable[[JsonObject], str] = lambda live: ""
    """The reason in words why a live object is not healthy; empty: its conditions say it."""
    outcome: Callable[[JsonObject], RunOutcome] = lambda live: RunOutcome.RUNS
    """The outcome of a live object that runs to an end."""
    pods_needed: Callable[[JsonObject], int] = lambda live: 1
    """Number of its pods that must run, or it is interrupted: all of a set in which each waits for the others."""
    lacking_pods: Callable[[JsonObject], int] = lambda live: 0
    """Number of pods that a live object wants beyond those in its status, of kinds whose controllers say by events
    alone why a pod could not be made."""
    fails_by_itself: Callable[[JsonObject, int, int], bool] = lambda live, own, disrupted: own > 0 and not disrupted
    """True if a failed live object would fail in another cluster, too. Given the number of its remaining pods that
    failed by themselves, and the number that the cluster disrupted: evicted, preempted, or with their node lost."""
    available: Callable[[JsonObject], int | None] = lambda live: None
    """Number of available replicas of a live object, from its status; None: not reported yet.

    Without such a rule, replicas of the kind are not counted."""
    sanitize: Callable[[JsonObject], JsonObject] = prune_server_fields
    """The template without fields that must never be sent (server fields, controller-made labels), in canonical form
    (a Secret: stringData folded into data)."""
    scale_target: Callable[[JsonObject], Identity | None] = lambda body: None
    """The object whose replicas this one decides (an autoscaler), in the namespace of the body."""

    @property
    def counts_replicas(self) -> bool:
        """Return whether the status of live objects of these kinds reports available replicas."""
        return self.available is not GENERIC.available

    @property
    def tells_by_events(self) -> bool:
        """Return whether only events tell why a pod of these kinds could not be made."""
        return self.lacking_pods is not GENERIC.lacking_pods

    @property
    def runs_pods(self) -> bool:
        """Return whether objects of these kinds run containers: whether they are workloads."""
        return self.images is not GENERIC.images


GENERIC: Final = Interpreter(kinds=())
"""The interpreter of any other kind: no replicas, no dependencies, health from kstatus."""
