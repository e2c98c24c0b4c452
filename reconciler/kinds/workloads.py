"""Kinds that run until they are stopped: Deployment, ReplicaSet, StatefulSet, DaemonSet, Pod."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from reconciler.api.clusters import Health, RunOutcome
from reconciler.api.content import JsonObject, dig, with_value
from reconciler.api.demand import Demand
from reconciler.kinds.body_fields import (
    REPLICAS,
    condition,
    count,
    has_report,
    is_observed,
    mapping,
    mappings,
    prune_server_fields,
    replicas_of,
    status_count,
    text,
    with_count,
)
from reconciler.kinds.pod_template import PodKind
from reconciler.kinds.references import PodReference


class ScaledKind(PodKind):
    """Kinds with spec.replicas and a pod template."""

    replicas_path = REPLICAS

    def demand(self, body: JsonObject) -> Demand:
        return Demand(replicas=replicas_of(body), shape=self.shape(body))

    def with_replicas(self, body: JsonObject, replicas: int) -> JsonObject:
        return with_count(body, REPLICAS, replicas)

    def available(self, live: JsonObject) -> int | None:
        return status_count(live, "availableReplicas")


class Deployment(ScaledKind):
    def health(self, live: JsonObject) -> Health:
        """Healthy when every replica is updated and available; a rollout within its deadline is Progressing.

        Source: Karmada: health of a Deployment; design#rollouts: not unhealthy within progressDeadlineSeconds. A
        finished rollout (NewReplicaSetAvailable) that lost pods since is unhealthy at once. While old pods make up the
        number (Karmada: healthy) it is Progressing, past the deadline too: a failover would take away serving pods.
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


class ReplicaSet(ScaledKind):
    def health(self, live: JsonObject) -> Health:
        """Source: Karmada: health of a ReplicaSet: every replica is available."""
        if not is_observed(live):
            return Health.PROGRESSING
        available = count(mapping(live.get("status")).get("availableReplicas"), 0)
        return Health.HEALTHY if available >= replicas_of(live) else Health.UNHEALTHY


class StatefulSet(ScaledKind):
    def references(self, body: JsonObject) -> Iterator[PodReference]:
        """Source: Karmada: a claim that volumeClaimTemplates makes is not a dependency."""
        templates = mappings(dig(body, "spec", "volumeClaimTemplates"))
        claims = {("PersistentVolumeClaim", text(dig(claim, "metadata", "name"))) for _, claim in templates}
        return (ref for ref in super().references(body) if (ref.kind, ref.name) not in claims)

    def health(self, live: JsonObject) -> Health:
        """Healthy if every replica is updated and available.

        Source: Karmada: health of a StatefulSet. Two differences: replicas that the update strategy leaves alone on
        purpose (partition, OnDelete) need not be updated; and a rollout that takes its pods one by one while the others
        serve is Progressing, since a StatefulSet has no progressDeadlineSeconds to tell it from a failure.
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

    def available(self, live: JsonObject) -> int | None:
        return status_count(live, "availableReplicas", "readyReplicas")

    def lacking_pods(self, live: JsonObject) -> int:
        """Source: Kubernetes, StatefulSetStatus: `replicas` is the number of pods that were made."""
        return replicas_of(live) - count(mapping(live.get("status")).get("replicas"), 0) if has_report(live) else 0

    def sanitize(self, body: JsonObject) -> JsonObject:
        pruned = super().sanitize(body)
        claims = dig(pruned, "spec", "volumeClaimTemplates")
        if not isinstance(claims, list):
            return pruned
        clean = [prune_server_fields(claim) if isinstance(claim, Mapping) else claim for claim in claims]
        is_same = all(one is other for one, other in zip(clean, claims, strict=True))
        return pruned if is_same else with_value(pruned, ("spec", "volumeClaimTemplates"), clean)


def _left_alone(live: JsonObject, replicas: int) -> int:
    """Return the number of replicas that the update strategy keeps at the old revision."""
    strategy = mapping(dig(live, "spec", "updateStrategy"))
    if strategy.get("type") == "OnDelete":
        return replicas
    return count(dig(strategy, "rollingUpdate", "partition"), 0)


class DaemonSet(PodKind):
    def health(self, live: JsonObject) -> Health:
        """Healthy when the pod of every node is updated and available.

        Source: Karmada: health of a DaemonSet. A rollout while all pods but one serve is Progressing, as is one that
        the update strategy OnDelete leaves to people Healthy.
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

    def available(self, live: JsonObject) -> int | None:
        return status_count(live, "numberAvailable")

    def lacking_pods(self, live: JsonObject) -> int:
        """Source: Kubernetes, DaemonSetStatus: nodes that should have a pod and have none."""
        status = mapping(live.get("status"))
        return count(status.get("desiredNumberScheduled"), 0) - count(status.get("currentNumberScheduled"), 0)


class BarePod(PodKind):
    """The Pod: its path is empty."""

    def demand(self, body: JsonObject) -> Demand:
        """Source: Karmada: a Pod is one replica that cannot be revised."""
        return Demand(replicas=1, shape=self.shape(body), is_divisible=False)

    def health(self, live: JsonObject) -> Health:
        """Source: Karmada: a Pod is healthy when it has succeeded, or runs and is Ready."""
        phase = dig(live, "status", "phase")
        if phase is None:
            return Health.PROGRESSING
        is_ready = phase == "Running" and condition(live, "Ready").get("status") == "True"
        return Health.HEALTHY if is_ready or phase == "Succeeded" else Health.UNHEALTHY

    def outcome(self, live: JsonObject) -> RunOutcome:
        outcomes = {"Succeeded": RunOutcome.SUCCEEDED, "Failed": RunOutcome.FAILED}
        return outcomes.get(text(dig(live, "status", "phase")), RunOutcome.RUNS)
