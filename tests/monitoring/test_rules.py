"""Alert rules: promtool takes them and their tests, and each says what to do and where that is written.

Source: Prometheus, "Unit testing for rules"; `promtool check metrics` is its linter of names.

The dashboard for Grafana: its queries ask for what there is, and its panels have places of their own.

Source: Grafana, "Dashboard JSON model".
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from reconciler.controller.vitals.service_vitals import Vitals
from reconciler.notify.post import Deliveries
from reconciler.server.metrics import PREFIX, exposition, histograms, metrics
from reconciler.state import RevisionStep
from tests.docs.pages import anchors
from tests.monitoring.queries import unknown_in
from tests.unit.server.vital_signs import busy, showing
from tests.yaml_text import load_yaml

ROOT = Path(__file__).parents[2]
MONITORING = ROOT / "monitoring"
RULES: list[dict[str, Any]] = load_yaml((MONITORING / "alerts.yaml").read_text())["groups"][0]["rules"]
TESTS: list[dict[str, Any]] = load_yaml((MONITORING / "alerts_test.yaml").read_text())["tests"]


def promtool(*arguments: str, given: bytes = b"") -> None:
    """Run it; where it is not installed the test is skipped, but not in CI."""
    tool = shutil.which("promtool")
    if tool is None:
        assert not os.environ.get("CI"), "promtool is missing: it is in Debian's package prometheus"
        pytest.skip("promtool is not installed")
    done = subprocess.run([tool, *arguments], input=given, capture_output=True, cwd=MONITORING, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr).decode()


def test_promtool_takes_the_rules() -> None:
    promtool("check", "rules", "alerts.yaml")


def test_each_alert_fires_for_its_trouble_and_none_while_all_is_well() -> None:
    promtool("test", "rules", "alerts_test.yaml")


def test_promtool_takes_the_metrics() -> None:
    vitals = busy()
    showing(vitals, step=RevisionStep(revision="5f3c9d2a", clusters=2, in_step=1))
    vitals.webhooks["hooks.example.com"] = vitals.commit_status = Deliveries(delivered=3)
    vitals.requests.observe(("m1", "read", "2xx"), 0.1)
    vitals.phases.histograms.observe(("plan",), 0.1)
    vitals.in_step_s.observe((), 12.0)
    promtool("check", "metrics", given=exposition(vitals, 103.0))


def test_every_alert_has_a_test_that_it_fires() -> None:
    assert {f"{rule['alert']} fires" for rule in RULES} <= {test["name"] for test in TESTS}


@pytest.mark.parametrize("rule", RULES, ids=[rule["alert"] for rule in RULES])
def test_a_rule_says_what_to_do_and_leads_to_a_section_that_is_there(rule: dict[str, Any]) -> None:
    assert re.fullmatch(r"Fleet[A-Za-z]+", rule["alert"])
    assert rule["labels"]["severity"] in ("critical", "warning", "info")
    annotations = rule["annotations"]
    assert annotations["summary"]
    assert annotations["description"].rstrip().endswith(".")
    page, _, section = annotations["runbook"].partition("#")
    assert page in ("docs/how-to/on-call.md", "docs/how-to/trouble.md")
    assert section in anchors(ROOT / page)


@pytest.mark.parametrize("rule", RULES, ids=[rule["alert"] for rule in RULES])
def test_a_rule_uses_metrics_and_labels_that_there_are(rule: dict[str, Any]) -> None:
    assert not unknown_in(rule["expr"])


DASHBOARD: dict[str, Any] = json.loads((Path(__file__).parents[2] / "monitoring/dashboard.json").read_text())
PANELS: list[dict[str, Any]] = DASHBOARD["panels"]
QUERIES = [target["expr"] for panel in PANELS for target in panel.get("targets", ())]
VARIABLES = {found["name"]: found for found in DASHBOARD["templating"]["list"]}


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_uses_metrics_labels_and_variables_that_there_are(query: str) -> None:
    assert PREFIX in query
    assert not unknown_in(query)
    assert set(re.findall(r"\$\{?(\w+)", query)) <= {*VARIABLES, "__rate_interval"}


@pytest.mark.parametrize(
    "query",
    ["fleet_reconciler_nothing", 'fleet_reconciler_objects{verb="x"}', "sum by (verb) (fleet_reconciler_objects)",
     "fleet_reconciler_request_seconds"],
)  # fmt: skip
def test_a_query_that_asks_for_what_there_is_not_is_found(query: str) -> None:
    assert unknown_in(query)


def test_the_source_is_chosen_by_who_looks() -> None:
    assert VARIABLES["datasource"]["type"] == "datasource"
    used = [panel["datasource"] for panel in PANELS if panel["type"] != "row"]
    used += [target["datasource"] for panel in PANELS for target in panel.get("targets", ())]
    assert all(found == {"type": "prometheus", "uid": "${datasource}"} for found in used)
    assert "__inputs" not in DASHBOARD


def test_panels_have_ids_and_places_of_their_own() -> None:
    assert len({panel["id"] for panel in PANELS}) == len(PANELS)
    for panel in PANELS:
        place = panel["gridPos"]
        assert 0 <= place["x"] < place["x"] + place["w"] <= 24
        assert panel["title"]
        assert len({target["refId"] for target in panel.get("targets", ())}) == len(panel.get("targets", ()))
    for one, other in combinations(PANELS, 2):
        a, b = one["gridPos"], other["gridPos"]
        apart = (a["x"] + a["w"] <= b["x"] or b["x"] + b["w"] <= a["x"]
                 or a["y"] + a["h"] <= b["y"] or b["y"] + b["h"] <= a["y"])  # fmt: skip
        assert apart, f"{one['title']} and {other['title']}"


def test_each_metric_of_what_goes_wrong_is_shown() -> None:
    shown = set(re.findall(rf"{PREFIX}(\w+)", " ".join(QUERIES)))
    shown |= {re.sub(r"_(bucket|sum|count)$", "", name) for name in shown}
    assert {row.name for row in histograms(Vitals())} <= shown
    assert {row.name for row in metrics(Vitals(), 0.0)} - shown <= {
        "build_info", "start_time_seconds", "source_last_read_timestamp_seconds", "rounds_total",
        "last_round_timestamp_seconds", "round_duration_seconds", "watches_ended_early_total", "suspended_scopes",
        "webhook_oldest_timestamp_seconds", "webhook_gone",
    }  # fmt: skip
