"""The dashboard for Grafana: its queries ask for what there is, and its panels have places of their own.

Source: Grafana, "Dashboard JSON model".
"""

from __future__ import annotations

import json
import re
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from reconciler.controller.vitals.service_vitals import Vitals
from reconciler.server.metrics import PREFIX, histograms, metrics
from tests.monitoring.queries import unknown_in

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
