"""The daemon's vital signs as Prometheus metrics. The table below is the reference (`docs/reference/metrics.md`).

Labels are cluster, action and the like, never names of objects: the number of series grows with the clusters alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector

from reconciler import __version__
from reconciler.clock import epoch_s
from reconciler.containment import INTERNAL_ERROR
from reconciler.controller.vitals.board import Histograms
from reconciler.controller.vitals.service_vitals import ClusterVitals, Vitals
from reconciler.notify.post import Deliveries
from reconciler.server.vital_signs import Sample, clusters_by_phase, rollouts_done, stage_states
from reconciler.state import HealthWord, Lag

PREFIX: Final = "fleet_reconciler_"
CONTENT_TYPE: Final = CONTENT_TYPE_PLAIN_0_0_4
_STATES: Final = tuple(map(str, Lag))
_HEALTHS: Final = tuple(map(str, HealthWord))


class MetricRow(Struct, frozen=True, kw_only=True):
    """One metric: `read` gives label values and numbers. A counter's name ends in `_total`."""

    name: str
    kind: str
    text: str
    read: Callable[[Vitals, float], Iterable[Sample]]
    labels: tuple[str, ...] = ()


def _one(value: float | None) -> Iterator[Sample]:
    if value is not None:
        yield (), float(value)


def _moment(text: str) -> float | None:
    try:
        return epoch_s(text)
    except ValueError:  # never, or not a time: no sample is better than a wrong one
        return None


def _per_cluster(read: Callable[[Vitals, str], float | None]) -> Callable[[Vitals, float], Iterator[Sample]]:
    def samples(vitals: Vitals, now_s: float) -> Iterator[Sample]:
        for name in sorted(vitals.clusters):
            value = read(vitals, name)
            if value is not None:
                yield (name,), float(value)

    return samples


def _is_up(cluster: ClusterVitals) -> float | None:
    """Return 1 if a cluster is up, else 0; None if it left the store: no alert may wait for it."""
    return None if cluster.is_left else float(cluster.is_up)


def _by_state(
    read: Callable[[ClusterVitals], Mapping[str, int]], states: Sequence[str]
) -> Callable[[Vitals, float], Iterator[Sample]]:
    def samples(vitals: Vitals, now_s: float) -> Iterator[Sample]:
        for name, cluster in sorted(vitals.clusters.items()):
            # Zeros too: an alert on `failed > 0` needs the series before the first failure.
            for state in states:
                yield (name, state), float(read(cluster).get(state, 0))

    return samples


def _problems(vitals: Vitals, now_s: float) -> Iterator[Sample]:
    for severity in ("error", "warning", "hint"):
        yield (severity,), float(sum(str(problem.severity) == severity for problem in vitals.problems))


def _per_webhook(read: Callable[[Deliveries], float]) -> Callable[[Vitals, float], Iterator[Sample]]:
    def samples(vitals: Vitals, now_s: float) -> Iterator[Sample]:
        for name, deliveries in sorted(vitals.webhooks.items()):
            yield (name,), float(read(deliveries))

    return samples


def _statuses(vitals: Vitals, now_s: float) -> Iterator[Sample]:
    found = vitals.commit_status
    if found is not None:
        counts = {"told": found.delivered, "failed": found.failed, "given-up": found.dropped}
        yield from (((result,), float(count)) for result, count in counts.items())


def _lag(vitals: Vitals, now_s: float) -> Iterator[Sample]:
    """Return the time since which the active revision waits: Prometheus computes the span."""
    if vitals.step is None:
        return
    waits = not vitals.step.is_complete and not vitals.is_told_in_step
    since_s = _moment(vitals.revision_seen_at) if waits else 0.0
    yield from _one(since_s)


