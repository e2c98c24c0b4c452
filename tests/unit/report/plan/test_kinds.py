"""Kinds as words."""

from __future__ import annotations

import pytest

from reconciler.report.plan.groups import counted, counted_kind


@pytest.mark.parametrize(
    ("kind", "several"),
    [
        ("Deployment", "Deployments"),
        ("Ingress", "Ingresses"),
        ("NetworkPolicy", "NetworkPolicies"),
        ("Gateway", "Gateways"),
        ("Endpoints", "Endpoints"),
        ("Prefix", "Prefixes"),
        ("Patch", "Patches"),
    ],
)
def test_more_than_one_of_a_kind(kind: str, several: str) -> None:
    assert counted_kind(kind, 1) == f"1 {kind}"
    assert counted_kind(kind, 5000) == f"5,000 {several}"


def test_what_is_counted() -> None:
    assert counted(1, "error") == "1 error"
    assert counted(0, "error") == "0 errors"
    assert counted(4000, "release") == "4,000 releases"
