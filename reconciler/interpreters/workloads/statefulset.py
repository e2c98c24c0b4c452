"""StatefulSet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler.interpreters.base import Interpreter
from reconciler.interpreters.pods.template import SPEC_TEMPLATE
from reconciler.interpreters.reading import (
    count,
    has_report,
    is_observed,
    mapping,
    mappings,
    status_count,
    text,
)
from reconciler.interpreters.replicas import REPLICAS, replicas_of, with_replicas
from reconciler.interpreters.server_fields import prune_server_fields
from reconciler.model.demand import Demand, DependencyRef
from reconciler.model.observation import Health
from reconciler.model.tree import JsonObject, dig, with_value


def _demand(body: JsonObject) -> Demand:
    return Demand(replicas=replicas_of(body), shape=SPEC_TEMPLATE.shape(body))


def _dependencies(body: JsonObject) -> tuple[DependencyRef, ...]:
    """Source: Karmada: a claim that volumeClaimTemplates makes is not a dependency."""
    made = {text(dig(claim, "metadata", "name")) for _, claim in mappings(dig(body, "spec", "volumeClaimTemplates"))}
    return tuple(
        ref
        for ref in SPEC_TEMPLATE.dependencies(body)
        if ref.identity.kind != "PersistentVolumeClaim" or ref.identity.name not in made
    )


def _health(live: JsonObject) -> Health:
    """Healthy if every replica is updated and available.

    Source: Karmada: health of a StatefulSet. Two differences: replicas that the update strategy leaves alone on purpose
    (partition, OnDelete) need not be updated; and a rollout that takes its pods one by one while the others serve is
    Progressing, since a StatefulSet has no progressDeadlineSeconds to tell it from a failure.
    """
    if not is_observed(live):
        return Health.PROGRESSING
    status, replicas = mapping(live.get("status")), replicas_of(live)
    available = count(status.get("availableReplicas"), count(status.get("readyReplicas"), 0))
    is_updated = count(status.get("updatedReplicas"), 0) >= replicas - _left_alone(live, replicas)
    if is_updated and available >= replicas:
        return Health.HEALTHY
    is_rolling = status.get("currentRevision") != status.get("updateRevision")
    return Health.PROGRESSING if is_rolling and available >= max(1, replicas - 1) else Health.UNHEALTHY


def _available(live: JsonObject) -> int | None:
    return status_count(live, "availableReplicas", "readyReplicas")


def _lacking_pods(live: JsonObject) -> int:
    """Source: Kubernetes, StatefulSetStatus: `replicas` is the number of pods that were made."""
    return replicas_of(live) - count(mapping(live.get("status")).get("replicas"), 0) if has_report(live) else 0


def _left_alone(live: JsonObject, replicas: int) -> int:
    """Return the number of replicas that the update strategy keeps at the old revision."""
    strategy = mapping(dig(live, "spec", "updateStrategy"))
    if strategy.get("type") == "OnDelete":
        return replicas
    return count(dig(strategy, "rollingUpdate", "partition"), 0)


def _sanitize(body: JsonObject) -> JsonObject:
    pruned = SPEC_TEMPLATE.prune(prune_server_fields(body))
    claims = dig(pruned, "spec", "volumeClaimTemplates")
    if not isinstance(claims, list):
        return pruned
    clean = [prune_server_fields(claim) if isinstance(claim, Mapping) else claim for claim in claims]
    return pruned if _same_items(clean, claims) else with_value(pruned, ("spec", "volumeClaimTemplates"), clean)


def _same_items(left: list[Any], right: list[Any]) -> bool:
    return all(one is other for one, other in zip(left, right, strict=True))


INTERPRETER = Interpreter(
    kinds=(("apps", "StatefulSet"),),
    demand=_demand,
    with_replicas=with_replicas,
    replicas_path=REPLICAS,
    dependencies=_dependencies,
    images=SPEC_TEMPLATE.images,
    containers=SPEC_TEMPLATE.containers,
    pod_template=SPEC_TEMPLATE.of,
    health=_health,
    available=_available,
    lacking_pods=_lacking_pods,
    sanitize=_sanitize,
)