METRICS: Final[tuple[MetricRow, ...]] = (
    MetricRow(name="build_info", kind="gauge", labels=("version",), text="1, with the version that runs.",
              read=lambda vitals, now_s: [((__version__,), 1.0)]),
    MetricRow(name="start_time_seconds", kind="gauge", text="When the process began, as Unix time.",
              read=lambda vitals, now_s: _one(_moment(vitals.started_at))),
    MetricRow(name="ready", kind="gauge", text="1 when the store is loaded and the journal can be written.",
              read=lambda vitals, now_s: _one(float(vitals.is_ready and not vitals.journal_error))),
    MetricRow(name="leader", kind="gauge", text="1 while this process acts for its fleet, 0 while it stands by.",
              read=lambda vitals, now_s: _one(float(vitals.leads))),
    MetricRow(name="heartbeat_age_seconds", kind="gauge",
              text="Seconds since the control loop last made progress; the watchdog acts on it.",
              read=lambda vitals, now_s: _one(max(0.0, now_s - vitals.heartbeat_s))),
    MetricRow(name="source_commit_info", kind="gauge", labels=("revision",),
              text="1, with the revision of the store that is in force.",
              read=lambda vitals, now_s: [((vitals.revision,), 1.0)] if vitals.revision else []),
    MetricRow(name="source_up", kind="gauge",
              text="1 when the store can be read and its newest revision is not refused.",
              read=lambda vitals, now_s: _one(float(not vitals.source_error and bool(vitals.source_read_at)))),
    MetricRow(name="source_last_read_timestamp_seconds", kind="gauge",
              text="When the store was last read with success, as Unix time.",
              read=lambda vitals, now_s: _one(_moment(vitals.source_read_at))),
    MetricRow(name="store_problems", kind="gauge", labels=("severity",),
              text="Problems of the store that is in force.", read=_problems),
    MetricRow(name="internal_errors", kind="gauge",
              text="Files, objects, copies and changes that are left as they are for a fault of the program.",
              read=lambda vitals, now_s: _one(sum(found.code == INTERNAL_ERROR for found in vitals.problems))),
    MetricRow(name="rounds_total", kind="counter", text="Rounds of the control loop.",
              read=lambda vitals, now_s: _one(vitals.rounds)),
    MetricRow(name="last_round_timestamp_seconds", kind="gauge", text="When the last round ended, as Unix time.",
              read=lambda vitals, now_s: _one(_moment(vitals.last_round_at))),
    MetricRow(name="round_duration_seconds", kind="gauge", labels=("phase",),
              text="Seconds that each phase of the last round took.",
              read=lambda vitals, now_s: [((phase,), taken) for phase, taken in sorted(vitals.durations_s.items())]),
    MetricRow(name="cluster_up", kind="gauge", labels=("cluster",), text="1 when the cluster answered the last time.",
              read=_per_cluster(lambda vitals, name: _is_up(vitals.clusters[name]))),
    MetricRow(name="kinds_unread", kind="gauge", labels=("cluster",),
              text="Kinds that cannot be read in the cluster while it answers: nothing of them is changed there.",
              read=_per_cluster(lambda vitals, name: vitals.clusters[name].kinds_unread)),
    MetricRow(name="last_success_timestamp_seconds", kind="gauge", labels=("cluster",),
              text="When the cluster was last read completely, as Unix time.",
              read=_per_cluster(lambda vitals, name: _moment(vitals.clusters[name].last_success))),
    MetricRow(name="objects", kind="gauge", labels=("cluster", "state"),
              text="Objects of the fleet in the cluster by state: synced, pending, held, failed, fought (somebody "
              "keeps undoing our changes), refused (an object that is not ours is in the way), frozen (a broken file "
              "keeps it as it is), unknown (not read), left (the store has no document of the cluster).",
              read=_by_state(lambda cluster: cluster.objects, _STATES)),
    MetricRow(name="object_health", kind="gauge", labels=("cluster", "health"),
              text="Objects of the fleet in the cluster by health: Healthy, Progressing, Degraded, Missing, Unknown.",
              read=_by_state(lambda cluster: cluster.health, _HEALTHS)),
    MetricRow(name="fights_total", kind="counter", labels=("cluster",),
              text="Fights that were found: somebody kept undoing our changes, and we stepped back.",
              read=_per_cluster(lambda vitals, name: vitals.fights[name])),
    MetricRow(name="changes_total", kind="counter", labels=("cluster", "action", "result"),
              text="Changes made in the cluster.",
              read=lambda vitals, now_s: [(labels, count) for labels, count in sorted(vitals.changes.items())]),
    MetricRow(name="changes_held", kind="gauge", labels=("reason",),
              text="Changes that wait, by kind of reason: guard, move, suspended, other.",
              read=lambda vitals, now_s: [((reason,), count) for reason, count in sorted(vitals.held.items())]),
    MetricRow(name="drift_total", kind="counter", labels=("cluster",), text="Edits by other hands that were found.",
              read=_per_cluster(lambda vitals, name: vitals.drifts[name])),
    MetricRow(name="watches_ended_early_total", kind="counter", labels=("cluster",),
              text="Watches that ended before their time, or failed.",
              read=_per_cluster(lambda vitals, name: vitals.short_watches[name])),
    MetricRow(name="clusters", kind="gauge", text="Clusters that the store has.",
              read=lambda vitals, now_s: _one(vitals.step.clusters if vitals.step is not None else None)),
    MetricRow(name="clusters_in_step", kind="gauge",
              text="Clusters in which every object is as the revision in force says.",
              read=lambda vitals, now_s: _one(vitals.step.in_step if vitals.step is not None else None)),
    MetricRow(name="commit_waiting_since_timestamp_seconds", kind="gauge",
              text="When the revision in force was seen, as Unix time, while not all was in step with it yet; else 0.",
              read=_lag),
    MetricRow(name="webhook_delivered_total", kind="counter", labels=("receiver",),
              text="Events that the receiver of a webhook took.", read=_per_webhook(lambda told: told.delivered)),
    MetricRow(name="webhook_failed_total", kind="counter", labels=("receiver",),
              text="Attempts to tell a receiver that failed.", read=_per_webhook(lambda told: told.failed)),
    MetricRow(name="webhook_dropped_total", kind="counter", labels=("receiver",),
              text="Events that were given up: too old, or refused again and again.",
              read=_per_webhook(lambda told: told.dropped)),
    MetricRow(name="webhook_pending", kind="gauge", labels=("receiver",), text="Events that wait to be told.",
              read=_per_webhook(lambda told: told.pending)),
    MetricRow(name="webhook_oldest_timestamp_seconds", kind="gauge", labels=("receiver",),
              text="When the oldest event happened that waits to be told, as Unix time; 0: none waits.",
              read=_per_webhook(lambda told: _moment(told.oldest_at) or 0.0)),
    MetricRow(name="webhook_gone", kind="gauge", labels=("receiver",),
              text="1 when the receiver said that it is gone for good (410); nothing is sent until the next start.",
              read=_per_webhook(lambda told: told.is_gone)),
    MetricRow(name="commit_statuses_total", kind="counter", labels=("result",),
              text="Statuses of commits at the forge: told, failed (attempts), given-up.", read=_statuses),
    MetricRow(name="rollout_stage_state", kind="gauge", labels=("rollout", "stage", "state"),
              text="1 for what each stage of a Rollout does: done, running, waits-for-stage, waits-for-time, "
              "waits-for-approval, waits-for-window, paused, pinned, skipped, unclear; 0 for the others.",
              read=stage_states),
    MetricRow(name="rollout_clusters", kind="gauge", labels=("rollout", "phase"),
              text="Clusters of a Rollout by how they are beside its revision: behind, running, done, failed, pinned, "
              "frozen.", read=clusters_by_phase),
    MetricRow(name="rollout_done", kind="gauge", labels=("rollout",),
              text="1 when the revision of a Rollout is completed in every stage.", read=rollouts_done),
    MetricRow(name="suspended_scopes", kind="gauge", text="Scopes that are suspended now.",
              read=lambda vitals, now_s: _one(len(vitals.suspended))),
)  # fmt: skip
"""Every metric that is a number, in the order in which it is shown."""


