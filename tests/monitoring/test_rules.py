"""Alert rules: promtool takes them and their tests, and each says what to do and where that is written.

Source: Prometheus, "Unit testing for rules"; `promtool check metrics` is its linter of names.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from reconciler.notify.post import Deliveries
from reconciler.server.metrics import exposition
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
