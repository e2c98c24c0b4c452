"""DaemonSet: it has no replicas to divide; its size is the number of nodes."""

from __future__ import annotations

from reconciler.interpreters.base import Interpreter
from reconciler.interpreters.pods.template import SPEC_TEMPLATE
from reconciler.interpreters.reading import count, is_observed, mapping, status_count
from reconciler.interpreters.server_fields import prune_server_fields
from reconciler.model.observation import Health
from reconciler.model.tree import JsonObject, dig


def _health(live: JsonObject) -> Health:
    """Healthy when the pod of every node is updated and available.

    Source: Karmada: health of a DaemonSet. A rollout while all pods but one serve is Progressing, as is one that the
    update strategy OnDelete leaves to people Healthy.
    """
    if not is_observed(live):
        return Health.PROGRESSING
    status = mapping(live.get("status"))
    desired = count(status.get("desiredNumberScheduled"), 0)
    updated, available = count(status.get("updatedNumberScheduled"), 0), count(status.get("numberAvailable"), 0)
    is_updated = updated >= desired or dig(live, "spec", "updateStrategy", "type") == "OnDelete"
    if is_updated and available >= desired:
        return Health.HEALTHY
    return Health.PROGRESSING if not is_updated and available >= max(1, desired - 1) else Health.UNHEALTHY


def _available(live: JsonObject) -> int | None:
    return status_count(live, "numberAvailable")


def _lacking_pods(live: JsonObject) -> int:
    """Source: Kubernetes, DaemonSetStatus: nodes that should have a pod and have none."""
    status = mapping(live.get("status"))
    return count(status.get("desiredNumberScheduled"), 0) - count(status.get("currentNumberScheduled"), 0)


def _sanitize(body: JsonObject) -> JsonObject:
    return SPEC_TEMPLATE.prune(prune_server_fields(body))


INTERPRETER = Interpreter(
    kinds=(("apps", "DaemonSet"),),
    dependencies=SPEC_TEMPLATE.dependencies,
    images=SPEC_TEMPLATE.images,
    containers=SPEC_TEMPLATE.containers,
    pod_template=SPEC_TEMPLATE.of,
    health=_health,
    available=_available,
    lacking_pods=_lacking_pods,
    sanitize=_sanitize,
)