class HistogramRow(Struct, frozen=True, kw_only=True):
    """One histogram of seconds. Its name differs from the gauges'."""

    name: str
    text: str
    read: Callable[[Vitals], Histograms]
    labels: tuple[str, ...] = ()


def _requests(vitals: Vitals) -> Histograms:
    vitals.requests.keep(frozenset(vitals.clusters))
    return vitals.requests


HISTOGRAMS: Final[tuple[HistogramRow, ...]] = (
    HistogramRow(name="round_phase_seconds", labels=("phase",), text="Seconds of each phase of the rounds.",
                 read=lambda vitals: vitals.phases.histograms),
    HistogramRow(name="request_seconds", labels=("cluster", "verb", "code"),
                 text="Seconds until an API server began to answer.", read=_requests),
    HistogramRow(name="commit_in_step_seconds",
                 text="Seconds from when a revision was seen until all clusters were in step with it.",
                 read=lambda vitals: vitals.in_step_s),
)  # fmt: skip
"""Every histogram, in the order in which it is shown."""


class VitalsCollector(Collector):
    """Reads the vital signs when it is asked, so that nothing has to be counted twice."""

    def __init__(self, vitals: Vitals, monotonic_s: Callable[[], float]) -> None:
        """Read from these vitals, at the time of this clock."""
        self._vitals = vitals
        self._monotonic_s = monotonic_s

    def collect(self) -> Iterator[Metric]:
        """One family a row of the tables."""
        for row in METRICS:
            family_type = CounterMetricFamily if row.kind == "counter" else GaugeMetricFamily
            family = family_type(PREFIX + row.name, row.text, labels=row.labels)
            for labels, value in row.read(self._vitals, self._monotonic_s()):
                family.add_metric(list(labels), value)
            yield family
        for shown in HISTOGRAMS:
            yield _histogram_family(shown, self._vitals)


