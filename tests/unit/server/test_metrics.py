from __future__ import annotations

import re
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from reconciler.controller.vitals.service_vitals import RoundPhase, Vitals
from reconciler.notify.post import Deliveries
from reconciler.server.metrics import PREFIX, exposition, histograms, metrics
from reconciler.state import HealthWord, Lag, RevisionStep
from tests.fakes.rollouts import PAUSED
from tests.unit.server.vital_signs import busy, cluster_state, showing

ROOT = Path(__file__).parents[3]
METRICS, HISTOGRAMS = tuple(metrics(Vitals(), 0.0)), tuple(histograms(Vitals()))


def _samples(vitals: Vitals, now_s: float = 103.0) -> dict[str, float]:
    text = exposition(vitals, now_s).decode()
    return {
        f"{sample.name.removeprefix(PREFIX)}{sorted(sample.labels.values()) or ''}": sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_tells_the_vital_signs_in_prometheus_text() -> None:
    found = _samples(busy())
    assert found["ready"] == 1
    assert found["heartbeat_age_seconds"] == 3
    assert found["source_commit_info['5f3c9d2a']"] == 1
    assert found["source_last_read_timestamp_seconds"] == 1795255205
    assert found["store_problems['warning']"] == 1
    assert found["rounds_total"] == 7
    assert found["round_duration_seconds['plan']"] == 0.5
    assert (found["cluster_up['m1']"], found["cluster_up['m2']"]) == (1, 0)
    assert found["objects['m1', 'synced']"] == 3
    assert found["changes_total['done', 'm1', 'update']"] == 4
    assert found["changes_held['guard']"] == 2
    assert found["drift_total['m1']"] == 1


def test_a_state_that_no_object_is_in_is_zero_rather_than_absent() -> None:
    found = _samples(busy())
    assert found["objects['failed', 'm1']"] == 0
    assert found["objects['m2', 'synced']"] == 0


def test_what_never_happened_has_no_time() -> None:
    found = _samples(Vitals())
    assert found["source_up"] == 0
    assert found["ready"] == 0
    assert not any("timestamp" in name for name in found)
    assert "last_success_timestamp_seconds['m2']" not in _samples(busy())


def test_an_error_of_the_store_shows_in_the_gauge_for_it() -> None:
    vitals = busy()
    vitals.source_error = "broken"
    found = _samples(vitals)
    assert (found["source_up"], found["ready"]) == (0, 1)


def test_labels_are_escaped() -> None:
    vitals = busy()
    name = 'm"\\\n} 1'
    showing(vitals, clusters={**vitals.snapshot.clusters, name: cluster_state(name)})
    families = text_string_to_metric_families(exposition(vitals, 0.0).decode())
    up = next(family for family in families if family.name == f"{PREFIX}cluster_up")
    assert {sample.labels["cluster"] for sample in up.samples} == {"m1", "m2", name}


def test_series_grow_with_the_clusters_alone() -> None:
    vitals = busy()
    before = len(_samples(vitals))
    more = {f"c{number}": cluster_state(f"c{number}") for number in range(50)}
    showing(vitals, clusters={**vitals.snapshot.clusters, **more})
    # Four of its own, and one for each state, each health and each kind of what it does.
    assert len(_samples(vitals)) == before + 50 * (5 + len(Lag) + len(HealthWord))


def test_names_follow_the_rules_of_prometheus() -> None:
    names = [row.name for row in METRICS]
    assert len(set(names)) == len(names)
    for row in METRICS:
        assert re.fullmatch(r"[a-z][a-z_]*[a-z]", row.name), row.name
        assert (row.kind == "counter") == row.name.endswith("_total"), row.name
        assert set(row.labels) <= {"cluster", "state", "health", "action", "result", "reason", "phase", "severity",
                                   "version", "revision", "receiver", "rollout", "stage"}, row.name  # fmt: skip


def test_names_of_histograms_are_of_seconds_and_of_no_gauge() -> None:
    for row in HISTOGRAMS:
        assert re.fullmatch(r"[a-z][a-z_]*_seconds", row.name), row.name
        assert row.name not in {found.name for found in METRICS}
        assert set(row.labels) <= {"cluster", "verb", "code", "phase"}, row.name


def test_histograms_count_what_was_at_most_each_bound() -> None:
    vitals = busy()
    for seconds in (0.01, 0.02, 100.0):
        vitals.requests.observe(("m1", "apply", "2xx"), seconds)
    found = _samples(vitals)
    name = "request_seconds"
    assert found[f"{name}_bucket['0.01', '2xx', 'apply', 'm1']"] == 1
    assert found[f"{name}_bucket['0.05', '2xx', 'apply', 'm1']"] == 2
    assert found[f"{name}_bucket['+Inf', '2xx', 'apply', 'm1']"] == found[f"{name}_count['2xx', 'apply', 'm1']"] == 3
    assert found[f"{name}_sum['2xx', 'apply', 'm1']"] == pytest.approx(100.03)


def test_requests_of_a_cluster_that_is_gone_are_forgotten() -> None:
    vitals = busy()
    vitals.requests.observe(("gone", "read", "2xx"), 0.01)
    vitals.requests.observe(("m1", "read", "2xx"), 0.01)
    assert not any("gone" in name for name in _samples(vitals))
    assert list(vitals.requests.distributions) == [("m1", "read", "2xx")]


def test_phases_are_counted_when_another_begins_and_waiting_is_none() -> None:
    vitals = Vitals()
    beats = ((0, RoundPhase.IDLE), (5, RoundPhase.READ), (6, RoundPhase.READ), (7, RoundPhase.WRITE),
             (8, RoundPhase.WRITE), (10, RoundPhase.RECORD), (11, RoundPhase.IDLE), (99, RoundPhase.PLAN))  # fmt: skip
    for now_s, phase in beats:
        vitals.phases.begin(phase, now_s)
    found = _samples(vitals)
    sums = {name: value for name, value in found.items() if name.startswith("round_phase_seconds_sum")}
    assert sums == {"round_phase_seconds_sum['read']": 2, "round_phase_seconds_sum['write']": 3,
                    "round_phase_seconds_sum['record']": 1}  # fmt: skip


@pytest.mark.parametrize(("in_step", "is_told", "since"), [(1, False, 1795255205), (2, True, 0), (1, True, 0)])
def test_a_commit_waits_until_all_was_in_step_once(in_step: int, is_told: bool, since: float) -> None:
    vitals = busy()
    step = RevisionStep(revision="5f3c9d2a", clusters=2, in_step=in_step)
    showing(vitals, step=step, revision_active_since="2026-11-21T10:00:05Z", is_in_step_reported=is_told)
    found = _samples(vitals)
    assert (found["clusters"], found["clusters_in_step"]) == (2, in_step)
    assert found["commit_waiting_since_timestamp_seconds"] == since


def test_receivers_are_told_of_by_their_host() -> None:
    vitals = busy()
    vitals.webhooks["hooks.example.com"] = Deliveries(
        delivered=3, failed=2, dropped=1, pending=4, oldest_at="2026-11-21T10:00:05Z"
    )
    vitals.commit_status = Deliveries(delivered=5)
    found = _samples(vitals)
    counts = [found[f"webhook_{name}['hooks.example.com']"] for name in ("delivered_total", "failed_total",
              "dropped_total", "pending", "oldest_timestamp_seconds", "gone")]  # fmt: skip
    assert counts == [3, 2, 1, 4, 1795255205, 0]
    assert found["commit_statuses_total['told']"] == 5


def test_the_reference_names_every_metric_and_no_other() -> None:
    shown = set(re.findall(rf"{PREFIX}(\w+)", (ROOT / "docs/reference/metrics.md").read_text()))
    assert shown == {row.name for row in METRICS} | {row.name for row in HISTOGRAMS}


def test_rollouts_are_told_by_stage_and_by_phase() -> None:
    vitals = busy()
    showing(vitals, rollouts=(PAUSED,))
    found = _samples(vitals)
    assert found["rollout_stage_state['canary', 'default', 'paused']"] == 1
    assert found["rollout_stage_state['canary', 'default', 'running']"] == 0
    assert found["rollout_clusters['default', 'failed']"] == 1
    assert found["rollout_clusters['default', 'pinned']"] == 0
    assert found["rollout_done['default']"] == 0
    assert not any("rollout" in name for name in _samples(busy()))
