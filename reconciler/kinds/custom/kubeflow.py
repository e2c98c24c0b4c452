"""Training jobs of Kubeflow: sets of pods that run together or not at all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from reconciler.api.clusters import Health, RunOutcome
from reconciler.api.content import JsonObject, dig
from reconciler.api.demand import Component, Demand, DependencyRef
from reconciler.kinds.body_fields import condition, count, mapping, prune_server_fields, text
from reconciler.kinds.interpreter import Interpreter
from reconciler.kinds.pod_template import PodTemplate, as_dependencies, pod_references
from reconciler.kinds.status_conditions import outcome_by_condition

_GROUP: Final = "kubeflow.org"

REPLICA_SPECS: Final = {
    "MPIJob": "mpiReplicaSpecs",
    "PaddleJob": "paddleReplicaSpecs",
    "PyTorchJob": "pytorchReplicaSpecs",
    "TFJob": "tfReplicaSpecs",
    "XGBoostJob": "xgbReplicaSpecs",
}
"""The field of each kind that maps a role (`Master`, `Worker`) to its replicas and pod template."""


def _roles(body: JsonObject) -> Iterator[tuple[str, Mapping[str, Any], PodTemplate]]:
    field = REPLICA_SPECS.get(text(body.get("kind")), "")
    for role, given in sorted(mapping(dig(body, "spec", field)).items()):
        if isinstance(given, Mapping):
            yield role, given, PodTemplate(("spec", field, role, "template"))


def _demand(body: JsonObject) -> Demand:
    """One component a role. The set is never divided: its pods find each other only within one cluster.

    Source: "Application distribution overview", multi-cluster gang scheduling; Karmada: components of training jobs.
    """
    components = tuple(
        Component(name=role, replicas=count(given.get("replicas"), 1), shape=template.shape(body))
        for role, given, template in _roles(body)
    )
    total = sum(component.replicas for component in components)
    return Demand(replicas=total, components=components, is_divisible=False)


def _dependencies(body: JsonObject) -> tuple[DependencyRef, ...]:
    mentions = (
        mention
        for _, _, template in _roles(body)
        for mention in pod_references(template.spec(body), (*template.path, "spec"))
    )
    return as_dependencies(mentions, body)


def _pod_template(body: JsonObject) -> Mapping[str, Any] | None:
    """Return the templates of all roles: the set counts as another one when they change."""
    roles = {role: template.of(body) for role, _, template in _roles(body)}
    return roles or None


def _health(live: JsonObject) -> Health:
    """Source: Karmada: a training job that has failed is unhealthy, one that runs or has succeeded healthy."""
    match _outcome(live):
        case RunOutcome.SUCCEEDED:
            return Health.HEALTHY
        case RunOutcome.FAILED:
            return Health.UNHEALTHY
    is_restarting = condition(live, "Restarting").get("status") == "True"
    is_running = condition(live, "Running").get("status") == "True"
    return Health.HEALTHY if is_running and not is_restarting else Health.PROGRESSING


def _outcome(live: JsonObject) -> RunOutcome:
    return outcome_by_condition(live, {"Failed": RunOutcome.FAILED, "Succeeded": RunOutcome.SUCCEEDED})


def _pods_needed(live: JsonObject) -> int:
    """Return all of its pods; for an elastic set the minimum with which it goes on."""
    total = _demand(live).replicas or 1
    return min(total, count(dig(live, "spec", "elasticPolicy", "minReplicas"), total))


def _sanitize(body: JsonObject) -> JsonObject:
    pruned = prune_server_fields(body)
    for _, _, template in _roles(pruned):
        pruned = template.prune(pruned)
    return pruned


KUBEFLOW_JOB = Interpreter(
    kinds=tuple((_GROUP, kind) for kind in sorted(REPLICA_SPECS)),
    demand=_demand,
    dependencies=_dependencies,
    images=lambda body: tuple(image for _, _, template in _roles(body) for image in template.images(body)),
    containers=lambda body: tuple(steps for _, _, template in _roles(body) for steps in template.containers(body)),
    pod_template=_pod_template,
    health=_health,
    outcome=_outcome,
    pods_needed=_pods_needed,
    sanitize=_sanitize,
)
