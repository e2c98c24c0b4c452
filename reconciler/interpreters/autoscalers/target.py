"""`spec.scaleTargetRef`, which HorizontalPodAutoscaler and ScaledObject share."""

from __future__ import annotations

from reconciler.interpreters.reading import mapping, namespace_of, text
from reconciler.model.refs import GVK, Identity
from reconciler.model.tree import JsonObject, dig


def scale_target(body: JsonObject) -> Identity | None:
    """The object whose replicas the autoscaler decides; None when it names none.

    KEDA takes a missing kind for Deployment and a missing apiVersion for apps/v1; an HPA writes both.
    """
    target = mapping(dig(body, "spec", "scaleTargetRef"))
    name = text(target.get("name"))
    if not name:
        return None
    kind = text(target.get("kind")) or "Deployment"
    group = GVK.parse(text(target.get("apiVersion")) or "apps/v1", kind).group
    return Identity(group, kind, namespace_of(body), name)
