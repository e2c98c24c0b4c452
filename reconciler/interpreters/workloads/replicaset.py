"""ReplicaSet."""

from __future__ import annotations

from reconciler.interpreters.base import Interpreter
from reconciler.interpreters.pods.template import SPEC_TEMPLATE
from reconciler.interpreters.reading import count, is_observed, mapping
from reconciler.interpreters.replicas import REPLICAS, available_replicas, replicas_of, with_replicas
from reconciler.interpreters.server_fields import prune_server_fields
from reconciler.model.demand import Demand
from reconciler.model.observation import Health
from reconciler.model.tree import JsonObject


def _demand(body: JsonObject) -> Demand:
    return Demand(replicas=replicas_of(body), shape=SPEC_TEMPLATE.shape(body))


def _health(live: JsonObject) -> Health:
    """Source: Karmada: health of a ReplicaSet: every replica is available."""
    if not is_observed(live):
        return Health.PROGRESSING
    available = count(mapping(live.get("status")).get("availableReplicas"), 0)
    return Health.HEALTHY if available >= replicas_of(live) else Health.UNHEALTHY


def _sanitize(body: JsonObject) -> JsonObject:
    return SPEC_TEMPLATE.prune(prune_server_fields(body))


INTERPRETER = Interpreter(
    kinds=(("apps", "ReplicaSet"),),
    demand=_demand,
    with_replicas=with_replicas,
    replicas_path=REPLICAS,
    dependencies=SPEC_TEMPLATE.dependencies,
    images=SPEC_TEMPLATE.images,
    containers=SPEC_TEMPLATE.containers,
    pod_template=SPEC_TEMPLATE.of,
    health=_health,
    available=available_replicas,
    sanitize=_sanitize,
)
