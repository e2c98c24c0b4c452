"""The daemon's vital signs as Prometheus metrics. The rows below are the reference (`docs/reference/metrics.md`).

Labels are cluster, action and the like, never names of objects: the number of series grows with the clusters alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector

from reconciler import __version__
from reconciler.api.rollout_progress import Phase, StageKind
from reconciler.clock import epoch_s
from reconciler.containment import INTERNAL_ERROR
from reconciler.controller.vitals.service_vitals import Histograms, Vitals
from reconciler.state import HealthWord, Lag

PREFIX: Final = "fleet_reconciler_"
CONTENT_TYPE: Final = CONTENT_TYPE_PLAIN_0_0_4

Sample = tuple[Any, ...]
"""Label values, and then a number, or of a histogram its buckets and the sum of seconds."""
_FAMILIES: Final[Mapping[str, Any]] = {
    "counter": CounterMetricFamily, "gauge": GaugeMetricFamily, "histogram": HistogramMetricFamily,
}  # fmt: skip


class MetricRow(Struct, frozen=True):
    """One metric with its samples of now. A counter's name ends in `_total`; a histogram's differs from the others."""

    kind: str
    name: str
    text: str
    samples: Iterable[Sample]
    labels: tuple[str, ...] = ()


def _gauge(name: str, text: str, samples: Iterable[Sample], *labels: str) -> MetricRow:
    return MetricRow("gauge", name, text, samples, labels)


def _counter(name: str, text: str, samples: Iterable[Sample], *labels: str) -> MetricRow:
    return MetricRow("counter", name, text, samples, labels)


def _histogram(name: str, text: str, values: Histograms, *labels: str) -> MetricRow:
    samples = ((of, list(values.buckets(of)), each.sum) for of, each in sorted(values.distributions.items()))
    return MetricRow("histogram", name, text, samples, labels)


def _one(value: float | None) -> list[Sample]:
    return [] if value is None else [((), float(value))]


def _each(values: Iterable[tuple[str, float | None]]) -> list[Sample]:
    return [((name,), float(value)) for name, value in values if value is not None]


def _moment(text: str) -> float | None:
    try:
        return epoch_s(text)
    except ValueError:  # never, or not a time: no sample is better than a wrong one
        return None


def _by_state(counts: Mapping[str, Mapping[Any, int]], states: Iterable[StrEnum]) -> Iterator[Sample]:
    for name, by_state in sorted(counts.items()):
        # Zeros too: an alert on `failed > 0` needs the series before the first failure.
        for state in states:
            yield (name, str(state)), float(by_state.get(state, 0))


def _of_process(vitals: Vitals, now_s: float) -> tuple[MetricRow, ...]:
    problems, severities = vitals.snapshot.problems, Counter(str(one.severity) for one in vitals.snapshot.problems)
    return (
        _gauge("build_info", "1, with the version that runs.", _each([(__version__, 1.0)]), "version"),
        _gauge("start_time_seconds", "When the process began, as Unix time.", _one(_moment(vitals.started_at))),
        _gauge("ready", "1 when the store is loaded and the journal can be written.",
               _one(vitals.is_ready and not vitals.journal_error)),
        _gauge("leader", "1 while this process acts for its fleet, 0 while it stands by.", _one(vitals.leads)),
        _gauge("heartbeat_age_seconds", "Seconds since the control loop last made progress; the watchdog acts on it.",
               _one(max(0.0, now_s - vitals.heartbeat_s))),
        _gauge("source_commit_info", "1, with the revision of the store that is in force.",
               _each([(vitals.revision, 1.0 if vitals.revision else None)]), "revision"),
        _gauge("source_up", "1 when the store can be read and its newest revision is not refused.",
               _one(not vitals.source_error and bool(vitals.source_read_at))),
        _gauge("source_last_read_timestamp_seconds", "When the store was last read with success, as Unix time.",
               _one(_moment(vitals.source_read_at))),
        _gauge("store_problems", "Problems of the store that is in force.",
               _each((severity, severities[severity]) for severity in ("error", "warning", "hint")), "severity"),
        _gauge("internal_errors",
               "Files, objects, copies and changes that are left as they are for a fault of the program.",
               _one(sum(one.code == INTERNAL_ERROR for one in problems))),
        _counter("rounds_total", "Rounds of the control loop.", _one(vitals.rounds)),
        _gauge("last_round_timestamp_seconds", "When the last round ended, as Unix time.",
               _one(_moment(vitals.snapshot.last_round_at))),
        _gauge("round_duration_seconds", "Seconds that each phase of the last round took.",
               _each(sorted(vitals.durations_s.items())), "phase"),
    )  # fmt: skip


def _of_clusters(vitals: Vitals) -> tuple[MetricRow, ...]:
    clusters = sorted(vitals.snapshot.clusters.items())
    # None of a cluster that left the store: no alert may wait for it.
    return (
        _gauge("cluster_up", "1 when the cluster answered the last time.",
               _each((name, None if cluster.is_left else cluster.is_up) for name, cluster in clusters), "cluster"),
        _gauge("kinds_unread",
               "Kinds that cannot be read in the cluster while it answers: nothing of them is changed there.",
               _each((name, len(cluster.unread_kinds)) for name, cluster in clusters), "cluster"),
        _gauge("last_success_timestamp_seconds", "When the cluster was last read completely, as Unix time.",
               _each((name, _moment(cluster.last_contact)) for name, cluster in clusters), "cluster"),
        _gauge("objects", "Objects of the fleet in the cluster by state: synced, pending, held, failed, fought "
               "(somebody keeps undoing our changes), refused (an object that is not ours is in the way), frozen (a "
               "broken file keeps it as it is), unknown (not read), left (the store has no document of the cluster).",
               _by_state({name: cluster.syncs for name, cluster in clusters}, Lag), "cluster", "state"),
        _gauge("object_health",
               "Objects of the fleet in the cluster by health: Healthy, Progressing, Degraded, Missing, Unknown.",
               _by_state({name: cluster.healths for name, cluster in clusters}, HealthWord), "cluster", "health"),
        _counter("fights_total", "Fights that were found: somebody kept undoing our changes, and we stepped back.",
                 _each((name, vitals.fights[name]) for name, _ in clusters), "cluster"),
    )  # fmt: skip


def _of_changes(vitals: Vitals) -> tuple[MetricRow, ...]:
    names, step = sorted(vitals.snapshot.clusters), vitals.snapshot.step
    return (
        _counter("changes_total", "Changes made in the cluster.", sorted(vitals.changes.items()),
                 "cluster", "action", "result"),
        _gauge("changes_held", "Changes that wait, by kind of reason: guard, move, suspended, other.",
               _each(sorted(vitals.snapshot.held.items())), "reason"),
        _counter("drift_total", "Edits by other hands that were found.",
                 _each((name, vitals.drifts[name]) for name in names), "cluster"),
        _counter("watches_ended_early_total", "Watches that ended before their time, or failed.",
                 _each((name, vitals.short_watches[name]) for name in names), "cluster"),
        _gauge("clusters", "Clusters that the store has.", _one(step.clusters if step is not None else None)),
        _gauge("clusters_in_step", "Clusters in which every object is as the revision in force says.",
               _one(step.in_step if step is not None else None)),
        _gauge("commit_waiting_since_timestamp_seconds",
               "When the revision in force was seen, as Unix time, while not all was in step with it yet and more than "
               "a Rollout holds it up; else 0.",
               # Prometheus computes the span.
               _one(None if step is None else 0.0 if step.is_settled or vitals.snapshot.is_in_step_reported
                    else _moment(vitals.snapshot.revision_active_since))),
    )  # fmt: skip


def _of_receivers(vitals: Vitals) -> tuple[MetricRow, ...]:
    webhooks, statuses = sorted(vitals.webhooks.items()), vitals.commit_status
    to = {"told": statuses.delivered, "failed": statuses.failed, "given-up": statuses.dropped} if statuses else {}
    return (
        _counter("webhook_delivered_total", "Events that the receiver of a webhook took.",
                 _each((name, to.delivered) for name, to in webhooks), "receiver"),
        _counter("webhook_failed_total", "Failed attempts to deliver to a receiver.",
                 _each((name, to.failed) for name, to in webhooks), "receiver"),
        _counter("webhook_dropped_total", "Events that were given up: too old, or refused again and again.",
                 _each((name, to.dropped) for name, to in webhooks), "receiver"),
        _gauge("webhook_pending", "Events that wait for delivery.",
               _each((name, to.pending) for name, to in webhooks), "receiver"),
        _gauge("webhook_oldest_timestamp_seconds",
               "When the oldest event that waits for delivery happened, as Unix time; 0: none waits.",
               _each((name, _moment(to.oldest_at) or 0.0) for name, to in webhooks), "receiver"),
        _gauge("webhook_gone",
               "1 when the receiver said that it is gone for good (410); nothing is sent until the next start.",
               _each((name, to.is_gone) for name, to in webhooks), "receiver"),
        _counter("commit_statuses_total", "Statuses of commits at the forge: told, failed (attempts), given-up.",
                 _each(to.items()), "result"),
    )  # fmt: skip


def _of_rollouts(vitals: Vitals) -> tuple[MetricRow, ...]:
    return (
        _gauge("rollout_stage_state", "1 for what each stage of a Rollout does: done, running, waits-for-stage, "
               "waits-for-time, waits-for-approval, waits-for-window, paused, pinned, skipped, unclear; 0 for the "
               "others.", (
                   # Zeros too, since an alert needs the series before it fires.
                   ((rollout.rollout, stage.name, str(kind)), float(kind is stage.state.kind))
                   for rollout in vitals.snapshot.rollouts for stage in rollout.stages for kind in StageKind
               ), "rollout", "stage", "state"),
        _gauge("rollout_clusters", "Clusters of a Rollout by how they are beside its revision: behind, running, "
               "done, failed, pinned, frozen.", (
                   ((rollout.rollout, str(phase)), float(sum(one.phase is phase for one in rollout.clusters.values())))
                   for rollout in vitals.snapshot.rollouts for phase in Phase
               ), "rollout", "phase"),
        _gauge("rollout_done", "1 when the revision of a Rollout is completed in every stage.",
               _each((rollout.rollout, rollout.is_done) for rollout in vitals.snapshot.rollouts), "rollout"),
        _gauge("suspended_scopes", "Scopes that are suspended now.", _one(len(vitals.snapshot.suspended))),
    )  # fmt: skip


def metrics(vitals: Vitals, now_s: float) -> tuple[MetricRow, ...]:
    """Return every metric that is a number, in the order in which it is shown. `now_s`: monotonic."""
    of_clusters = (*_of_clusters(vitals), *_of_changes(vitals))
    return (*_of_process(vitals, now_s), *of_clusters, *_of_receivers(vitals), *_of_rollouts(vitals))


def histograms(vitals: Vitals) -> tuple[MetricRow, ...]:
    """Return every histogram of seconds, in the order in which it is shown."""
    vitals.requests.keep(frozenset(vitals.snapshot.clusters))
    return (
        _histogram("round_phase_seconds", "Seconds of each phase of the rounds.", vitals.phases.histograms, "phase"),
        _histogram("request_seconds", "Seconds until an API server began to answer.", vitals.requests,
                   "cluster", "verb", "code"),
        _histogram("commit_in_step_seconds",
                   "Seconds from when a revision was seen until all clusters were in step with it.", vitals.in_step_s),
    )  # fmt: skip


class VitalsCollector(Collector):
    """Reads the vital signs when it is asked, so that nothing has to be counted twice."""

    def __init__(self, vitals: Vitals, now_s: float) -> None:
        self._vitals, self._now_s = vitals, now_s

    def collect(self) -> Iterator[Metric]:
        """One family a row of the tables."""
        for row in (*metrics(self._vitals, self._now_s), *histograms(self._vitals)):
            family = _FAMILIES[row.kind](PREFIX + row.name, row.text, labels=row.labels)
            for labels, *values in row.samples:
                family.add_metric(list(labels), *values)
            yield family


def exposition(vitals: Vitals, now_s: float) -> bytes:
    """Return the text that Prometheus reads. `now_s`: monotonic."""
    return generate_latest(VitalsCollector(vitals, now_s))
