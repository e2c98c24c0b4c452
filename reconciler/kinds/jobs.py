"""Job and CronJob."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from reconciler.api.clusters import Health, RunOutcome
from reconciler.api.content import JsonObject, dig, with_value, without
from reconciler.api.demand import Demand
from reconciler.kinds.body_fields import condition, count, mapping, outcome_by_condition, with_count, without_entries
from reconciler.kinds.pod_template import PodKind

PARALLELISM: Final = ("spec", "parallelism")
COMPLETIONS: Final = ("spec", "completions")
_SUSPEND: Final = ("spec", "suspend")

_BACK_OFF: Final = "BackoffLimitExceeded"
_BACK_OFF_LIMIT: Final = 6
"""The API server's default for backoffLimit."""


def _replicas(body: JsonObject) -> int:
    """Source: Karmada: replicas of a Job are its parallelism, at most its completions. Both count 1 when missing."""
    parallelism = count(dig(body, *PARALLELISM), 1)
    return min(parallelism, count(dig(body, *COMPLETIONS), parallelism))


def is_single_run(body: JsonObject) -> bool:
    """Return whether the Job sets neither parallelism nor completions: one of each.

    Source: Kubernetes, parallel execution for Jobs: both default to 1, whereas parallelism alone makes a work queue.
    """
    return dig(body, *PARALLELISM) is None and dig(body, *COMPLETIONS) is None


def pods_wanted(body: JsonObject) -> int:
    """Pods that should run at once: no more than the completions that are left.

    Source: Kubernetes, parallel execution for Jobs: of a work queue no more are made once one has succeeded.
    """
    if dig(body, *_SUSPEND) is True:
        return 0
    replicas = _replicas(body)
    completions, succeeded = count(dig(body, *COMPLETIONS), -1), count(dig(body, "status", "succeeded"), 0)
    if completions < 0:
        return 0 if succeeded else replicas
    return max(0, min(replicas, completions - succeeded))


def with_labels_of_its_pods(body: JsonObject) -> JsonObject:
    """Return the body with the labels of its pod template if it has none.

    Source: Kubernetes, pkg/apis/batch/v1: SetDefaults_Job, and pkg/apis/core/v1: SetDefaults_ReplicationController.
    What we send has a label of ours, so that the API server would see no reason to add any.
    """
    labels = dig(body, "spec", "template", "metadata", "labels")
    if dig(body, "metadata", "labels") or not labels or not isinstance(labels, (dict, Mapping)):
        return body
    return with_value(body, ("metadata", "labels"), labels)


class Job(PodKind):
    replicas_path = PARALLELISM

    def demand(self, body: JsonObject) -> Demand:
        return Demand(replicas=_replicas(body), shape=self.shape(body))

    def with_replicas(self, body: JsonObject, replicas: int) -> JsonObject:
        if is_single_run(body):
            return body if replicas == 1 else with_value(with_value(body, PARALLELISM, replicas), COMPLETIONS, 1)
        return with_count(body, PARALLELISM, replicas)

    def health(self, live: JsonObject) -> Health:
        """Healthy while all pods that it wants now are ready, and once complete; Unhealthy if failed; else Progressing.

        Source: kstatus, which does not look at ready pods, however; Karmada has no rule.
        """
        match self.outcome(live):
            case RunOutcome.SUCCEEDED:
                return Health.HEALTHY
            case RunOutcome.FAILED:
                return Health.UNHEALTHY
        status = mapping(live.get("status"))
        active = count(status.get("active"), 0)
        # API servers before 1.24 do not count those that are ready.
        is_ready = 0 < active <= count(status.get("ready"), active)
        return Health.HEALTHY if is_ready and not self.lacking_pods(live) else Health.PROGRESSING

    def why(self, live: JsonObject) -> str:
        lacking = self.lacking_pods(live)
        return f"{lacking} of its {pods_wanted(live)} pods are not there yet" if lacking else ""

    def lacking_pods(self, live: JsonObject) -> int:
        """Pods that it wants, less those that are active or on their way out, and the indexes that failed for good."""
        status = mapping(live.get("status"))
        if self.outcome(live) is not RunOutcome.RUNS or "startTime" not in status or status.get("failedIndexes"):
            return 0
        return max(0, pods_wanted(live) - count(status.get("active"), 0) - count(status.get("terminating"), 0))

    def outcome(self, live: JsonObject) -> RunOutcome:
        return outcome_by_condition(live, {"Complete": RunOutcome.SUCCEEDED, "Failed": RunOutcome.FAILED})

    def fails_by_itself(self, live: JsonObject, own: int, disrupted: int) -> bool:
        """Return whether its own failures, or a limit that it sets itself, ended it.

        Source: Kubernetes, "Handling Pod and container failures": a disrupted pod counts for backoffLimit like one with
        a failed container. Under restartPolicy OnFailure the pods go when the limit is reached, so that only a
        disrupted pod proves a disruption; under Never failed pods stay, unless they went with their node.
        """
        if condition(live, "Failed").get("reason", _BACK_OFF) != _BACK_OFF:
            return True
        if dig(live, "spec", "template", "spec", "restartPolicy") == "OnFailure":
            return not disrupted
        return own > count(dig(live, "spec", "backoffLimit"), _BACK_OFF_LIMIT)

    def sanitize(self, body: JsonObject) -> JsonObject:
        """Without ttlSecondsAfterFinished, and with the labels that an API server gives it.

        Source: design#jobs: a finished Job is recorded and not created again, so a member must not remove it by itself.
        """
        pruned = without(super().sanitize(body), ("spec", "ttlSecondsAfterFinished"))
        is_empty = dig(pruned, "spec", "manualSelector") is not True and dig(pruned, "spec", "selector") == {}
        return with_labels_of_its_pods(without(pruned, ("spec", "selector")) if is_empty else pruned)


class CronJob(PodKind):
    """The CronJob: its pods are those of the Jobs that it makes."""

    def sanitize(self, body: JsonObject) -> JsonObject:
        return without_entries(super().sanitize(body), ("spec", "jobTemplate", "metadata"), ("creationTimestamp",))
