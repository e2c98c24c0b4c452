"""The interpreter: everything the pipeline needs to know about one kind, as pure methods on bodies.

A new kind is a class that overrides what differs from the defaults, and a folder of cases under `tests/interpreters/`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from reconciler.api.clusters import Health, RunOutcome
from reconciler.api.content import Json, JsonObject, Step
from reconciler.api.demand import Demand, DependencyRef, MadeObject
from reconciler.api.refs import Identity
from reconciler.kinds.body_fields import kstatus_health, prune_server_fields
from reconciler.kinds.references import PodReference, as_dependencies


class Interpreter:
    """Knowledge of some kinds; the defaults are right without replicas, dependencies and a rule of health."""

    rules: ClassVar[frozenset[str]] = frozenset()
    """Names of the methods that a class overrides, `dependencies` where it has references. Others ask for no body."""
    replicas_path: tuple[str, ...] = ()
    """The field that `with_replicas` sets; empty if none."""
    counts_replicas: ClassVar[bool] = False
    """True if the status of live objects reports available replicas: `available` is overridden."""
    tells_by_events: ClassVar[bool] = False
    """True if only events tell why a pod could not be made: `lacking_pods` is overridden."""
    runs_pods: ClassVar[bool] = False
    """True of workloads, which run the containers of `images`."""

    def __init_subclass__(cls) -> None:
        rules = frozenset(name for name, rule in vars(Interpreter).items() if getattr(cls, name) is not rule)
        cls.rules = rules | {"dependencies"} if "references" in rules else rules
        cls.counts_replicas, cls.tells_by_events = "available" in rules, "lacking_pods" in rules
        cls.runs_pods = "images" in rules

    def __init__(self, *kinds: tuple[str, str], namespaced: bool = True) -> None:
        """Describe these kinds, which are (group, kind) pairs."""
        self.kinds = kinds
        self.namespaced = namespaced

    def demand(self, body: JsonObject) -> Demand:
        """Replicas and shape of a template. A missing spec.replicas counts as the API server's default."""
        return Demand(replicas=None)

    def with_replicas(self, body: JsonObject, replicas: int) -> JsonObject:
        """The body with the assigned replicas, copy on write.

        Of a Job: parallelism; its share of completions is set by `render`, which knows the other clusters.
        """
        return body

    def references(self, body: JsonObject) -> Iterator[PodReference]:
        """Yield the fields that name objects which it needs."""
        yield from ()

    def dependencies(self, body: JsonObject) -> tuple[DependencyRef, ...]:
        """Dependencies that propagateDeps places along with it, in the namespace of the body or by its grant."""
        return as_dependencies(self.references(body), body)

    def makes(self, body: JsonObject) -> tuple[MadeObject, ...]:
        """Objects that a controller in the cluster makes of it, in its namespace. A reference to one needs this one."""
        return ()

    def images(self, body: JsonObject) -> tuple[tuple[tuple[Step, ...], str], ...]:
        """Every image as (steps, reference): containers and init containers."""
        return ()

    def containers(self, body: JsonObject) -> tuple[tuple[Step, ...], ...]:
        """Steps to every container and init container (mappings with name, command, args)."""
        return ()

    def pod_template(self, body: JsonObject) -> Json:
        """The pod template (mapping with metadata and spec), or None."""
        return None

    def health(self, live: JsonObject) -> Health:
        """Health of a live object, from its own status."""
        return kstatus_health(live)

    def why(self, live: JsonObject) -> str:
        """The reason in words why a live object is not healthy; empty: its conditions say it."""
        return ""

    def outcome(self, live: JsonObject) -> RunOutcome:
        """The outcome of a live object that runs to an end."""
        return RunOutcome.RUNS

    def pods_needed(self, live: JsonObject) -> int:
        """Number of its pods that must run, or it is interrupted: all of a set in which each waits for the others."""
        return 1

    def lacking_pods(self, live: JsonObject) -> int:
        """Number of pods that a live object wants beyond those in its status."""
        return 0

    def fails_by_itself(self, live: JsonObject, own: int, disrupted: int) -> bool:
        """Return whether a failed live object would fail in another cluster, too.

        `own`: the number of its remaining pods that failed by themselves; `disrupted`: of those that the cluster
        evicted, preempted, or lost with their node.
        """
        return own > 0 and not disrupted

    def available(self, live: JsonObject) -> int | None:
        """Available replicas of a live object, from its status; None: not reported."""
        return None

    def sanitize(self, body: JsonObject) -> JsonObject:
        """The template without fields that must never be sent (server fields, controller-made labels), canonical.

        Of a Secret: stringData is folded into data.
        """
        return prune_server_fields(body)

    def scale_target(self, body: JsonObject) -> Identity | None:
        """The object whose replicas this one decides (an autoscaler), in the namespace of the body."""
        return None


GENERIC: Final = Interpreter()
"""The interpreter of any other kind: no replicas, no dependencies, health from kstatus."""
