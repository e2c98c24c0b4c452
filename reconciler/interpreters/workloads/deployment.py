"""Deployment."""

from __future__ import annotations

from reconciler.interpreters.base import Interpreter
from reconciler.interpreters.pods.template import SPEC_TEMPLATE
from reconciler.interpreters.reading import condition, count, is_observed, mapping
from reconciler.interpreters.replicas import REPLICAS, available_replicas, replicas_of, with_replicas
from reconciler.interpreters.server_fields import prune_server_fields
from reconciler.model.demand import Demand
from reconciler.model.observation import Health
from reconciler.model.tree import JsonObject


def _demand(body: JsonObject) -> Demand:
    return Demand(replicas=replicas_of(body), shape=SPEC_TEMPLATE.shape(body))


def _health(live: JsonObject) -> Health:
    """Healthy when every replica is updated and available; a rollout within its deadline is Progressing.

    Source: Karmada: health of a Deployment; design#rollouts: not unhealthy within progressDeadlineSeconds. A finished
    rollout (NewReplicaSetAvailable) that lost pods since is unhealthy at once. While old pods make up the number
    (Karmada: healthy) it is Progressing, past the deadline too: a failover would take away serving pods.
    """
    if not is_observed(live):
        return Health.PROGRESSING
    status = mapping(live.get("status"))
    updated, available = count(status.get("updatedReplicas"), 0), count(status.get("availableReplicas"), 0)
    all_updated = updated >= replicas_of(live)
    if all_updated and available >= updated:
        return Health.HEALTHY if count(status.get("replicas"), 0) <= updated else Health.PROGRESSING
    rollout = condition(live, "Progressing")
    if rollout.get("status") == "False":
        return Health.UNHEALTHY
    has_ended = not rollout or rollout.get("reason") == "NewReplicaSetAvailable"
    return Health.UNHEALTHY if all_updated and has_ended else Health.PROGRESSING


def _sanitize(body: JsonObject) -> JsonObject:
    return SPEC_TEMPLATE.prune(prune_server_fields(body))


INTERPRETER = Interpreter(
    kinds=(("apps", "Deployment"),),
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
