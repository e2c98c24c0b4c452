"""The health of a live object, and the reason that a person understands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reconciler.api.clusters import LiveObject
from reconciler.api.refs import GVK, Identity
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.state import UnknownHealth, health_of, why_waiting
from tests.fakes.raising import with_rules
from tests.yaml_text import load_yaml

ROWS = load_yaml((Path(__file__).parents[2] / "cases/state/health.yaml").read_text())["rows"]
GROUPS = {
    "Deployment": "apps",
    "Job": "batch",
    "Widget": "ex.io",
    "CustomResourceDefinition": "apiextensions.k8s.io",
    "HTTPRoute": "gateway.networking.k8s.io",
}


def live_of(row: dict[str, Any]) -> LiveObject:
    group, kind = GROUPS.get(row["kind"], ""), row["kind"]
    metadata = {"name": "x", "namespace": "demo", "generation": row.get("generation", 1)}
    metadata |= {"deletionTimestamp": "2026-11-21T10:00:00Z"} if row.get("deleted") else {}
    body = {"kind": kind, "metadata": metadata, "spec": row.get("spec", {}), "status": row["status"]}
    return LiveObject(gvk=GVK(group, "v1", kind), identity=Identity(group, kind, "demo", "x"), uid="u",
                      resource_version="1", body=body)  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=[row["name"] for row in ROWS])
def test_the_status_says_why(row: dict[str, Any]) -> None:
    live = live_of(row)
    found = health_of(live, BUILT_IN_KINDS.of(*live.identity[:2]))
    assert (str(found.word), found.why) == (row["health"], row["why"])


def test_what_cannot_be_told_is_unknown_and_never_healthy() -> None:
    def broken(body: object) -> Any:
        raise ValueError("no")

    live = live_of(ROWS[0])
    interpreter = with_rules(BUILT_IN_KINDS.of("apps", "Deployment"), health=broken)
    assert isinstance(health_of(live, interpreter), UnknownHealth)


def test_a_long_message_is_one_short_line() -> None:
    told = why_waiting("ErrImagePull", "x\n" * 1000)
    assert len(told) == 300
    assert "\n" not in told
