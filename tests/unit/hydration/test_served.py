"""API versions that charts see: what all clusters of a variant serve, and no guess about the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from reconciler.api.clusters import ClusterObservation
from reconciler.api.problem import Severity
from reconciler.api.refs import GVK
from reconciler.hydration import served_apis
from tests.fleets import fleet_of, member

MONITORING = ("monitoring.coreos.com/v1", "monitoring.coreos.com/v1/ServiceMonitor")


def served_by(
    observed: Mapping[str, str | None], **spec: Any
) -> tuple[Mapping[str, tuple[str, ...]], list[tuple[str, Severity, str]]]:
    """`observed`: by cluster what it serves, with blanks; None: not known. `v1.35` is its version."""
    document = {
        "apiVersion": "fleet.reconciler/v1alpha1", "kind": "Render", "metadata": {"name": "web"},
        "spec": {"helm": {"chart": "charts/web", "namespace": "demo", "kubeVersion": "1.36"}, "output": "out", **spec},
    }  # fmt: skip
    members = [member(name, stage=name[0]) for name in observed]
    fleet = fleet_of({"render.yaml": [document], "clusters.yaml": members})
    seen = {}
    for name, text in observed.items():
        words = (text or "").split()
        apis = frozenset(GVK.parse(*word.rsplit("/", 1)) for word in words if "/" in word)
        version = next((word for word in words if "/" not in word), "")
        found = ClusterObservation(name=name, apis=None if text is None else apis, kube_version=version)
        seen[name] = found
    served, problems = served_apis(fleet.renders[0], fleet.clusters, seen, lambda group: group != "unasked.example.com")
    return served, [(problem.code, problem.severity, problem.message) for problem in problems]


MONITOR = MONITORING[1]
PROD = {"name": "prod", "clusters": {"labelSelector": {"matchLabels": {"stage": "p"}}}, "values": ["a.yaml"]}


def test_a_chart_sees_what_all_of_its_clusters_serve() -> None:
    assert served_by({"a": f"apps/v1/Deployment {MONITOR} unasked.example.com/v1/Thing", "b": MONITOR}) == (
        {"": MONITORING}, [],
    )  # fmt: skip
    served, problems = served_by({"a": MONITOR, "b": "apps/v1/Deployment", "c": ""})
    assert served == {}
    (problem,) = problems
    assert problem[:2] == ("render-served-differs", Severity.WARNING)
    assert "monitoring.coreos.com/v1 is not served by b, c, so that the base does not see it" in problem[2]


def test_a_variant_sees_what_its_own_clusters_serve() -> None:
    served, problems = served_by({"dev": "", "p1": MONITOR, "p2": MONITOR}, variants=[PROD])
    assert (served, problems) == ({"prod": MONITORING}, [])
    served, problems = served_by({"dev": MONITOR, "p1": MONITOR, "p2": ""}, variants=[PROD])
    assert served == {}
    assert [("the base" in text, "the variant prod" in text) for _, _, text in problems] == [
        (True, False), (False, True),
    ]  # fmt: skip


def test_clusters_where_the_render_places_nothing_do_not_count() -> None:
    served, problems = served_by({"a": MONITOR, "b": None}, placement={"clusters": {"clusterNames": ["a"]}})
    assert (served, problems) == ({"": MONITORING}, [])


def test_a_cluster_that_was_not_observed_is_named_and_nothing_is_rendered() -> None:
    served, problems = served_by({"a": MONITOR, "b": None})
    assert served == {}
    ((code, severity, text),) = problems
    assert (code, severity) == ("render-served-unknown", Severity.ERROR)
    assert "what b serve is not in the observations" in text


@pytest.mark.parametrize(("version", "told"), [("v1.36.3", False), ("v1.36.0-eks-1", False), ("v1.35.9", True)])
def test_clusters_of_another_version_are_named(version: str, told: bool) -> None:
    _, problems = served_by({"a": version, "b": ""})
    assert [(code, f"a runs {version}" in text) for code, _, text in problems] == [
        ("render-version-differs", True)
    ] * told