def _histogram_family(row: HistogramRow, vitals: Vitals) -> HistogramMetricFamily:
    family, found = HistogramMetricFamily(PREFIX + row.name, row.text, labels=row.labels), row.read(vitals)
    for labels in sorted(found.found):
        family.add_metric(list(labels), list(found.buckets(labels)), found.found[labels].sum)
    return family


def exposition(vitals: Vitals, monotonic_s: Callable[[], float]) -> bytes:
    """The text that Prometheus reads."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(VitalsCollector(vitals, monotonic_s))
    return generate_latest(registry)


def reference() -> str:
    """`docs/reference/metrics.md`."""
    lines = [_line(row.name, row.kind, row.labels, row.text) for row in METRICS]
    lines += [_line(row.name, "histogram", row.labels, row.text) for row in HISTOGRAMS]
    return f"{_REFERENCE_HEAD}\n{''.join(lines)}{_REFERENCE_TAIL}"


def _line(name: str, kind: str, labels: Sequence[str], text: str) -> str:
    shown = f"{{{','.join(labels)}}}" if labels else ""
    return f"- `{PREFIX}{name}{shown}` ({kind}): {text}\n"


_REFERENCE_HEAD: Final = """# Metrics

`reconciler run --listen 127.0.0.1:9180` serves them at `/metrics` in Prometheus' text format. No label holds the name
of an object. This page is made from `reconciler/server/metrics.py`.
"""

_REFERENCE_TAIL: Final = """
Histograms have `…_bucket` with the label `le`, `…_sum` and `…_count`. `verb` is `read`, `watch`, `create`, `apply`,
`patch` or `delete`; `code` is the status class (`2xx`) or `none`. `phase` is `store`, `parse`, `decide`, `meet`,
`observe`, `tick`, `read`, `plan`, `dry-run`, `write` or `record`. `receiver` is the host of a webhook.

[Alert rules and a dashboard](../how-to/notify.md#prometheus-and-grafana) come with the project.
"""
