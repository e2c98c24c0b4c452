from __future__ import annotations

from typing import Any

import msgspec
import pytest

from reconciler.api.refs import GVK
from reconciler.kube import Discovery
from reconciler.kube.discovery import AggregatedGroup, from_aggregated


def aggregated(group: str, *versions: tuple[str, list[dict[str, Any]]]) -> list[AggregatedGroup]:
    item = {
        "metadata": {"name": group},
        "versions": [{"version": version, "resources": resources} for version, resources in versions],
    }
    return [msgspec.convert(item, AggregatedGroup)]


def entry(kind: str, plural: str, **more: Any) -> dict[str, Any]:
    verbs = more.pop("verbs", ["get", "list"])
    return {"resource": plural, "responseKind": {"kind": kind}, "scope": "Namespaced", "verbs": verbs, **more}


EVENTS = {"shortNames": ["ev"], "singularResource": "event"}


@pytest.fixture
def discovery() -> Discovery:
    core = aggregated("", ("v1", [entry("Event", "events", **EVENTS), entry("Pod", "pods", shortNames=["po"])]))
    events = aggregated("events.k8s.io", ("v1", [entry("Event", "events", **EVENTS)]))
    scaling = aggregated(
        "autoscaling",
        ("v2", [entry("HorizontalPodAutoscaler", "horizontalpodautoscalers", shortNames=["hpa"])]),
        ("v1", [entry("HorizontalPodAutoscaler", "horizontalpodautoscalers"), entry("Old", "olds")]),
    )
    return from_aggregated([core, [*events, *scaling]])


@pytest.mark.parametrize(
    ("name", "gvk"),
    [
        ("po", GVK("", "v1", "Pod")),
        ("Pods", GVK("", "v1", "Pod")),
        ("events", GVK("", "v1", "Event")),
        ("events.events.k8s.io", GVK("events.k8s.io", "v1", "Event")),
        ("hpa", GVK("autoscaling", "v2", "HorizontalPodAutoscaler")),
        ("horizontalpodautoscalers.v1.autoscaling", GVK("autoscaling", "v1", "HorizontalPodAutoscaler")),
        ("olds", GVK("autoscaling", "v1", "Old")),
        ("pods.v1.", GVK("", "v1", "Pod")),
        ("pods.apps", None),
        ("nothing", None),
        ("", None),
    ],
)
def test_finds_the_kind_that_a_person_means(discovery: Discovery, name: str, gvk: GVK | None) -> None:
    found = discovery.find(name)
    assert (found.gvk if found else None) == gvk


def test_prefers_the_version_that_the_server_prefers_and_else_one_that_has_the_kind(discovery: Discovery) -> None:
    scaler, old = (
        discovery.preferred("autoscaling", "HorizontalPodAutoscaler"),
        discovery.preferred("autoscaling", "Old"),
    )
    assert scaler is not None
    assert old is not None
    assert (scaler.gvk.version, old.gvk.version) == ("v2", "v1")
    assert discovery.preferred("apps", "Pod") is None


def test_a_kind_that_cannot_be_listed_is_not_served() -> None:
    review = entry("TokenReview", "tokenreviews", verbs=["create"])
    discovery = from_aggregated([aggregated("authentication.k8s.io", ("v1", [review]))])
    assert discovery.served() == {}
    assert len(discovery.kinds) == 1
