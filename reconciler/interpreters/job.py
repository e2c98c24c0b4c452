"""Job."""

from __future__ import annotations

from typing import Final

from reconciler.interpreters.base import Interpreter
from reconciler.interpreters.pod_template import SPEC_TEMPLATE
from reconciler.interpreters.reading import condition, count
from reconciler.interpreters.replicas import with_count
from reconciler.interpreters.server_fields import prune_server_fields, without_entries
from reconciler.model.demand import Demand
from reconciler.model.observation import Health
from reconciler.model.tree import JsonObject, dig, without

PARALLELISM: Final = ("spec", "parallelism")
COMPLETIONS: Final = ("spec", "completions")

_UID_LABELS: Final = ("controller-uid", "batch.kubernetes.io/controller-uid")
_NAME_LABELS: Final = ("job-name", "batch.kubernetes.io/job-name")


def _demand(body: JsonObject) -> Demand:
    """Source: Karmada: replicas of a Job are its parallelism, at most its completions. Both count 1 when missing."""
    parallelism = count(dig(body, *PARALLELISM), 1)
    completions = dig(body, *COMPLETIONS)
    return Demand(replicas=min(parallelism, count(completions, parallelism)), shape=SPEC_TEMPLATE.shape(body))


def _with_parallelism(body: JsonObject, replicas: int) -> JsonObject:
    return with_count(body, PARALLELISM, replicas)


def _health(live: JsonObject) -> Health:
    """A Job that failed for good is Unhealthy (Karmada has no rule, so a failed Job never moves)."""
    failed = condition(live, "Failed").get("status") == "True"
    return Health.UNHEALTHY if failed else Health.HEALTHY


def _sanitize(body: JsonObject) -> JsonObject:
    """Without the labels that the Job controller makes and without ttlSecondsAfterFinished.

    Source: Karmada: pruned fields of a Job; design: a finished Job is recorded and not created again, so a member must
    not remove it by itself.
    """
    pruned = SPEC_TEMPLATE.prune(without(prune_server_fields(body), ("spec", "ttlSecondsAfterFinished")))
    if dig(pruned, "spec", "manualSelector") is True:
        return pruned
    pruned = without_entries(pruned, ("spec", "selector", "matchLabels"), _UID_LABELS)
    if dig(pruned, "spec", "selector") == {}:
        pruned = without(pruned, ("spec", "selector"))
    return without_entries(pruned, ("spec", "template", "metadata", "labels"), _UID_LABELS + _NAME_LABELS)


INTERPRETER = Interpreter(
    kinds=(("batch", "Job"),),
    demand=_demand,
    with_replicas=_with_parallelism,
    replicas_path=PARALLELISM,
    dependencies=SPEC_TEMPLATE.dependencies,
    images=SPEC_TEMPLATE.images,
    containers=SPEC_TEMPLATE.containers,
    pod_template=SPEC_TEMPLATE.of,
    health=_health,
    sanitize=_sanitize,
)
